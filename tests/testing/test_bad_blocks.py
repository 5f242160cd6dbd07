"""What cannot be tried ends in a named outcome or in one clear message."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import nn

from isotest.errors import IsotestError
from isotest.testing import BlockReport, BlockViolationError, Result, check_block
from tests.testing.broken_blocks import HEADS, WIDTH, Healthy

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor


def checked(factory: Callable[[], nn.Module], *, masked: bool = False) -> BlockReport:
    return check_block(factory, width=WIDTH, heads=HEADS, masked=masked, examples=5)


def only_violated(report: BlockReport) -> tuple[str, str]:
    """Name and text of the only violated property; the others cannot be tried and say why."""
    assert not report
    (outcome,) = report.violated
    assert outcome.reproduce
    for other in report.not_applicable:
        assert other.text
    with pytest.raises(BlockViolationError) as raised:
        report.raise_if_violated()
    assert outcome.property in str(raised.value)
    assert "Traceback" not in str(raised.value)
    assert "hypothesis" not in str(raised.value).lower()
    return outcome.property, outcome.text


class Tuple(Healthy):
    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        return super().forward(x, valid), None  # type: ignore[return-value]


class Shorter(Healthy):
    """Without the first position, as a block that takes off a class token."""

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        return super().forward(x, valid)[:, 1:]


class NeedsMask(Healthy):
    def forward(self, x: Tensor, valid: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x, valid)


class NeedsTwoMore(Healthy):
    def forward(  # type: ignore[override]
        self, x: Tensor, cosines: Tensor, sines: Tensor
    ) -> Tensor:
        return super().forward(x * cosines + sines)


class DropsInTraining(Healthy):
    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.5)

    def add(self, x: Tensor, change: Tensor) -> Tensor:
        output: Tensor = x + self.dropout(change)
        return output


class StaysInTraining(DropsInTraining):
    """`eval()` does nothing, as where somebody overrides `train` to freeze a part."""

    def train(self, mode: bool = True) -> StaysInTraining:
        super().train(True)
        return self


class HalfPrecisionScores(Healthy):
    """Scores in float16, which ends at 65,504, as without autocast's care."""

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        return super().scores(query.half(), key.half()).to(query.dtype)


class NaN(Healthy):
    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        return super().forward(x, valid) * torch.nan


class Noise(Healthy):
    def add(self, x: Tensor, change: Tensor) -> Tensor:
        return x + change + 0.01 * torch.randn_like(x)


class Counting(Healthy):
    """Not random, but with a memory: each call adds more."""

    calls = 0

    def add(self, x: Tensor, change: Tensor) -> Tensor:
        self.calls += 1
        return x + change * self.calls


def missing_file() -> nn.Module:
    raise FileNotFoundError("weights.bin is not there")


def test_a_factory_that_raises() -> None:
    with pytest.raises(IsotestError, match=r"missing_file.*FileNotFoundError: weights\.bin"):
        checked(missing_file)


@pytest.mark.parametrize(
    ("factory", "found"),
    [
        (lambda: None, "NoneType"),
        (lambda: torch.relu, "builtin_function_or_method"),
        (lambda: Healthy, "type"),
        (Healthy(), "lambda: block"),
        ("mypackage.blocks:Block", "mypackage.blocks:Block"),
    ],
)
def test_no_factory_of_a_module(factory: Callable[[], nn.Module], found: str) -> None:
    with pytest.raises(IsotestError, match=found):
        checked(factory)


@pytest.mark.parametrize(
    ("width", "heads"), [(WIDTH, 3), (WIDTH, 0), (0, 1), (WIDTH, -1), (WIDTH, 2 * WIDTH)]
)
def test_impossible_sizes(width: int, heads: int) -> None:
    with pytest.raises(IsotestError, match=rf"width={width} and heads={heads}"):
        check_block(Healthy, width=width, heads=heads)


def test_an_unknown_property() -> None:
    with pytest.raises(IsotestError, match=r"'casual'.*causal"):
        check_block(Healthy, width=WIDTH, heads=HEADS, properties=["casual"])


def test_a_block_of_another_width() -> None:
    """torch says which sizes do not fit; the report says whose."""
    name, text = only_violated(check_block(Healthy, width=2 * WIDTH, heads=HEADS))
    assert name == "shape"
    assert "raised RuntimeError" in text
    assert str(WIDTH) in text


def test_a_tuple() -> None:
    name, text = only_violated(checked(Tuple))
    assert name == "shape"
    assert "a tuple of 2" in text


def test_another_length() -> None:
    name, text = only_violated(checked(Shorter))
    assert name == "shape"
    assert "(1, 2, 16) became (1, 1, 16)" in text


def test_a_block_that_needs_a_mask() -> None:
    name, text = only_violated(checked(NeedsMask))
    assert name == "shape"
    assert "masked=True" in text
    assert not checked(NeedsMask, masked=True).violated


def test_a_block_that_needs_more_than_a_mask() -> None:
    name, text = only_violated(checked(NeedsTwoMore))
    assert name == "shape"
    assert "cosines" in text
    assert "masked=True" not in text


def test_a_block_that_takes_no_mask() -> None:
    """Claimed to take one: told by torch's own words, under the name of a property."""
    name, text = only_violated(checked(lambda: nn.Linear(WIDTH, WIDTH), masked=True))
    assert name == "shape"
    assert "positional argument" in text


def test_training_mode_is_left_and_said() -> None:
    report = checked(lambda: DropsInTraining().train())
    assert not report.violated, str(report)
    assert "training mode" in str(report)


def test_a_block_that_stays_in_training_mode() -> None:
    name, text = only_violated(checked(StaysInTraining))
    assert name == "deterministic"
    assert "training" in text


def test_nan_for_large_input_only() -> None:
    report = checked(HalfPrecisionScores)
    assert "finite" in {outcome.property for outcome in report.violated}
    assert "NaN" in report["finite"].text
    assert report["deterministic"].result is Result.HOLDS


def test_nan_for_every_input() -> None:
    name, text = only_violated(checked(NaN))
    assert name == "finite"
    assert "NaN" in text


@pytest.mark.parametrize("block", [Noise, Counting])
def test_not_deterministic(block: type[Healthy]) -> None:
    name, text = only_violated(checked(block))
    assert name == "deterministic"
    assert "same input" in text


def test_nothing_tried_is_no_success() -> None:
    report = check_block(Healthy, width=WIDTH, heads=HEADS, causal=False, properties=["causal"])
    assert not report.violated
    assert not report
    with pytest.raises(BlockViolationError):
        report.raise_if_violated()
