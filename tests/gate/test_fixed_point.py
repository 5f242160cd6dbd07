"""``fixed_point``: the false greens first, then places a reader can see."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from isotest.errors import IsotestError
from isotest.estimate import Estimate
from isotest.gate.checks import FixedPointCheck
from isotest.gate.crossing import crossing
from isotest.gate.verdict import Outcome
from isotest.wanted import wanted_metrics

from .experiments import experiment
from .profiles import BLOCKS, judge, profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.gate.verdict import Verdict
    from isotest.profile import Profile

    from .profiles import Values

ANY = FixedPointCheck()


def met(
    outputs: Sequence[Values],
    check: FixedPointCheck = ANY,
    axis: Sequence[float] | None = None,
    blocks: int = BLOCKS,
) -> Verdict:
    """The verdict where what enters is as long as the place says, from 10 on, and 10 apart."""
    inputs = [10.0 + 10.0 * k for k in range(len(outputs))]
    made = experiment(inputs, outputs, metric="mean_norm", axis=axis, blocks=blocks)
    return judge(made, None, check, "fixed_point")


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ([15.0, 25.0, 35.0], "is nowhere below zero"),
        ([5.0, 15.0, 25.0], "is nowhere above zero"),
        ([15.0, 15.0, 35.0], "changes its sign 2 times: between N = 0 and 10, N = 10 and 20"),
        # A block that hands on what it gets has no fixed point: every point is one.
        ([10.0, 20.0, 30.0], "is zero everywhere"),
        ([10.001, 19.999, 30.001], "is zero everywhere"),
        # Nor is a stretch on which both agree a place.
        ([15.0, 20.0, 30.0, 35.0], "is zero from N = 10 to 20, which is no single place"),
        # It touches, and does not cross.
        ([15.0, 20.0, 35.0], "is nowhere below zero"),
        ([10.0, 25.0, 35.0], "is nowhere below zero"),
    ],
)
def test_no_place_or_several_fail(outputs: list[Values], words: str) -> None:
    verdict = met(outputs)
    assert verdict.outcome is Outcome.FAILED
    assert f"there is no one fixed point: mean_norm minus input {words}" in verdict.headline
    assert "output.0:" in verdict.message


def test_a_block_of_sequences_without_one_fails() -> None:
    """On average they meet at N = 5; in block 3 the output stays longer."""
    low = np.full(BLOCKS, 15.0)
    low[3] = 25.0
    verdict = met([15.0, low])
    assert verdict.outcome is Outcome.FAILED
    assert (
        f"in 1 of {BLOCKS} there is none; in block 3, mean_norm minus input is nowhere below"
        in (verdict.headline)
    )


def test_a_block_that_crosses_the_other_way_fails() -> None:
    """Output minus input goes from +5 to -5 in all blocks but one, where it is the reverse."""
    first, second = np.full(BLOCKS, 15.0), np.full(BLOCKS, 15.0)
    first[0], second[0] = 5.0, 25.0
    verdict = met([first, second])
    assert verdict.outcome is Outcome.FAILED
    assert "in block 0, mean_norm minus input crosses zero the other way" in verdict.headline


def test_one_block_cannot_tell() -> None:
    verdict = met([15.0, 15.0], blocks=1)
    assert (verdict.outcome, verdict.allowed) == (Outcome.INCONCLUSIVE, False)
    assert "it takes two blocks" in verdict.headline


@pytest.mark.parametrize("axis", [[0.0, 0.0], [10.0, 0.0]])
def test_an_axis_that_does_not_increase_fails(axis: list[float]) -> None:
    verdict = met([15.0, 15.0], axis=axis)
    assert (verdict.outcome, verdict.layers) == (Outcome.FAILED, ("output.0", "output.1"))
    assert "N does not increase from layer output.0" in verdict.headline


def test_layers_without_a_place_fail() -> None:
    names = ["input.0", "input.1", "output.0", "output.1"]
    made = profile({"mean_norm": [10.0, 20.0, 15.0, 15.0]}, names=names)
    verdict = judge(made, None, ANY, "fixed_point")
    assert verdict.outcome is Outcome.FAILED
    assert "layer output.0-1 has no place on an axis" in verdict.headline


MET = experiment([10.0, 20.0], [15.0, 15.0], metric="mean_norm")


def spoilt(name: str, estimate: Estimate) -> Profile:
    layers = tuple(
        replace(layer, estimates={"mean_norm": estimate}) if layer.name == name else layer
        for layer in MET.layers
    )
    return replace(MET, layers=layers)


@pytest.mark.parametrize("side", ["input.1", "output.1"])
@pytest.mark.parametrize(
    "estimate",
    [
        Estimate(math.nan),
        Estimate(None, undefined="no direction"),
        Estimate(None, undefined="nothing there", vacuous=True),
    ],
)
def test_a_point_without_a_value_fails(side: str, estimate: Estimate) -> None:
    verdict = judge(spoilt(side, estimate), None, ANY, "fixed_point")
    assert (verdict.outcome, verdict.layers) == (Outcome.FAILED, ("output.1",))


def test_a_point_without_a_value_on_both_sides_fails() -> None:
    nothing = Estimate(None, undefined="nothing there", vacuous=True)
    made = experiment([10.0, nothing, 30.0], [15.0, nothing, 15.0], metric="mean_norm")
    verdict = judge(made, None, ANY, "fixed_point")
    assert (verdict.outcome, verdict.layers) == (Outcome.FAILED, ("output.1",))
    assert "undefined at layer output.1 (N = 10): nothing there" in verdict.headline


@pytest.mark.parametrize(
    ("check", "outcome", "words"),
    [
        (FixedPointCheck(of="outptu"), Outcome.INCONCLUSIVE, "did you mean 'output'"),
        (FixedPointCheck(minus="inptu"), Outcome.INCONCLUSIVE, "did you mean 'input'"),
        (FixedPointCheck(of="input"), Outcome.INCONCLUSIVE, "meets itself everywhere"),
        (FixedPointCheck(metric="anisotropy"), Outcome.FAILED, "not measured at layer output.0"),
    ],
)
def test_what_is_not_there(check: FixedPointCheck, outcome: Outcome, words: str) -> None:
    verdict = judge(MET, None, check, "fixed_point")
    assert (verdict.outcome, verdict.allowed) == (outcome, False)
    assert words in verdict.message


def test_one_point_is_no_curve() -> None:
    verdict = met([10.0])
    assert (verdict.outcome, verdict.allowed) == (Outcome.INCONCLUSIVE, False)


def test_its_metric_is_measured_whatever_else_is_asked_for() -> None:
    assert "mean_norm" in wanted_metrics(["anisotropy"], {"fixed_point": ANY})


def test_an_unknown_metric() -> None:
    with pytest.raises(IsotestError, match="unknown metric 'mean_nrom'"):
        met([15.0, 15.0], FixedPointCheck(metric="mean_nrom"))


def test_the_place_its_interval_and_the_limits() -> None:
    """Outputs of 15 ± b meet the inputs 10 + N at N = 5 ± b: the interval is that of the b."""
    own = np.linspace(-1.0, 1.0, BLOCKS)
    outputs: list[Values] = [15.0 + own, 15.0 + own, 15.0 + own]
    low, high = stats.t.interval(0.95, BLOCKS - 1, 5.0, stats.sem(own))
    verdict = met(outputs, FixedPointCheck(min=5.0, max=5.0))
    assert (verdict.outcome, verdict.compared) == (Outcome.PASSED, 3)
    assert verdict.properties["fixed_point"] == pytest.approx(5.0)
    assert verdict.properties["low"] == pytest.approx(low)
    assert verdict.properties["high"] == pytest.approx(high)
    assert (
        f"mean_norm of output meets that of input at N = 5.00 (95% interval {low:.2f} to "
        f"{high:.2f} over {BLOCKS} blocks), within min = 5 and max = 5"
    ) in verdict.headline
    assert "mean_norm of output falls below that of input" in verdict.message

    verdict = met(outputs, FixedPointCheck(max=4.9))
    assert (verdict.outcome, verdict.layers) == (Outcome.FAILED, ("output.0", "output.1"))
    assert "above max = 4.9" in verdict.headline
    assert "reaches back across the limit" in verdict.message
    sides = f"15.00 at layer output.0 (N = 0), 10.00 at input.0: +5.00 ± {stats.sem(own):.2f}"
    assert sides in verdict.message
    # Of the shorter side, too, what was measured and not what its floor is a share of.
    assert "15.00 at layer output.1 (N = 10), 20.00 at input.1: -5.00" in verdict.message
    verdict = met(outputs, FixedPointCheck(min=6.0))
    assert verdict.outcome is Outcome.FAILED
    assert "below min = 6" in verdict.headline
    assert "clears the limit" in verdict.message


def test_a_crossing_exactly_at_a_point_is_there() -> None:
    verdict = met([15.0, 20.0, 25.0])
    assert verdict.outcome is Outcome.PASSED
    assert verdict.properties["fixed_point"] == 10.0


def test_from_below_is_said() -> None:
    verdict = met([5.0, 25.0])
    assert verdict.outcome is Outcome.PASSED
    assert verdict.properties["direction"] == "rises"


@given(
    st.floats(0.5, 99.5),
    st.floats(0.1, 100),
    st.booleans(),
    st.lists(st.integers(1, 99), min_size=1, max_size=9, unique=True),
)
def test_of_a_straight_line_the_root_is_found(
    root: float, slope: float, falls: bool, inner: list[int]
) -> None:
    axis = [0.0, *map(float, sorted(inner)), 100.0]
    sign = -1.0 if falls else 1.0
    found = crossing(axis, [sign * slope * (place - root) for place in axis], [0.0] * len(axis))
    assert not isinstance(found, str)
    assert found.at == pytest.approx(root)
    assert found.falls is falls
    assert axis[found.before] <= root <= axis[found.after]
