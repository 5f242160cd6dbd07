"""The drift correlation of profiles: findings, traps, demands."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest
from scipy import stats

from isotest.estimate import Estimate
from isotest.gate.checks import DriftCorrelationCheck
from isotest.gate.curve import leave_one_out
from isotest.gate.drift import changed_beyond_chance, drift_correlation, jackknife_interval
from isotest.gate.verdict import Outcome, Verdict
from isotest.statistics.registry import METRICS

from .profiles import BLOCKS, accepted, judge, profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.profile import Profile

RISING = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
NORMS = [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
SHUFFLED = [0.4, 0.1, 0.7, 0.2, 0.6, 0.3, 0.5]
Demand = Literal["explained", "not explained", "not identifiable"]


def curves(drift: Sequence[float], norms: Sequence[float] = NORMS) -> dict[str, Sequence[float]]:
    return {"anisotropy": RISING[: len(drift)], "drift_norm": drift, "mean_norm": norms}


def check(
    drift: Sequence[float], expect: Demand, norms: Sequence[float] = NORMS, **options: object
) -> Verdict:
    demanded = DriftCorrelationCheck(expect=expect, **options)  # type: ignore[arg-type]
    return judge(profile(curves(drift, norms)), None, demanded, "drift_correlation")


def test_findings() -> None:
    explained = drift_correlation(RISING, [x**2 for x in RISING], NORMS)
    assert explained.finding == "explained"
    assert explained.spearman is not None
    assert explained.spearman.p_value == pytest.approx(2 / math.factorial(7))
    assert drift_correlation(RISING, SHUFFLED, NORMS).finding == "not explained"
    # A significant *negative* correlation explains nothing.
    assert drift_correlation(RISING, RISING[::-1], NORMS).finding == "not explained"


def test_either_statistic_may_decide() -> None:
    # scipy: Spearman 0.786, p 0.036; Pearson 0.661, p 0.106.
    uneven = [0.6, 0.4, 5.4, 0.9, 0.7, 7.2, 6.5]
    spearman = drift_correlation(RISING, uneven, NORMS, statistic="spearman")
    pearson = drift_correlation(RISING, uneven, NORMS, statistic="pearson")
    assert spearman.finding == "explained"
    assert pearson.finding == "not explained"
    assert spearman.pearson == pearson.pearson


def test_equal_norms_are_not_identifiable() -> None:
    level = [5.0, 5.1, 5.0, 5.2, 5.1, 5.0, 5.1]
    found = drift_correlation(RISING, [5 * math.sqrt(a) for a in RISING], level)
    assert found.finding == "not identifiable"
    assert "norms vary by only" in found.reason
    assert found.norm_variation == pytest.approx(np.std(level) / np.mean(level))
    assert found.spearman is not None
    assert found.spearman.value == 1


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
def test_too_few_layers_are_not_identifiable(layers: int) -> None:
    found = drift_correlation(RISING[:layers], NORMS[:layers], NORMS[:layers])
    assert found.finding == "not identifiable"
    assert "few" in found.reason or "perfect order" in found.reason


def test_five_layers_are_enough() -> None:
    assert drift_correlation(RISING[:5], NORMS[:5], NORMS[:5]).finding == "explained"


def test_a_constant_curve_is_not_identifiable() -> None:
    assert drift_correlation([0.1] * 7, NORMS, NORMS).finding == "not identifiable"
    assert drift_correlation(RISING, [1.0] * 7, NORMS).finding == "not identifiable"


def test_bad_curves_are_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        drift_correlation(RISING, NORMS, NORMS[:3])
    with pytest.raises(ValueError, match="finite"):
        drift_correlation(RISING, NORMS, [*NORMS[:-1], math.nan])


def test_leaving_a_block_out_is_recovered_from_the_pseudo_values() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=BLOCKS)
    layer = profile({"anisotropy": [values]}).layers[0]
    without = leave_one_out(layer, METRICS["anisotropy"], (4,) * BLOCKS)
    expected = [np.delete(values, block).mean() for block in range(BLOCKS)]
    assert without == pytest.approx(expected)


def noisy(seed: int, noise: float, drift: Sequence[float]) -> Profile:
    rng = np.random.default_rng(seed)
    return profile(
        {
            "anisotropy": [a + noise * rng.normal(size=BLOCKS) for a in RISING],
            "drift_norm": [d + noise * rng.normal(size=BLOCKS) for d in drift],
            "mean_norm": NORMS,
        }
    )


def test_the_interval_is_the_jackknifes() -> None:
    made = noisy(0, 0.05, SHUFFLED)
    blocks = {
        metric: np.array([layer.estimates[metric].blocks for layer in made.layers])
        for metric in ("anisotropy", "drift_norm")
    }
    values = {metric: points.mean(1) for metric, points in blocks.items()}
    value = stats.pearsonr(values["anisotropy"], values["drift_norm"]).statistic
    without = [
        stats.pearsonr(
            np.delete(blocks["anisotropy"], b, 1).mean(1),
            np.delete(blocks["drift_norm"], b, 1).mean(1),
        ).statistic
        for b in range(BLOCKS)
    ]
    pseudo = BLOCKS * value - (BLOCKS - 1) * np.array(without)
    half = stats.t(BLOCKS - 1).ppf(0.975) * pseudo.std(ddof=1) / math.sqrt(BLOCKS)
    found = jackknife_interval(made, "pearson", value)
    assert found == pytest.approx((max(-1, value - half), min(1, value + half)))


def test_one_block_has_no_interval() -> None:
    assert jackknife_interval(profile(curves(SHUFFLED), blocks=1), "pearson", 0.1) is None


@pytest.mark.parametrize(
    ("drift", "expect", "outcome"),
    [
        (NORMS, "explained", Outcome.PASSED),
        (NORMS, "not explained", Outcome.FAILED),
        (NORMS, "not identifiable", Outcome.FAILED),
        (SHUFFLED, "not explained", Outcome.PASSED),
        (SHUFFLED, "explained", Outcome.FAILED),
    ],
)
def test_what_is_expected_is_demanded(
    drift: Sequence[float], expect: Demand, outcome: Outcome
) -> None:
    assert check(drift, expect).outcome is outcome


def test_what_cannot_be_identified_is_inconclusive_unless_it_was_expected() -> None:
    level = [5.0] * 7
    verdict = check(RISING, "explained", level)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert not verdict.allowed
    assert check(RISING, "explained", level, inconclusive="pass").allowed
    assert check(RISING, "not identifiable", level).outcome is Outcome.PASSED


def test_the_message_reports_both_statistics_the_drift_and_the_interval() -> None:
    made = profile({**curves(SHUFFLED), "drift_share": RISING})
    verdict = judge(made, None, DriftCorrelationCheck(expect="explained"), "drift_correlation")
    assert verdict.outcome is Outcome.FAILED
    for text in ("Spearman", "Pearson", "95% interval", "by Student's t", "drift_share 0.1 to 0.7"):
        assert text in verdict.message
    assert verdict.properties["finding"] == "not explained"
    expected = stats.spearmanr(RISING, SHUFFLED).statistic
    assert verdict.properties["spearman"] == pytest.approx(expected)


SAME = DriftCorrelationCheck(baseline="same-verdict")


def same(new: Profile, base: Profile | None, **options: object) -> Verdict:
    demanded = SAME.model_copy(update=options)
    return judge(new, base, demanded, "drift_correlation")


def test_the_baselines_finding_is_demanded() -> None:
    explained, other = curves(NORMS), curves(SHUFFLED)
    assert same(profile(explained), accepted(explained)).outcome is Outcome.PASSED
    assert same(profile(other), accepted(other)).outcome is Outcome.PASSED
    verdict = same(profile(other), accepted(explained))
    assert verdict.outcome is Outcome.FAILED
    assert "baseline: explained" in verdict.headline
    assert same(profile(explained), accepted(other)).outcome is Outcome.FAILED


def test_a_finding_that_flips_within_the_noise_is_inconclusive() -> None:
    earlier = replace(accepted(curves(NORMS)), layers=noisy(1, 0.6, RISING).layers)
    for seed in range(2, 60):
        new = noisy(seed, 0.6, RISING)
        verdict = same(new, earlier)
        if "baseline:" in verdict.headline and verdict.outcome is Outcome.INCONCLUSIVE:
            assert "may be chance" in verdict.message
            assert same(new, earlier, inconclusive="pass").allowed
            return
    pytest.fail("no seed flipped the finding")


def test_the_change_of_a_correlation_has_a_paired_error_bar() -> None:
    made = noisy(3, 0.2, SHUFFLED)
    assert changed_beyond_chance(made, made, "pearson", 0.0, 0.05) is False
    assert changed_beyond_chance(made, made, "pearson", 0.5, 0.05) is True
    other = noisy(4, 0.2, SHUFFLED)
    assert changed_beyond_chance(made, other, "pearson", 1e-6, 0.05) is False


def test_a_missing_baseline_or_curve_fails() -> None:
    verdict = same(profile(curves(NORMS)), None)
    assert verdict.outcome is Outcome.FAILED
    assert verdict.missing_baseline
    bare = profile({"anisotropy": RISING, "mean_norm": NORMS})
    for verdict in (
        same(bare, accepted(curves(NORMS))),
        same(profile(curves(NORMS)), accepted({"anisotropy": RISING})),
    ):
        assert verdict.outcome is Outcome.FAILED
        assert "drift_norm" in verdict.headline


@pytest.mark.parametrize("bad", [Estimate(math.nan), Estimate(None, undefined="all zero")])
def test_values_that_are_not_there_fail(bad: Estimate) -> None:
    made = profile({**curves(NORMS), "drift_norm": [*NORMS[:-1], bad]})
    verdict = judge(made, None, DriftCorrelationCheck(expect="explained"), "drift_correlation")
    assert (verdict.outcome, verdict.layers) == (Outcome.FAILED, ("6",))


def test_a_check_without_a_demand_is_never_green() -> None:
    verdict = judge(profile(curves(NORMS)), None, DriftCorrelationCheck(inconclusive="pass"), "d")
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert not verdict.allowed
