"""Each property of a block as a whole: a function that breaks it, and by how much it says so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
import torch
from torch import nn

from isotest.testing import Result, TokenBatch, check_block
from isotest.testing.properties.comparison import ROUNDING, require_equal
from isotest.testing.properties.module import MODULE_PROPERTIES
from isotest.testing.property import Property, ViolationError
from isotest.testing.subject import Claims, Subject

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

WIDTH = 8
NOTHING = Claims(
    causal=False, normalised=False, skip=False, positions=False, masked=False, scaled=False
)
NAMED = {property_.name: property_ for property_ in MODULE_PROPERTIES}


class Block(nn.Module):
    """A function of x as a block, with a linear map and a LayerNorm that it may use."""

    def __init__(self, function: Callable[[Block, Tensor], object]) -> None:
        super().__init__()
        self.function = function
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        with torch.no_grad():
            self.norm.weight.uniform_(0.5, 2)
            self.norm.bias.normal_()

    def forward(self, x: Tensor) -> object:
        return self.function(self, x)


@dataclass(frozen=True)
class Broken:
    """A function that breaks a property, one that keeps it, and what the message must say."""

    breaks: Callable[[Block, Tensor], object]
    keeps: Callable[[Block, Tensor], object]
    says: str
    claims: Claims = NOTHING


def last_two_swapped(_: Block, x: Tensor) -> Tensor:
    return torch.cat([x[:, :-2], x[:, -2:].flip(1)], dim=1)


def average(x: Tensor) -> Tensor:
    return x.mean(dim=1, keepdim=True)


def rms(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True))


CASES = {
    "shape": Broken(lambda _, x: x[..., :4], lambda _, x: x, r"\(2, 5, 8\) became \(2, 5, 4\)"),
    # e^x leaves float32 at 89, and entries of order 1 become ten thousand.
    "finite": Broken(lambda _, x: x.exp(), lambda _, x: x.tanh(), "an infinity"),
    "deterministic": Broken(
        lambda _, x: x + torch.randn_like(x), lambda _, x: x, "the same input once more"
    ),
    "input_unchanged": Broken(lambda _, x: x.mul_(2), lambda _, x: x.mul(2), "80 of the 80"),
    "causal": Broken(
        lambda _, x: x + average(x),
        lambda _, x: x.cumsum(dim=1),
        "from position 1 on",
        replace(NOTHING, causal=True),
    ),
    "permutation_equivariance": Broken(
        lambda _, x: x.cumsum(dim=1), lambda _, x: x + average(x), r"\[\d, \d, \d, \d, \d\]"
    ),
    "constant_rows": Broken(
        lambda _, x: x.cumsum(dim=1), last_two_swapped, "all positions hold one vector"
    ),
    "batch_independence": Broken(
        lambda _, x: x - x.mean(dim=0), lambda _, x: x - average(x), "sequence 0 of a batch of 2"
    ),
    # Near 1e4 float32 has steps of 2⁻¹⁰ ≈ 0.001: relative to entries of order 1, 3e-4 on average.
    "dtype_agreement": Broken(
        lambda _, x: (x + 1e4) - 1e4, lambda block, x: block.linear(x), "in float32"
    ),
    # √8 = 2.828; 1.01 times as much is 2.857.
    "output_norm": Broken(
        lambda block, x: 1.01 * block.norm(x),
        lambda block, x: block.norm(x + block.linear(x)),
        r"length 2\.857 .*√D = 2\.828",
        replace(NOTHING, normalised=True),
    ),
    "skip_identity": Broken(
        lambda block, x: 0.9 * x + block.linear(x),
        lambda block, x: x + block.linear(block.norm(x)),
        "differs by",
        replace(NOTHING, skip=True),
    ),
}


def subject(function: Callable[[Block, Tensor], object], claims: Claims) -> Subject:
    return Subject(Block(function).eval(), "block", WIDTH, 2, claims)


def test_each_property_has_a_case() -> None:
    assert list(CASES) == list(NAMED)


@pytest.mark.parametrize("name", CASES)
def test_what_breaks_a_property_is_told(name: str) -> None:
    case = CASES[name]
    broken = subject(case.breaks, case.claims)
    assert NAMED[name].excludes(broken) is None
    with pytest.raises(ViolationError, match=case.says):
        NAMED[name].check(broken, TokenBatch(2, 5, WIDTH))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", ["normal", "drifted", "repeated"])
def test_what_keeps_it_is_not(name: str, kind: str) -> None:
    case = CASES[name]
    kept = subject(case.keeps, case.claims)
    assert NAMED[name].excludes(kept) is None
    for seed in range(5):
        NAMED[name].check(kept, TokenBatch(2, 5, WIDTH, seed=seed, kind=kind))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "claims", "reason"),
    [
        ("causal", NOTHING, "not causal"),
        ("permutation_equivariance", replace(NOTHING, causal=True), "causal mask"),
        ("permutation_equivariance", replace(NOTHING, positions=True), "positions"),
        ("constant_rows", replace(NOTHING, positions=True), "positions"),
        ("output_norm", NOTHING, "not normalised"),
        ("skip_identity", NOTHING, "no skip"),
    ],
)
def test_of_what_a_property_is_not_demanded(name: str, claims: Claims, reason: str) -> None:
    excluded = NAMED[name].excludes(subject(lambda _, x: x, claims))
    assert excluded is not None
    assert reason in excluded


def test_a_block_of_another_dtype_alone_is_not_held_to_agree() -> None:
    def in_float32(_: Block, x: Tensor) -> Tensor:
        return torch.mm(x[0], torch.ones(WIDTH, WIDTH))[None]

    excluded = NAMED["dtype_agreement"].excludes(subject(in_float32, NOTHING))
    assert excluded is not None
    assert "in float64 does not run" in excluded


@pytest.mark.parametrize("normalise", [lambda block, x: block.norm(x), lambda _, x: rms(x)])
def test_layer_norm_and_rms_norm_have_the_same_length(
    normalise: Callable[[Block, Tensor], Tensor],
) -> None:
    """√D for both: mean square 1 over D entries."""
    NAMED["output_norm"].check(
        subject(normalise, replace(NOTHING, normalised=True)), TokenBatch(2, 5, WIDTH)
    )


def test_a_large_epsilon_is_not_held_against_a_norm() -> None:
    """ε = 1e-5 is 10 % of a variance of 1e-4: the norm still normalises."""

    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(WIDTH)

        def forward(self, x: Tensor) -> Tensor:
            output: Tensor = self.norm(x / x.norm(dim=-1, keepdim=True) * 0.03)
            return output

    report = check_block(Small, width=WIDTH, heads=2, normalised=True, properties=["output_norm"])
    assert report["output_norm"].result is Result.HOLDS, str(report)


def test_a_post_norm_block_keeps_the_direction_of_its_input() -> None:
    """LN(LN(x)) is parallel to x − mean(x)."""
    claims = replace(NOTHING, normalised=True, skip=True)
    kept = subject(lambda block, x: block.norm(block.norm(x + block.linear(x))), claims)
    NAMED["skip_identity"].check(kept, TokenBatch(2, 5, WIDTH))
    lost = subject(lambda block, x: block.norm(block.linear(x)), claims)
    with pytest.raises(ViolationError, match="cosine"):
        NAMED["skip_identity"].check(lost, TokenBatch(2, 5, WIDTH))


def test_rounding_is_a_share_of_the_largest_output() -> None:
    one = torch.tensor([[[100.0, 0.0]]])
    require_equal(one + 0.9 * ROUNDING * 100, one, "x")
    with pytest.raises(ViolationError, match="entry 1"):
        require_equal(one + torch.tensor([0.0, 2 * ROUNDING * 100]), one, "x")


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_what_is_not_finite_equals_nothing(bad: float) -> None:
    one = torch.ones(1, 2, 3)
    other = one.clone()
    other[0, 1, 2] = bad
    for got, expected in ((one, other), (other, one), (other, other)):
        with pytest.raises(ViolationError, match=r"sequence 0, position 1, entry 2"):
            require_equal(got, expected, "x")


def test_every_property_says_what_where_from_and_when() -> None:
    for property_ in MODULE_PROPERTIES:
        assert isinstance(property_, Property)
        assert property_.statement.endswith(".")
        assert property_.source
        assert property_.conditions
