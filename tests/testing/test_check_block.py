"""`check_block` can fail, one line shows a failure again, and it leaves no traces."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from isotest.blocks import BlockConfig, TransformerBlock
from isotest.errors import BlockError, MissingError
from isotest.testing import BlockViolationError, Result, TokenBatch, check_block
from isotest.testing.properties import PROPERTIES
from isotest.testing.report import COLUMNS

if TYPE_CHECKING:
    from torch import Tensor

    from isotest.testing import BlockReport


class Leak(nn.Module):
    """Each position sees the mean of all."""

    def forward(self, x: Tensor) -> Tensor:
        return x + 0.01 * x.mean(dim=1, keepdim=True)


class Good(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = x + self.linear(x)
        return output


def of(
    module: type[nn.Module], *, causal: bool | None = None, properties: list[str] | None = None
) -> BlockReport:
    return check_block(module, width=8, heads=2, causal=causal, examples=15, properties=properties)


def test_a_violation_makes_the_report_false_and_is_named() -> None:
    report = of(Leak, causal=True)
    assert not report
    assert [outcome.property for outcome in report.violated] == ["causal"]
    with pytest.raises(BlockViolationError, match=r"causal +violated"):
        report.raise_if_violated()


def test_what_holds_makes_it_true() -> None:
    report = of(Good)
    assert report
    report.raise_if_violated()
    assert report["skip_identity"].result is Result.HOLDS
    assert report["causal"].result is Result.HOLDS  # no position sees another


def test_nothing_shown_is_not_true() -> None:
    report = of(Leak, causal=False, properties=["causal"])
    assert [outcome.result for outcome in report.outcomes] == [Result.NOT_APPLICABLE]
    assert not report
    assert "nothing was shown" in str(report)
    with pytest.raises(BlockViolationError):
        report.raise_if_violated()


def test_no_property_at_all_is_a_fault() -> None:
    with pytest.raises(BlockError, match="nothing would be tried"):
        of(Leak, properties=[])


def test_a_violation_is_shown_again_by_its_line() -> None:
    (violated,) = of(Leak, causal=True).violated
    line = violated.reproduce
    assert "\n" not in line
    again: BlockReport = eval(line)  # Leak, check_block and TokenBatch are names of this module
    assert again["causal"].text == violated.text
    assert not again


def test_the_counterexample_is_the_smallest() -> None:
    """Between positions two are the fewest."""
    assert of(Leak, causal=True)["causal"].reproduce.endswith(
        "batches=[TokenBatch(sequences=1, length=2, width=8)])"
    )


class FromSix(nn.Module):
    """Positions are told apart from six on."""

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.arange(x.shape[1])[:, None] if x.shape[1] >= 6 else x


def test_a_counterexample_that_is_found_only_when_large_is_shrunk() -> None:
    outcome = of(FromSix, causal=False)["permutation_equivariance"]
    assert outcome.result is Result.VIOLATED
    assert outcome.reproduce.endswith("batches=[TokenBatch(sequences=1, length=6, width=8)])")


class SmallInput(nn.Module):
    """Wrong for small numbers only, which no batch that is always tried has."""

    def forward(self, x: Tensor) -> Tensor:
        return x + x.sum(dim=1, keepdim=True) if x.abs().max() < 0.5 else x


def test_hypothesis_finds_what_is_not_always_tried() -> None:
    report = check_block(SmallInput, width=8, heads=2, causal=True, examples=0)
    assert report["causal"].result is Result.HOLDS
    outcome = check_block(SmallInput, width=8, heads=2, causal=True)["causal"]
    assert outcome.result is Result.VIOLATED
    assert "length=2" in outcome.reproduce
    assert "scale=0.1" in outcome.reproduce


class NowAndThen(nn.Module):
    """Every thirtieth call is off: too seldom for a few looks at whether it is deterministic."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x + (self.calls % 30 == 0)


def test_what_hypothesis_cannot_repeat_is_an_outcome() -> None:
    report = of(NowAndThen)
    assert not report
    assert any("deterministic" in f"{o.property} {o.text}" for o in report.violated), str(report)
    assert "Flaky" not in str(report)


def test_the_same_seed_gives_the_same_report() -> None:
    assert str(of(SmallInput, causal=True)) == str(of(SmallInput, causal=True))


def test_random_numbers_of_others_are_left_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    of(Good, properties=["causal"])
    assert torch.equal(torch.rand(1), expected)


def test_threads_of_others_are_left_alone() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        of(Good, properties=["causal"])
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_the_factory_is_called_once() -> None:
    calls = []

    def factory() -> nn.Module:
        calls.append(1)
        return Good()

    check_block(factory, width=8, heads=2, examples=2)
    assert len(calls) == 1


def test_the_seed_is_that_of_the_weights() -> None:
    """Reports of the same seed are of the same block, whatever was drawn before."""
    modules = []

    def factory() -> nn.Module:
        modules.append(Good())
        return modules[-1]

    for seed in (0, 0, 1):
        check_block(factory, width=8, heads=2, examples=0, seed=seed, properties=["shape"])
    first, second, third = (module.linear.weight for module in modules)
    assert torch.equal(first, second)
    assert not torch.equal(first, third)


