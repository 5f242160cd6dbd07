"""What other gates let through: each of these is red here."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from isotest.estimate import Estimate
from isotest.gate.checks import FiniteCheck, MetricCheck, Regression
from isotest.gate.verdict import Outcome, Verdict

from .profiles import accepted, judge, profile, spread

if TYPE_CHECKING:
    from isotest.profile import Profile

UP = MetricCheck(baseline=Regression(margin=0.02, worse="up"))
CURVE = [0.1, 0.2, 0.3]


def test_a_nan_does_not_pass_a_minimum() -> None:
    new = profile({"anisotropy": [0.5, Estimate(math.nan, 0.0, (0.5, 0.5)), 0.5]})
    verdict = judge(new, None, MetricCheck(min=0.1))
    assert verdict.outcome is Outcome.FAILED
    assert verdict.layers == ("1",)
    assert "not finite" in verdict.headline
    assert "nan" in verdict.headline


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("check", [MetricCheck(max=9.0), MetricCheck(min=-9.0), UP, FiniteCheck()])
def test_a_non_finite_value_fails_every_check(bad: float, check: MetricCheck | FiniteCheck) -> None:
    new = profile({"anisotropy": [0.1, 0.2, Estimate(bad, 0.0, (0.3,) * 8)]})
    verdict = judge(new, accepted({"anisotropy": CURVE}), check)
    assert verdict.outcome is Outcome.FAILED
    assert verdict.layers == ("2",)


def test_a_non_finite_baseline_fails() -> None:
    base = accepted({"anisotropy": [0.1, 0.2, Estimate(math.nan, 0.0, (0.3,) * 8)]})
    verdict = judge(profile({"anisotropy": CURVE}), base, UP)
    assert verdict.outcome is Outcome.FAILED
    assert "in the baseline" in verdict.headline


def test_a_non_finite_block_or_error_bar_fails() -> None:
    for broken in (Estimate(0.1, math.nan, (0.1,) * 8), Estimate(0.1, 0.0, (math.nan,) * 8)):
        verdict = judge(profile({"anisotropy": [broken]}), accepted({"anisotropy": [0.1]}), UP)
        assert verdict.outcome is Outcome.FAILED


def without_metric(made: Profile, layer: int) -> Profile:
    layers = list(made.layers)
    layers[layer] = replace(layers[layer], estimates={})
    return replace(made, layers=tuple(layers))


def test_a_dropped_metric_fails_on_either_side() -> None:
    new, base = profile({"anisotropy": CURVE}), accepted({"anisotropy": CURVE})
    dropped = judge(without_metric(new, 1), base, UP)
    assert (dropped.outcome, dropped.layers) == (Outcome.FAILED, ("1",))
    assert "was not measured at layer 1" in dropped.headline
    added = judge(new, without_metric(base, 1), UP)
    assert (added.outcome, added.layers) == (Outcome.FAILED, ("1",))
    assert "not in the baseline" in added.headline
    limit = judge(without_metric(new, 1), None, MetricCheck(max=1.0))
    assert (limit.outcome, limit.layers) == (Outcome.FAILED, ("1",))


def test_a_dropped_or_added_or_swapped_layer_fails() -> None:
    curves = {"anisotropy": CURVE}
    full, base = profile(curves), accepted(curves)
    short = profile({"anisotropy": CURVE[:2]})
    assert "measured model lacks layer 2" in judge(short, base, UP).headline
    assert "baseline lacks layer 2" in judge(full, accepted({"anisotropy": CURVE[:2]}), UP).headline
    swapped = profile(curves, names=["1", "0", "2"])
    assert "another order" in judge(swapped, base, UP).headline
    for new, other in ((short, base), (full, accepted({"anisotropy": CURVE[:2]})), (swapped, base)):
        assert judge(new, other, UP).outcome is Outcome.FAILED


def test_a_layer_outside_the_selection_is_still_missed() -> None:
    check = MetricCheck(layers="0", baseline=Regression(margin=0.02))
    short = profile({"anisotropy": CURVE[:2]})
    assert judge(short, accepted({"anisotropy": CURVE}), check).outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("worse", "factor", "outcome"),
    [
        ("up", 10.0, Outcome.FAILED),
        ("up", 0.1, Outcome.PASSED),
        ("down", 0.1, Outcome.FAILED),
        ("down", 10.0, Outcome.PASSED),
        ("both", 10.0, Outcome.FAILED),
        ("both", 0.1, Outcome.FAILED),
    ],
)
def test_the_direction_that_counts_is_the_one_that_was_asked_for(
    worse: str, factor: float, outcome: Outcome
) -> None:
    check = MetricCheck(baseline=Regression(margin=0.02, worse=worse))  # type: ignore[arg-type]
    new = profile({"anisotropy": [0.05 * factor]})
    assert judge(new, accepted({"anisotropy": [0.05]}), check).outcome is outcome


def test_a_tenfold_rise_fails_by_default_and_a_limit_is_not_sign_swapped() -> None:
    new, base = profile({"anisotropy": [0.5]}), accepted({"anisotropy": [0.05]})
    assert judge(new, base, MetricCheck(baseline=Regression())).outcome is Outcome.FAILED
    assert judge(new, None, MetricCheck(max=0.4)).outcome is Outcome.FAILED
    assert judge(new, None, MetricCheck(max=0.6)).outcome is Outcome.PASSED
    assert judge(new, None, MetricCheck(min=0.6)).outcome is Outcome.FAILED
    assert judge(new, None, MetricCheck(min=0.4)).outcome is Outcome.PASSED


def test_a_missing_baseline_fails_with_the_command_that_makes_one() -> None:
    verdict = judge(profile({"anisotropy": CURVE}), None, UP)
    assert verdict.outcome is Outcome.FAILED
    assert verdict.missing_baseline
    assert "--isotest-update=missing" in verdict.message
    assert "baselines/vision/tiny/vit.json" in verdict.headline


def test_a_missing_baseline_fails_although_the_limit_beside_it_holds() -> None:
    check = MetricCheck(max=0.9, baseline=Regression(margin=0.02))
    verdict = judge(profile({"anisotropy": CURVE}), None, check)
    assert verdict.outcome is Outcome.FAILED
    assert verdict.missing_baseline


def assert_inconclusive_and_never_allowed(verdict: Verdict) -> None:
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert verdict.compared == 0
    assert not verdict.allowed


def test_a_model_compared_with_itself_is_no_comparison() -> None:
    check = MetricCheck(baseline=Regression(margin=0.02), inconclusive="pass")
    one = profile({"anisotropy": CURVE})
    for verdict in (judge(one, one, check), judge(one, replace(one), check)):
        assert_inconclusive_and_never_allowed(verdict)
        assert "compared with itself" in verdict.headline


def test_the_same_numbers_measured_again_are_green() -> None:
    blocks = spread(0.2, 0.05)
    verdict = judge(profile({"anisotropy": [blocks]}), accepted({"anisotropy": [blocks]}), UP)
    assert (verdict.outcome, verdict.compared) == (Outcome.PASSED, 1)
    at_the_floor = MetricCheck(baseline=Regression())
    verdict = judge(
        profile({"anisotropy": [blocks]}), accepted({"anisotropy": [blocks]}), at_the_floor
    )
    assert verdict.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    "check",
    [
        MetricCheck(max=0.5, inconclusive="pass"),
        MetricCheck(baseline=Regression(), inconclusive="pass"),
    ],
)
def test_nothing_compared_is_never_green(check: MetricCheck) -> None:
    vacuous = Estimate(None, undefined="no anisotropy to share", vacuous=True)
    curves = {"dimension_share": [vacuous, vacuous]}
    verdict = judge(profile(curves), accepted(curves), check, "dimension_share")
    assert_inconclusive_and_never_allowed(verdict)
    assert "nothing to compare" in verdict.headline


def test_a_selector_that_matches_nothing_is_never_green() -> None:
    check = MetricCheck(max=0.5, layers="final", inconclusive="pass")
    verdict = judge(profile({"anisotropy": CURVE}), None, check)
    assert_inconclusive_and_never_allowed(verdict)
    assert "layers 0-2" in verdict.headline


def test_a_check_without_any_demand_is_never_green() -> None:
    assert_inconclusive_and_never_allowed(
        judge(profile({"anisotropy": CURVE}), None, MetricCheck(inconclusive="pass"))
    )


def test_other_conditions_are_not_comparable_and_named() -> None:
    check = MetricCheck(baseline=Regression(margin=0.02), inconclusive="pass")
    verdict = judge(
        profile({"anisotropy": CURVE}),
        accepted({"anisotropy": CURVE}),
        check,
        differences=["data: the baseline saw abc, this run def"],
    )
    assert_inconclusive_and_never_allowed(verdict)
    assert "not comparable: data: the baseline saw abc" in verdict.headline


def test_other_conditions_do_not_hide_a_broken_limit() -> None:
    check = MetricCheck(max=0.1, baseline=Regression(margin=0.02))
    verdict = judge(
        profile({"anisotropy": CURVE}), accepted({"anisotropy": CURVE}), check, differences=["data"]
    )
    assert verdict.outcome is Outcome.FAILED
    assert "above max = 0.1" in verdict.headline
    assert "not comparable: data" in verdict.message


def test_other_blocks_are_not_comparable() -> None:
    base = accepted({"anisotropy": [0.1]}, blocks=4)
    verdict = judge(profile({"anisotropy": [0.1]}), base, UP)
    assert_inconclusive_and_never_allowed(verdict)
    assert "not comparable" in verdict.headline
