"""Changes against margins: t tests by hand, three outcomes, margins that would have passed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from isotest.estimate import Estimate
from isotest.gate.checks import MetricCheck, Regression
from isotest.gate.regressions import (
    Judgement,
    LayerChange,
    judge_changes,
    layer_margin,
    margin_that_passes,
    relative_margin_that_passes,
)
from isotest.gate.verdict import Outcome
from isotest.statistics.registry import METRICS

from .profiles import accepted, judge, profile, spread

if TYPE_CHECKING:
    from isotest.statistics.metric import Worse

FLOOR = 1e-4


def change(
    delta: float, se: float, margin: float, *, df: int = 63, base: float = 0.3
) -> LayerChange:
    return LayerChange("1", base, base + delta, delta, se, df, margin)


@pytest.mark.parametrize("delta", [-0.03, 0.0, 0.011, 0.05])
@pytest.mark.parametrize("se", [0.001, 0.02])
def test_p_values_are_one_sided_t_tests(delta: float, se: float) -> None:
    one = change(delta, se, 0.01)
    up, down = stats.t(63).sf((delta - 0.01) / se), stats.t(63).sf((-delta - 0.01) / se)
    assert one.p_beyond("up") == pytest.approx(up, rel=1e-9)
    assert one.p_beyond("down") == pytest.approx(down, rel=1e-9)
    assert one.p_beyond("both") == pytest.approx(min(1, 2 * min(up, down)), rel=1e-9)
    assert one.p_within("up") == pytest.approx(1 - up, rel=1e-9)
    assert one.p_within("down") == pytest.approx(1 - down, rel=1e-9)
    assert one.p_within("both") == pytest.approx(max(1 - up, 1 - down), rel=1e-9)


def test_the_paired_test_at_margin_zero_is_scipys() -> None:
    rng = np.random.default_rng(0)
    before, after = rng.normal(0.3, 0.05, 8), rng.normal(0.32, 0.05, 8)
    check = MetricCheck(baseline=Regression(margin=0.0, worse="up"))
    verdict = judge(profile({"anisotropy": [after]}), accepted({"anisotropy": [before]}), check)
    floor = METRICS["anisotropy"].floor
    expected = stats.ttest_rel(after, before + floor, alternative="greater").pvalue
    assert verdict.p_value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("delta", "outcome"),
    [(0.010, Outcome.PASSED), (0.020, Outcome.INCONCLUSIVE), (0.030, Outcome.FAILED)],
)
def test_the_outcome_is_within_straddling_or_beyond(delta: float, outcome: Outcome) -> None:
    # se 0.001, margin 0.02: five and more error bars either side of it decide, none in between.
    assert judge_changes([change(delta, 0.001, 0.02)], "up", 0.01).outcome is outcome


def test_one_layer_beyond_fails_and_one_undecided_keeps_from_passing() -> None:
    calm, unclear, risen = (change(d, 0.001, 0.02) for d in (0.0, 0.02, 0.03))
    assert judge_changes([calm, calm], "up", 0.01).outcome is Outcome.PASSED
    assert judge_changes([calm, unclear], "up", 0.01).outcome is Outcome.INCONCLUSIVE
    assert judge_changes([calm, unclear, risen], "up", 0.01).outcome is Outcome.FAILED


def test_many_layers_need_stronger_evidence() -> None:
    # p = 0.005 alone is below 0.01, among ten layers it is 0.05.
    t = float(stats.t(63).isf(0.005))
    suspicious, calm = change(0.02 + t * 0.001, 0.001, 0.02), change(0.0, 0.001, 0.02)
    assert judge_changes([suspicious], "up", 0.01).outcome is Outcome.FAILED
    ten = judge_changes([suspicious] + [calm] * 9, "up", 0.01)
    assert ten.adjusted[0] == pytest.approx(0.05)
    assert ten.outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize("worse", ["up", "down", "both"])
def test_without_any_spread_the_comparison_is_exact(worse: Worse) -> None:
    sign = -1.0 if worse == "down" else 1.0
    for delta, outcome in ((0.02, Outcome.PASSED), (0.0201, Outcome.FAILED)):
        judged = judge_changes([change(sign * delta, 0.0, 0.02)], worse, 0.01)
        assert judged.outcome is outcome


def test_a_tiny_spread_divides_by_nothing() -> None:
    for se in (5e-324, 1e-300, 1e-30):
        assert judge_changes([change(0.0, se, 1e-4)], "both", 0.01).outcome is Outcome.PASSED
        assert judge_changes([change(0.1, se, 1e-4)], "both", 0.01).outcome is Outcome.FAILED


def test_the_floor_holds_where_the_margin_and_the_spread_are_zero() -> None:
    check = MetricCheck(baseline=Regression())
    floor = METRICS["anisotropy"].floor
    base = accepted({"anisotropy": [0.25]})
    assert judge(profile({"anisotropy": [0.25 + floor / 2]}), base, check).outcome is Outcome.PASSED
    assert judge(profile({"anisotropy": [0.25 + floor * 2]}), base, check).outcome is Outcome.FAILED


def test_the_margin_is_the_largest_of_three() -> None:
    assert layer_margin(1e-4, 5.0, 0.0, None) == 1e-4
    assert layer_margin(1e-4, 5.0, 0.2, None) == 0.2
    assert layer_margin(1e-4, -5.0, 0.2, 0.1) == 0.5
    assert layer_margin(0.0, 0.0, 0.0, 0.1) == 0.0


changes = st.lists(
    st.builds(
        LayerChange,
        layer=st.just("1"),
        base=st.floats(0.01, 1.0),
        new=st.just(0.5),
        change=st.floats(-0.5, 0.5),
        se=st.one_of(st.just(0.0), st.floats(1e-9, 0.2)),
        df=st.just(15),
        margin=st.floats(0.0, 0.5),
    ),
    min_size=1,
    max_size=6,
)
directions = st.sampled_from(["up", "down", "both"])


def at_margin(made: list[LayerChange], worse: Worse, margin: float) -> Judgement:
    layers = [replace(one, margin=max(FLOOR, margin), floor=FLOOR) for one in made]
    return judge_changes(layers, worse, 0.01)


SEVERITY = [Outcome.PASSED, Outcome.INCONCLUSIVE, Outcome.FAILED]


@given(changes, directions, st.floats(0, 1), st.floats(0, 1))
def test_a_larger_margin_never_makes_it_worse(
    made: list[LayerChange], worse: Worse, one: float, other: float
) -> None:
    small, large = sorted([one, other])
    before, after = at_margin(made, worse, small), at_margin(made, worse, large)
    assert SEVERITY.index(after.outcome) <= SEVERITY.index(before.outcome)


@given(changes, directions)
def test_the_margin_that_would_have_passed_passes_and_less_does_not(
    made: list[LayerChange], worse: Worse
) -> None:
    needed = margin_that_passes(at_margin(made, worse, 0.0), None)
    assert at_margin(made, worse, needed * (1 + 1e-9)).outcome is Outcome.PASSED
    if needed > 0:
        assert at_margin(made, worse, needed * (1 - 1e-6)).outcome is not Outcome.PASSED


@given(changes, directions)
def test_beyond_and_within_exclude_each_other(made: list[LayerChange], worse: Worse) -> None:
    for one in made:
        assert not (one.p_beyond(worse) < 0.01 and one.p_within(worse) <= 0.01)


def test_the_relative_margin_that_would_have_passed() -> None:
    judged = judge_changes([change(0.1, 0.0, 0.01, base=0.4)], "up", 0.01)
    assert relative_margin_that_passes(judged, 0.01) == pytest.approx(0.25)
    nothing = judge_changes([change(0.1, 0.0, 0.01, base=0.0)], "up", 0.01)
    assert relative_margin_that_passes(nothing, 0.01) is None


def test_false_alarms_are_rarer_than_alpha() -> None:
    """Thirteen correlated layers without any change, margin zero: alarms in at most 1 %."""
    rng = np.random.default_rng(7)
    trials, layers, blocks = 2000, 13, 64
    shared = rng.normal(size=(trials, 1, blocks))
    differences = 0.6 * shared + 0.8 * rng.normal(size=(trials, layers, blocks))
    means = differences.mean(-1)
    errors = differences.std(-1, ddof=1) / math.sqrt(blocks)
    alarms = sum(
        judge_changes(
            [change(float(d), float(e), 0.0) for d, e in zip(m, s, strict=True)], "up", 0.01
        ).outcome
        is Outcome.FAILED
        for m, s in zip(means, errors, strict=True)
    )
    # Three standard deviations of a binomial with p = 0.01 above its mean.
    assert alarms / trials <= 0.01 + 3 * math.sqrt(0.01 * 0.99 / trials)


def test_pairing_finds_what_the_spread_between_blocks_would_hide() -> None:
    hard = np.array(spread(0.3, 0.1))
    shifted = hard + 0.005 + np.array(spread(0.0, 1e-4)[::-1])
    check = MetricCheck(baseline=Regression(margin=0.001))
    verdict = judge(profile({"anisotropy": [shifted]}), accepted({"anisotropy": [hard]}), check)
    assert verdict.outcome is Outcome.FAILED
    assert verdict.properties["change"] == pytest.approx(0.005)
    assert float(verdict.properties["se"]) < 1e-4


def test_too_few_sequences_are_inconclusive_and_may_be_allowed() -> None:
    for inconclusive, allowed in (("fail", False), ("pass", True)):
        check = MetricCheck(baseline=Regression(), inconclusive=inconclusive)  # type: ignore[arg-type]
        verdict = judge(
            profile({"anisotropy": [0.1]}, blocks=1),
            accepted({"anisotropy": [0.1]}, blocks=1),
            check,
        )
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert "too few independent sequences" in verdict.headline
        assert verdict.allowed is allowed


def test_straddling_may_be_allowed_but_stays_inconclusive() -> None:
    new, base = profile({"anisotropy": [spread(0.32, 0.05)]}), accepted({"anisotropy": [0.3]})
    regression = Regression(margin=0.02)
    strict = judge(new, base, MetricCheck(baseline=regression))
    lenient = judge(new, base, MetricCheck(baseline=regression, inconclusive="pass"))
    assert strict.outcome is lenient.outcome is Outcome.INCONCLUSIVE
    assert (strict.allowed, lenient.allowed) == (False, True)
    assert strict.layers == ("0",)


VACUOUS = Estimate(None, undefined="anisotropy is zero", vacuous=True)
STRUCTURAL = Estimate(None, undefined="one representation per sequence")
OTHER = Estimate(None, undefined="every representation has zero length")


@pytest.mark.parametrize(
    ("new", "base", "outcome"),
    [
        (VACUOUS, VACUOUS, Outcome.PASSED),
        (STRUCTURAL, STRUCTURAL, Outcome.PASSED),
        (STRUCTURAL, OTHER, Outcome.FAILED),
        (VACUOUS, 0.3, Outcome.FAILED),
        (0.3, VACUOUS, Outcome.FAILED),
        (0.3, STRUCTURAL, Outcome.FAILED),
    ],
)
def test_undefined_values_count_only_where_both_sides_agree(
    new: Estimate | float, base: Estimate | float, outcome: Outcome
) -> None:
    check = MetricCheck(baseline=Regression(margin=0.1))
    verdict = judge(
        profile({"anisotropy": [0.2, new]}), accepted({"anisotropy": [0.2, base]}), check
    )
    assert verdict.outcome is outcome
    if outcome is Outcome.PASSED:
        assert verdict.compared == 1
        assert "undefined on both sides: 1" in verdict.message
    else:
        assert verdict.layers == ("1",)
        assert "undefined" in verdict.headline


def test_the_selection_restricts_what_is_judged() -> None:
    new, base = profile({"anisotropy": [0.2, 0.9, 0.2]}), accepted({"anisotropy": [0.2] * 3})
    regression = Regression(margin=0.02)
    assert judge(new, base, MetricCheck(baseline=regression)).layers == ("1",)
    last = judge(new, base, MetricCheck(baseline=regression, layers="last"))
    assert (last.outcome, last.compared) == (Outcome.PASSED, 1)


def test_the_metrics_own_direction_is_the_default() -> None:
    check = MetricCheck(baseline=Regression(margin_relative=0.1))
    for name, metric in METRICS.items():
        if metric.worse == "both":
            continue
        sign = 1 if metric.worse == "up" else -1
        worse = judge(profile({name: [1 + 0.5 * sign]}), accepted({name: [1.0]}), check, name)
        better = judge(profile({name: [1 - 0.5 * sign]}), accepted({name: [1.0]}), check, name)
        assert (worse.outcome, better.outcome) == (Outcome.FAILED, Outcome.PASSED), name