def test_weights_are_left_alone() -> None:
    """Properties that need other weights work on copies."""
    block = Good()
    before = {name: value.clone() for name, value in block.state_dict().items()}
    check_block(lambda: block, width=8, heads=2, examples=2)
    assert all(torch.equal(value, before[name]) for name, value in block.state_dict().items())


def test_a_block_that_was_trained_in_between_is_tried_as_it_is_now() -> None:
    """A float64 copy of what it was would disagree with it."""
    block = Good()
    for _ in range(2):
        report = check_block(
            lambda: block, width=8, heads=2, examples=2, properties=["dtype_agreement"]
        )
        assert report, str(report)
        with torch.no_grad():
            block.linear.weight.mul_(2)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("layer_norm", ["post", "pre", "none"])
@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize(
    "start", [BlockConfig.bert(), BlockConfig.modern()], ids=["bert", "modern"]
)
def test_claims_are_found(start: BlockConfig, causal: bool, layer_norm: str, skip: bool) -> None:
    config = replace(
        start,
        width=12,
        heads=3,
        hidden=16,
        causal=causal,
        layer_norm=layer_norm,  # type: ignore[arg-type]
        attention_skip=skip,
        mlp_skip=skip,
    )
    report = check_block(
        lambda: TransformerBlock(config), width=12, heads=3, properties=["shape"], examples=0
    )
    assert report.found == ("causal", "normalised", "skip")
    claims = report.claims
    assert (claims.causal, claims.normalised, claims.skip) == (causal, layer_norm == "post", skip)


def test_one_skip_of_two_is_none() -> None:
    config = BlockConfig(width=12, heads=3, hidden=16, mlp_skip=False)
    report = check_block(
        lambda: TransformerBlock(config), width=12, heads=3, properties=["shape"], examples=0
    )
    assert not report.claims.skip


def test_a_claim_is_believed_and_held_to() -> None:
    report = check_block(Good, width=8, heads=2, normalised=True, examples=2)
    assert report["output_norm"].result is Result.VIOLATED
    assert "normalised" not in report.found


def test_the_report_fits_a_log() -> None:
    text = str(of(Leak, causal=True))
    print(text)
    first, *rest = text.splitlines()
    assert first.startswith("Leak (width 8, heads 2): ")
    assert "1 violated" in first
    assert all(len(line) <= COLUMNS for line in rest if "again: " not in line)
    for property_ in PROPERTIES:
        assert any(line.startswith(f"{property_.name} ") for line in rest)


def test_the_drift_experiment_is_reported() -> None:
    """At N = 0 entries are N(0, 0.02²), so √8 · 0.02 = 0.057 long; then N, which is √8 at last."""
    report = of(Good)
    assert report.drift is not None
    inputs = [layer for layer in report.drift.layers if layer.name.startswith("input")]
    norms = [layer.estimates["mean_norm"].value for layer in inputs]
    assert norms[0] == pytest.approx(0.057, rel=0.1)
    assert norms[-1] == pytest.approx(2 * 8**0.5, rel=0.02)
    assert "cosine out" in str(report)


class NaNWhenAlike(nn.Module):
    """NaN where positions are nearly one vector: what only the drift experiment feeds it."""

    def forward(self, x: Tensor) -> Tensor:
        spread = x.std(dim=1, keepdim=True, correction=0).amax(dim=-1, keepdim=True)
        return torch.where((spread > 0) & (spread < 0.1 * x.abs().amax()), torch.nan, x)


def test_numbers_that_are_not_finite_under_drift_are_a_violation() -> None:
    report = check_block(NaNWhenAlike, width=8, heads=2, examples=0)
    assert report.drift is None
    assert "drift" in {outcome.property for outcome in report.violated}


def test_hypothesis_is_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(MissingError, match=r"pip install 'isotest\[testing\]'"):
        of(Good)


@pytest.mark.parametrize("allowed", [True, False])
def test_inside_somebodys_own_property_test(allowed: bool) -> None:
    checks = [HealthCheck.nested_given] if allowed else []

    @settings(max_examples=2, deadline=None, database=None, suppress_health_check=checks)
    @given(st.just(0))
    def somebodys_test(_: int) -> None:
        assert of(Good, properties=["causal"])

    if allowed:
        somebodys_test()
        return
    with pytest.raises(BlockError, match="nested_given"):
        somebodys_test()


def test_half_precision_is_refused() -> None:
    with pytest.raises(BlockError, match=r"linear\.weight in torch\.float16"):
        check_block(lambda: Good().half(), width=8, heads=2)


def test_negative_examples_are_refused() -> None:
    with pytest.raises(BlockError, match="examples"):
        check_block(Good, width=8, heads=2, examples=-1)


def test_a_batch_of_ones_own_is_tried_instead() -> None:
    report = check_block(
        SmallInput,
        width=8,
        heads=2,
        causal=True,
        properties=["causal"],
        batches=[TokenBatch(1, 2, 8), TokenBatch(1, 4, 8)],
    )
    assert report["causal"].text == "on 2 batches"
