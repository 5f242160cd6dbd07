"""Coefficients and p-values against scipy and brute force."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from isotest.gate.correlation import EXACT_LAYERS, Statistic, coefficient, correlate

STATISTICS: tuple[Statistic, ...] = ("spearman", "pearson")
SCIPY: dict[str, Any] = {"spearman": stats.spearmanr, "pearson": stats.pearsonr}


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("count", [4, 7, 13, 30])
@pytest.mark.parametrize("tied", [False, True])
def test_coefficient_and_students_p_are_scipys(
    statistic: Statistic, count: int, tied: bool
) -> None:
    rng = np.random.default_rng(count)
    x = rng.normal(size=count)
    y = x + rng.normal(size=count)
    if tied:
        x[1] = x[0]
        y[-1] = y[0]
    expected = SCIPY[statistic](x, y)
    found = correlate(x.tolist(), y.tolist(), statistic)
    assert found is not None
    assert found.value == pytest.approx(expected.statistic, abs=1e-12)
    assert found.p_student == pytest.approx(expected.pvalue, rel=1e-7)
    if count > EXACT_LAYERS:
        assert found.p_value == found.p_student


def brute_force(x: list[float], y: list[float], statistic: Statistic) -> float:
    observed = abs(SCIPY[statistic](x, y).statistic)
    orders = [abs(SCIPY[statistic](x, list(order)).statistic) for order in permutations(y)]
    count: int = sum(r >= observed - 1e-9 for r in orders)
    return count / len(orders)


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([1.0, 2.0, 3.0, 4.0], [0.1, 0.4, 0.2, 0.9]),
        ([1.0, 2.0, 2.0, 4.0], [0.1, 0.4, 0.2, 0.4]),
        ([0.0, 5.0, 1.0, 2.5, 9.0], [3.0, 1.0, 2.5, 0.1, 0.0]),
    ],
)
def test_the_exact_p_value_is_the_share_of_all_orders(
    statistic: Statistic, x: list[float], y: list[float]
) -> None:
    found = correlate(x, y, statistic)
    assert found is not None
    assert found.p_value == pytest.approx(brute_force(x, y, statistic))


@pytest.mark.parametrize("count", range(3, EXACT_LAYERS + 1))
def test_the_exact_p_value_of_perfect_order_is_two_in_all_orders(count: int) -> None:
    line = [float(i) for i in range(count)]
    found = correlate(line, line[::-1], "spearman")
    assert found is not None
    assert found.value == -1
    assert found.p_value == pytest.approx(2 / np.prod(np.arange(1, count + 1)))
    assert found.attainable == found.p_value


def test_students_p_of_four_points_in_order_is_an_illusion() -> None:
    found = correlate([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], "spearman")
    assert found is not None
    assert found.p_student == 0
    assert found.p_value == pytest.approx(1 / 12)


@pytest.mark.parametrize(("layers", "threshold"), [(7, 0.755), (13, 0.553)])
def test_how_large_a_correlation_must_be(layers: int, threshold: float) -> None:
    # A point with y = x + noise·z, z orthogonal to x, has any Pearson correlation exactly.
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(np.column_stack([np.ones(layers), rng.normal(size=(layers, 2))]))[0]
    for r, significant in ((threshold - 0.003, False), (threshold + 0.003, True)):
        y = r * basis[:, 1] + np.sqrt(1 - r**2) * basis[:, 2]
        found = correlate(basis[:, 1].tolist(), y.tolist(), "pearson")
        assert found is not None
        assert found.value == pytest.approx(r)
        assert (found.p_student < 0.05) is significant


def test_independent_random_walks_correlate_in_a_third_of_all_cases() -> None:
    rng = np.random.default_rng(1)
    trials = 2000
    walks = rng.normal(size=(trials, 2, 13)).cumsum(-1)
    hits = 0
    for x, y in walks:
        found = correlate(x.tolist(), y.tolist(), "spearman")
        assert found is not None
        hits += found.p_value < 0.05
    assert 0.29 < hits / trials < 0.39


@pytest.mark.parametrize("statistic", STATISTICS)
def test_constant_or_short_curves_correlate_with_nothing(statistic: Statistic) -> None:
    assert correlate([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], statistic) is None
    assert correlate([1.0, 2.0], [1.0, 2.0], statistic) is None
    assert coefficient([1.0, 2.0, 3.0], [0.5, 0.5, 0.5], statistic) is None


def test_what_is_not_finite_or_not_paired_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        correlate([1.0, float("nan"), 2.0], [1.0, 2.0, 3.0], "spearman")
    with pytest.raises(ValueError, match="one length"):
        correlate([1.0, 2.0, 3.0], [1.0, 2.0], "spearman")


curves = st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=6)


@settings(deadline=None)
@given(curves, st.floats(1e-6, 1e6), st.sampled_from(STATISTICS))
def test_scale_and_sign_do_what_they_must(
    x: list[float], factor: float, statistic: Statistic
) -> None:
    y = [float(i) for i in range(len(x))]
    found = correlate(x, y, statistic)
    turned = correlate([-factor * value for value in x], y, statistic)
    if found is None or turned is None:
        return
    assert -1 <= found.value <= 1
    assert found.attainable <= found.p_value <= 1
    if statistic == "pearson":
        assert turned.value == pytest.approx(-found.value, abs=1e-6)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_extreme_units_do_not_overflow(scale: float) -> None:
    found = correlate([scale, 2 * scale, 4 * scale], [1.0, 2.0, 4.0], "pearson")
    assert found is not None
    assert found.value == pytest.approx(1.0)
