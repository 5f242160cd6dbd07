"""``minus``: the false greens first, then against scipy's paired t test on the blocks."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from isotest.estimate import Estimate
from isotest.gate import compare
from isotest.gate.checks import MetricCheck, Regression, Trend
from isotest.gate.verdict import Outcome

from .experiments import EARLIER, experiment
from .profiles import BLOCKS, judge, profile, spread

if TYPE_CHECKING:
    from isotest.profile import Profile

    from .profiles import Values

UNDEFINED = Estimate(None, undefined="no direction")
VACUOUS = Estimate(None, undefined="nothing to share out", vacuous=True)
LIMIT = MetricCheck(minus="input", max=1.0, inconclusive="pass")


def without(made: Profile, name: str) -> Profile:
    return replace(made, layers=tuple(layer for layer in made.layers if layer.name != name))


def changed(made: Profile, name: str, **changes: Any) -> Profile:
    return replace(
        made,
        layers=tuple(
            replace(layer, **changes) if layer.name == name else layer for layer in made.layers
        ),
    )


GOOD = experiment([0.1, 0.2], [0.3, 0.5])


def test_the_difference_is_judged_and_not_the_value() -> None:
    assert judge(GOOD, None, MetricCheck(minus="input", max=0.3)).outcome is Outcome.PASSED
    verdict = judge(GOOD, None, MetricCheck(minus="input", max=0.25))
    assert (verdict.outcome, verdict.layers) == (Outcome.FAILED, ("output.1",))
    assert verdict.headline == (
        "suites/vision/tiny.toml::vit::anisotropy: minus input is 0.3000 at layer output.1 "
        "(N = 10), above max = 0.25"
    )
    assert "0.5000 at layer output.1 (N = 10), 0.2000 at input.1: +0.3000 ± " in verdict.message


def test_the_layers_of_the_subtracted_part_are_not_judged() -> None:
    verdict = judge(GOOD, None, MetricCheck(minus="input", min=0.1))
    assert (verdict.outcome, verdict.compared) == (Outcome.PASSED, 2)


@pytest.mark.parametrize(
    ("made", "minus", "words"),
    [
        (GOOD, "inptu", "minus = 'inptu' is no part of the model; did you mean 'input'"),
        (profile({"anisotropy": [0.1, 0.2]}), "input", "no part of the model; it has layers 0-1"),
        (experiment([0.1, 0.2], []), "input", "no layers but those of 'input'"),
    ],
)
def test_a_part_that_is_not_there_compares_nothing(made: Profile, minus: str, words: str) -> None:
    verdict = judge(made, None, MetricCheck(minus=minus, max=1.0, inconclusive="pass"))
    assert (verdict.outcome, verdict.allowed) == (Outcome.INCONCLUSIVE, False)
    assert words in verdict.message


@pytest.mark.parametrize("layers", ["input.any", "output.any,input.last"])
def test_what_is_subtracted_from_itself_is_zero_in_every_model(layers: str) -> None:
    check = MetricCheck(minus="input", max=1.0, layers=layers, inconclusive="pass")
    verdict = judge(GOOD, None, check)
    assert (verdict.outcome, verdict.allowed) == (Outcome.INCONCLUSIVE, False)
    assert "zero in every model" in verdict.message


@pytest.mark.parametrize("layers", ["any", "output.0", "output.any"])
@pytest.mark.parametrize("dropped", ["output.1", "input.1"])
def test_a_dropped_layer_is_noticed_on_either_side_whatever_is_selected(
    dropped: str, layers: str
) -> None:
    made = without(experiment([0.1, 0.2, 0.2], [0.3, 0.5, 0.5]), dropped)
    verdict = judge(made, None, MetricCheck(minus="input", max=1.0, layers=layers))
    assert verdict.outcome is Outcome.FAILED
    assert "has no partner in" in verdict.headline
    assert dropped.replace("in", "out") in verdict.layers or "input.1" in verdict.layers


def test_partners_stand_at_the_same_place() -> None:
    verdict = judge(changed(GOOD, "input.1", at=20.0), None, LIMIT)
    assert (verdict.outcome, verdict.layers) == (Outcome.FAILED, ("output.1",))
    assert "output.1 (N = 10) and layer input.1 (N = 20) do not stand at" in verdict.headline


@pytest.mark.parametrize("side", ["input.1", "output.1"])
@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (Estimate(math.nan), "is not finite"),
        (Estimate(0.2, math.inf, (0.2,) * BLOCKS), "is not finite"),
        (Estimate(0.2, 0.1, (math.nan,) * BLOCKS), "is not finite"),
        (UNDEFINED, "is undefined at layer"),
        # Nothing to measure on one side only hides what the other may be.
        (VACUOUS, "is undefined at layer"),
        (Estimate(0.2, 0.1, (0.2,) * 3), "cannot be paired"),
    ],
)
def test_values_that_are_none_fail_on_either_side(side: str, broken: Estimate, words: str) -> None:
    made = changed(GOOD, side, estimates={"anisotropy": broken})
    for check in (LIMIT, MetricCheck(minus="input", trend=Trend(direction="rises"))):
        verdict = judge(made, None, check)
        assert (verdict.outcome, verdict.layers) == (Outcome.FAILED, ("output.1",))
        assert words in verdict.headline
        assert side in verdict.headline


@pytest.mark.parametrize("side", ["input.1", "output.1"])
def test_a_metric_that_was_not_measured_fails(side: str) -> None:
    verdict = judge(changed(GOOD, side, estimates={}), None, LIMIT)
    assert (verdict.outcome, verdict.layers) == (Outcome.FAILED, ("output.1",))
    assert f"was not measured at layer {side}" in verdict.headline


def test_nothing_to_measure_on_both_sides_does_not_count() -> None:
    verdict = judge(experiment([VACUOUS, 0.2], [VACUOUS, 0.5]), None, LIMIT)
    assert (verdict.outcome, verdict.compared) == (Outcome.PASSED, 1)
    verdict = judge(experiment([VACUOUS], [VACUOUS]), None, LIMIT)
    assert (verdict.outcome, verdict.allowed) == (Outcome.INCONCLUSIVE, False)
    assert judge(experiment([UNDEFINED], [UNDEFINED]), None, LIMIT).outcome is Outcome.FAILED
    assert judge(experiment([VACUOUS], [UNDEFINED]), None, LIMIT).outcome is Outcome.FAILED


def test_other_bases_are_not_comparable() -> None:
    estimate = replace(GOOD.layers[1].estimates["anisotropy"], basis="2048 of 9000")
    verdict = judge(changed(GOOD, "input.1", estimates={"anisotropy": estimate}), None, LIMIT)
    assert (verdict.outcome, verdict.allowed) == (Outcome.INCONCLUSIVE, False)
    assert "from everything at layer output.1 (N = 10), from 2048 of 9000" in verdict.message


def test_what_both_sides_share_is_no_noise() -> None:
    """Blocks that differ by 0.1 from each other, and an excess of 0.001 in each of them."""
    hard = np.array(spread(0.3, 0.1))
    made = experiment([hard, hard], [hard + 0.001, hard + 0.003])
    rises = MetricCheck(minus="input", trend=Trend(direction="rises", by=0.001))
    assert judge(made, None, rises).outcome is Outcome.PASSED
    assert judge(experiment([0.3, 0.3], [hard, hard]), None, rises).outcome is not Outcome.PASSED


@given(
    st.lists(
        st.lists(st.floats(-0.2, 0.2), min_size=BLOCKS, max_size=BLOCKS), min_size=4, max_size=4
    ),
    st.floats(0, 0.1),
)
def test_a_regression_is_the_paired_t_test_of_differences(
    drawn: list[list[float]], margin: float
) -> None:
    old_in, old_out, new_in, new_out = map(np.array, drawn)
    moved = (new_out - new_in) - (old_out - old_in)
    if float(np.std(moved)) < 1e-3:
        return
    base = experiment([old_in], [old_out], created=EARLIER)
    check = MetricCheck(minus="input", baseline=Regression(margin=margin, worse="up"))
    verdict = judge(experiment([new_in], [new_out]), base, check)
    smallest = max(margin, 1e-4)
    beyond = float(stats.ttest_1samp(moved, smallest, alternative="greater").pvalue)
    within = float(stats.ttest_1samp(moved, smallest, alternative="less").pvalue)
    if min(abs(beyond - 0.01), abs(within - 0.01)) > 1e-9:
        expected = (
            Outcome.FAILED
            if beyond < 0.01
            else Outcome.PASSED
            if within < 0.01
            else Outcome.INCONCLUSIVE
        )
        assert verdict.outcome is expected
        assert verdict.properties["change"] == pytest.approx(float(moved.mean()))


def test_a_change_of_both_sides_alike_is_no_change_of_the_difference() -> None:
    base = experiment([0.1, 0.2], [0.3, 0.5], created=EARLIER)
    new = experiment([0.2, 0.3], [0.4, 0.6])
    assert judge(new, base, MetricCheck(baseline=Regression())).outcome is Outcome.FAILED
    check = MetricCheck(minus="input", baseline=Regression())
    assert judge(new, base, check).outcome is Outcome.PASSED
    new = experiment([0.1, 0.1], [0.3, 0.5])
    verdict = judge(new, base, check)
    assert (verdict.outcome, verdict.layers) == (Outcome.FAILED, ("output.1",))
    assert "minus input rose at layer output.1 (N = 10): 0.300 -> 0.400" in verdict.headline
    sides = [line for line in verdict.message.splitlines() if " at input.1" in line]
    assert "0.5000 at layer output.1 (N = 10), 0.1000 at input.1: +0.4000" in sides[0]
    assert "0.2000 at input.1 in the baseline: +0.3000" in sides[1]


@pytest.mark.parametrize(
    ("base", "words"),
    [
        (experiment([0.1], [0.3], created=EARLIER), "the baseline lacks layer input.1, output.1"),
        (
            experiment([0.1, UNDEFINED], [0.3, 0.5], created=EARLIER),
            "undefined at layer input.1 (N = 10) in the baseline",
        ),
        (
            changed(experiment([0.1, 0.2], [0.3, 0.5], created=EARLIER), "input.1", estimates={}),
            "is not in the baseline at layer input.1",
        ),
        (
            experiment([0.1, VACUOUS], [0.3, VACUOUS], created=EARLIER),
            "undefined in the baseline",
        ),
        (None, "there is no baseline"),
    ],
)
def test_a_baseline_with_less_in_it_fails(base: Profile | None, words: str) -> None:
    verdict = judge(GOOD, base, MetricCheck(minus="input", baseline=Regression(margin=9.0)))
    assert verdict.outcome is Outcome.FAILED
    assert words in verdict.message


def test_a_baseline_of_other_places_is_not_comparable() -> None:
    base = experiment([0.1, 0.2], [0.3, 0.5], axis=[0.0, 16.0], created=EARLIER)
    check = MetricCheck(minus="input", baseline=Regression(margin=9.0), inconclusive="pass")
    (verdict,) = compare(GOOD, base, {"anisotropy": check})
    assert (verdict.outcome, verdict.allowed) == (Outcome.INCONCLUSIVE, False)
    assert "N at layers input.1, output.1: the baseline has 16, 16, this run 10, 10" in (
        verdict.message
    )


def test_a_share_of_a_difference_means_nothing() -> None:
    base = experiment([0.1, 0.2], [0.3, 0.5], created=EARLIER)
    check = MetricCheck(
        minus="input", baseline=Regression(margin_relative=9.0), inconclusive="pass"
    )
    verdict = judge(GOOD, base, check)
    assert (verdict.outcome, verdict.allowed) == (Outcome.INCONCLUSIVE, False)
    assert "give 'margin'" in verdict.message


def test_the_floor_is_that_of_the_metric_and_not_a_share_of_the_difference() -> None:
    """Lengths of 30 round by up to 0.03, and a difference of nothing does not round by nothing."""
    base = experiment([30.0], [30.0], metric="mean_norm", created=EARLIER)
    check = MetricCheck(metric="mean_norm", minus="input", baseline=Regression(worse="both"))
    for moved, outcome in ((0.02, Outcome.PASSED), (0.04, Outcome.FAILED)):
        new = experiment([30.0], [30.0 + moved], metric="mean_norm")
        assert judge(new, base, check, "gap").outcome is outcome


def test_the_longer_side_is_what_rounds() -> None:
    base = experiment([1000.0], [30.0], metric="mean_norm", created=EARLIER)
    check = MetricCheck(metric="mean_norm", minus="input", baseline=Regression(worse="both"))
    new = experiment([1000.9], [30.0], metric="mean_norm")
    assert judge(new, base, check, "gap").outcome is Outcome.PASSED
    assert judge(base, new, check, "gap").outcome is Outcome.PASSED


def test_one_block_has_no_error_bar() -> None:
    made = experiment([0.1], [0.3], blocks=1)
    verdict = judge(made, None, MetricCheck(minus="input", max=0.1))
    assert "no error bar" in verdict.message
    base = experiment([0.1], [0.3], blocks=1, created=EARLIER)
    check = MetricCheck(minus="input", baseline=Regression(margin=9.0))
    assert judge(made, base, check).outcome is Outcome.INCONCLUSIVE


def test_parts_of_other_block_sizes_are_paired_by_what_is_left_out() -> None:
    """An encoder's and a decoder's positions weigh differently; sequences are the same."""
    rng = np.random.default_rng(0)
    blocks = {name: rng.normal(0.3, 0.1, BLOCKS) for name in ("input.0", "output.0")}
    made = experiment([blocks["input.0"]], [blocks["output.0"]])
    sizes = (2,) * BLOCKS
    made = changed(made, "input.0", block_representations=sizes, representations=sum(sizes))
    verdict = judge(made, None, MetricCheck(minus="input", max=-9.0))
    moved = blocks["output.0"] - blocks["input.0"]
    expected = moved.std(ddof=1) / math.sqrt(BLOCKS)
    assert f"± {expected:.2g}"[:6] in verdict.message


@pytest.mark.parametrize("demand", [{"reach": 0.29}, {"min": 0.19}, {"max": 0.31}])
def test_every_demand_takes_a_difference(demand: dict[str, float]) -> None:
    check = MetricCheck.model_validate({"minus": "input", **demand})
    assert judge(GOOD, None, check).outcome is Outcome.PASSED
    lower: list[Values] = [0.0, 0.0]
    assert judge(experiment(lower, [0.0, 0.35]), None, check).outcome is (
        Outcome.PASSED if "reach" in demand else Outcome.FAILED
    )
