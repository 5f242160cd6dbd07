"""Limits on point values."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from isotest.errors import IsotestError
from isotest.estimate import Estimate
from isotest.gate.checks import MetricCheck
from isotest.gate.verdict import Outcome

from .profiles import judge, profile, spread

CURVE = profile({"anisotropy": [0.1, 0.5, 0.9, 0.2]}, names=["0", "1", "2", "final"])


@pytest.mark.parametrize(
    ("check", "layers"),
    [
        (MetricCheck(max=0.4), ("1", "2")),
        (MetricCheck(min=0.3), ("0", "final")),
        (MetricCheck(max=0.8, min=0.15), ("0", "2")),
        (MetricCheck(max=0.4, layers="last"), ("2",)),
        (MetricCheck(max=0.4, layers="1"), ("1",)),
    ],
)
def test_the_layers_outside_are_the_reason(check: MetricCheck, layers: tuple[str, ...]) -> None:
    verdict = judge(CURVE, None, check)
    assert (verdict.outcome, verdict.layers) == (Outcome.FAILED, layers)


@pytest.mark.parametrize(
    ("check", "compared"),
    [
        (MetricCheck(max=0.9, min=0.1), 4),
        (MetricCheck(max=0.4, layers="final"), 1),
        (MetricCheck(min=0.5, layers="1-2"), 2),
    ],
)
def test_a_limit_is_inclusive_and_counts_the_selected_layers(
    check: MetricCheck, compared: int
) -> None:
    verdict = judge(CURVE, None, check)
    assert (verdict.outcome, verdict.compared) == (Outcome.PASSED, compared)


def test_reach_is_a_limit_on_the_highest_of_the_selected_layers() -> None:
    assert judge(CURVE, None, MetricCheck(reach=0.9)).outcome is Outcome.PASSED
    verdict = judge(CURVE, None, MetricCheck(reach=0.91))
    assert (verdict.outcome, verdict.layers) == (Outcome.FAILED, ("2",))
    assert "highest at layer 2 of 4, 0.9" in verdict.headline
    assert "0:0.1 1:0.5 2:0.9 final:0.2" in verdict.message
    elsewhere = judge(CURVE, None, MetricCheck(reach=0.9, layers="0-1"))
    assert (elsewhere.outcome, elsewhere.layers) == (Outcome.FAILED, ("1",))


@pytest.mark.parametrize(
    ("estimate", "outcome"),
    [
        (Estimate(float("inf")), Outcome.FAILED),
        (Estimate(None, undefined="no direction"), Outcome.FAILED),
        (Estimate(None, undefined="nothing to measure", vacuous=True), Outcome.INCONCLUSIVE),
    ],
)
def test_what_has_no_value_reaches_nothing(estimate: Estimate, outcome: Outcome) -> None:
    one = profile({"anisotropy": [estimate]})
    assert judge(one, None, MetricCheck(reach=0.0)).outcome is outcome


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_a_limit_is_plain_comparison(value: float, limit: float) -> None:
    one = profile({"anisotropy": [value]})
    upper = judge(one, None, MetricCheck(max=limit)).outcome
    lower = judge(one, None, MetricCheck(min=limit)).outcome
    point = one.layers[0].estimates["anisotropy"].value
    assert point is not None
    assert (upper is Outcome.PASSED) == (point <= limit)
    assert (lower is Outcome.PASSED) == (point >= limit)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_limit_that_is_no_number_is_refused(bad: float) -> None:
    with pytest.raises(ValidationError):
        MetricCheck(max=bad)
    with pytest.raises(ValidationError):
        MetricCheck(min=bad)


def test_the_message_says_whether_the_interval_clears_the_limit() -> None:
    check = MetricCheck(max=0.4)
    sure = judge(profile({"anisotropy": [spread(0.5, 0.01)]}), None, check)
    unsure = judge(profile({"anisotropy": [spread(0.5, 1.0)]}), None, check)
    assert sure.outcome is unsure.outcome is Outcome.FAILED
    assert "interval clears the limit" in sure.message
    assert "interval reaches back across the limit" in unsure.message


def test_a_limit_needs_no_error_bar() -> None:
    one = profile({"anisotropy": [0.5]}, blocks=1)
    assert judge(one, None, MetricCheck(max=0.6)).outcome is Outcome.PASSED
    verdict = judge(one, None, MetricCheck(max=0.4))
    assert verdict.outcome is Outcome.FAILED
    assert "no error bar" in verdict.message


def test_undefined_fails_unless_there_is_merely_nothing_to_measure() -> None:
    vacuous = Estimate(None, undefined="anisotropy is zero", vacuous=True)
    dead = Estimate(None, undefined="every representation has zero length")
    verdict = judge(profile({"anisotropy": [0.1, vacuous]}), None, MetricCheck(max=0.4))
    assert (verdict.outcome, verdict.compared) == (Outcome.PASSED, 1)
    verdict = judge(profile({"anisotropy": [0.1, dead]}), None, MetricCheck(max=0.4))
    assert (verdict.outcome, verdict.layers) == (Outcome.FAILED, ("1",))
    assert "zero length" in verdict.headline


def test_an_unknown_metric_or_selector_is_an_error() -> None:
    with pytest.raises(IsotestError, match="did you mean 'anisotropy'"):
        judge(CURVE, None, MetricCheck(max=0.4), "anisotropie")
    with pytest.raises(IsotestError, match="layers = 'lats'"):
        judge(CURVE, None, MetricCheck(max=0.4, layers="lats"))


def test_properties_are_plain_and_say_what_was_nearest() -> None:
    verdict = judge(CURVE, None, MetricCheck(max=0.95))
    assert verdict.properties["nearest_to_max"] == pytest.approx(0.9)
    assert verdict.properties["nearest_to_max_layer"] == "2"
    assert verdict.properties["values"] == "0:0.1 1:0.5 2:0.9 final:0.2"
    assert {type(value) for value in verdict.properties.values()} <= {str, float}
