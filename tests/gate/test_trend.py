"""Trends over depth: the false greens first, then against scipy's t test on the blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from isotest.estimate import Estimate
from isotest.gate.checks import MetricCheck, Trend, without_baseline
from isotest.gate.verdict import Outcome

from .profiles import BLOCKS, judge, profile, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.gate.verdict import Verdict

    from .profiles import Values

FALLS = Trend(direction="falls")


def trend(
    curve: Sequence[Values],
    demand: Trend = FALLS,
    layers: str = "any",
    names: Sequence[str] | None = None,
) -> Verdict:
    made = profile({"anisotropy": curve}, names=names)
    return judge(made, None, MetricCheck(trend=demand, layers=layers))


def test_a_flat_curve_does_not_fall() -> None:
    verdict = trend([0.5, 0.5, 0.5])
    assert (verdict.outcome, verdict.layers) == (Outcome.FAILED, ("1", "2"))


def test_a_fall_below_the_floor_is_no_fall() -> None:
    """The floor of ``anisotropy`` is 1e-4: less than that is rounding."""
    assert trend([0.5, 0.49995]).outcome is Outcome.FAILED
    assert trend([0.5, 0.4998]).outcome is Outcome.PASSED


def test_one_rise_in_a_long_fall_fails_and_is_named() -> None:
    verdict = trend([0.9, 0.6, 0.7, 0.2])
    assert (verdict.outcome, verdict.layers) == (Outcome.FAILED, ("2",))
    assert "anisotropy: does not fall from layer 1 to 2: 0.6" in verdict.headline
    assert "0:0.9 1:0.6 2:0.7 3:0.2" in verdict.message
    assert trend([0.9, 0.6, 0.7, 0.2], layers="0-1").outcome is Outcome.PASSED


def test_either_direction_and_the_number_of_steps() -> None:
    rising = [0.1, 0.2, 0.4]
    assert trend(rising).outcome is Outcome.FAILED
    verdict = trend(rising, Trend(direction="rises"))
    assert (verdict.outcome, verdict.compared) == (Outcome.PASSED, 2)
    assert trend(rising, Trend(direction="rises", by=0.15)).layers == ("1",)


def test_what_the_error_bar_leaves_open_is_inconclusive_and_may_be_accepted() -> None:
    curve = [spread(0.30, 0.05), spread(0.29, -0.05)]
    verdict = trend(curve)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "more sequences would tell" in verdict.message
    check = MetricCheck(trend=FALLS, inconclusive="pass")
    assert judge(profile({"anisotropy": curve}), None, check).allowed


def test_what_two_layers_share_is_no_noise() -> None:
    """Blocks that differ by 0.1 from each other, and a step of 0.001 in each of them."""
    blocks = np.array(spread(0.3, 0.1))
    assert trend([blocks, blocks - 0.001]).outcome is Outcome.PASSED


@given(
    st.lists(st.floats(-0.2, 0.2), min_size=BLOCKS, max_size=BLOCKS).filter(
        lambda steps: float(np.std(steps)) > 1e-3
    ),
    st.sampled_from(["falls", "rises"]),
    st.floats(0, 0.1),
)
def test_one_step_is_the_paired_t_test(
    steps: list[float], direction: Literal["falls", "rises"], by: float
) -> None:
    before = np.linspace(0.2, 0.6, BLOCKS)
    verdict = trend([before, before + np.array(steps)], Trend(direction=direction, by=by))
    sign = -1 if direction == "falls" else 1
    signed, smallest = sign * np.array(steps), max(by, 1e-4)
    large = float(stats.ttest_1samp(signed, smallest, alternative="greater").pvalue)
    small = float(stats.ttest_1samp(signed, smallest, alternative="less").pvalue)
    if min(abs(large - 0.01), abs(small - 0.01)) > 1e-9:
        expected = (
            Outcome.FAILED
            if small < 0.01
            else Outcome.PASSED
            if large < 0.01
            else Outcome.INCONCLUSIVE
        )
        assert verdict.outcome is expected


def test_two_layers_of_a_choice_are_compared_with_each_other() -> None:
    names = ["0", "1", "2", "final"]
    rises = Trend(direction="rises", by=0.3)
    assert trend([0.9, 0.1, 0.2, 0.6], rises, "last,final", names).outcome is Outcome.PASSED
    assert trend([0.9, 0.1, 0.4, 0.6], rises, "last,final", names).outcome is Outcome.FAILED


def test_the_join_of_encoder_and_decoder_is_no_step() -> None:
    names = ["encoder.0", "encoder.1", "decoder.0", "decoder.1"]
    verdict = trend([0.4, 0.3, 0.9, 0.8], names=names)
    assert (verdict.outcome, verdict.compared) == (Outcome.PASSED, 2)


@pytest.mark.parametrize(
    ("curve", "names", "layers", "words"),
    [
        ([0.5, 0.4], ["0", "1"], "last,final", "'last,final' matches nothing"),
        ([0.5, 0.4], ["encoder.0", "decoder.0"], "any", "only encoder.0, decoder.0 counts"),
        ([0.5], ["0"], "any", "only 0 counts"),
    ],
)
def test_where_there_is_no_step_nothing_was_compared(
    curve: list[Values], names: list[str], layers: str, words: str
) -> None:
    made = profile({"anisotropy": curve}, names=names)
    verdict = judge(made, None, MetricCheck(trend=FALLS, layers=layers, inconclusive="pass"))
    assert (verdict.outcome, verdict.allowed) == (Outcome.INCONCLUSIVE, False)
    assert words in verdict.message


def test_without_blocks_there_is_no_error_bar_and_no_verdict() -> None:
    one_block = profile({"anisotropy": [0.9, 0.1]}, blocks=1)
    verdict = judge(one_block, None, MetricCheck(trend=FALLS, inconclusive="pass"))
    assert (verdict.outcome, verdict.allowed) == (Outcome.INCONCLUSIVE, False)
    assert "two blocks" in verdict.message


@pytest.mark.parametrize(
    ("broken", "outcome"),
    [
        (Estimate(float("nan")), Outcome.FAILED),
        (Estimate(None, undefined="no direction"), Outcome.FAILED),
        # With nothing to measure there, the step leads past it.
        (Estimate(None, undefined="nothing to measure", vacuous=True), Outcome.PASSED),
    ],
)
def test_values_that_are_none(broken: Estimate, outcome: Outcome) -> None:
    verdict = trend([0.9, broken, 0.1])
    assert verdict.outcome is outcome


def test_a_metric_that_was_not_measured_fails() -> None:
    made = profile({"anisotropy": [0.9, 0.1]})
    lacking = replace(made, layers=(made.layers[0], replace(made.layers[1], estimates={})))
    assert judge(lacking, None, MetricCheck(trend=FALLS)).outcome is Outcome.FAILED


def test_a_trend_needs_no_baseline_and_joins_the_other_demands() -> None:
    check = MetricCheck(trend=FALLS, max=0.95, min=0.2)
    assert without_baseline(check) == check
    verdict = judge(profile({"anisotropy": [0.9, 0.1]}), None, check)
    assert verdict.outcome is Outcome.FAILED
    assert "passed: anisotropy falls at each of 1 steps" in verdict.message
