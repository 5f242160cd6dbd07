"""Holm's correction against the definition by closed testing, and over a suite."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotest.gate.multiplicity import family_wise, holm

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=6)


def by_closed_testing(p_values: list[float], index: int) -> float:
    """Holm is Bonferroni closed: the largest Bonferroni p over all subsets with the hypothesis."""
    others = [i for i in range(len(p_values)) if i != index]
    subsets = (
        (index, *rest) for size in range(len(others) + 1) for rest in combinations(others, size)
    )
    return max(min(1.0, len(s) * min(p_values[i] for i in s)) for s in subsets)


@given(p_values)
def test_holm_is_bonferroni_closed(values: list[float]) -> None:
    expected = [by_closed_testing(values, index) for index in range(len(values))]
    assert holm(values) == pytest.approx(expected)


def test_the_worked_example() -> None:
    # 4 tests: 0.005·4, 0.01·3, 0.03·2, and 0.04·1 raised to the one before it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))


@given(p_values)
def test_order_is_kept_ties_stay_ties_and_nothing_shrinks(values: list[float]) -> None:
    adjusted = holm(values)
    for p, a in zip(values, adjusted, strict=True):
        assert p <= a <= 1
        for q, b in zip(values, adjusted, strict=True):
            assert (a <= b) or (p > q)


def test_no_test_and_one_test() -> None:
    assert holm([]) == ()
    assert holm([0.2]) == (0.2,)


@pytest.mark.parametrize("bad", [math.nan, -0.1, 1.1, math.inf])
def test_what_is_no_p_value_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.1, bad])


def test_a_suite_is_one_family() -> None:
    found = family_wise({"a": 0.004, "b": 0.02, "c": 0.001}, 0.01)
    assert found.adjusted == pytest.approx({"a": 0.008, "b": 0.02, "c": 0.003})
    assert found.rejected == ("c", "a")
    assert family_wise({}, 0.01).rejected == ()


@pytest.mark.parametrize("alpha", [0.0, 1.0, math.nan])
def test_alpha_must_be_a_probability(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        family_wise({"a": 0.1}, alpha)
