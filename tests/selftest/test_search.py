"""The search for the smallest strength that is red."""

from __future__ import annotations

from math import ceil, log2

from hypothesis import given
from hypothesis import strategies as st

from isotest.selftest import STRENGTHS, smallest_red

GRIDS = st.integers(1, 40).map(lambda number: [2.0**-step for step in range(number)])


@given(GRIDS, st.floats(0, 1.5))
def test_finds_what_asking_for_each_strength_finds(grid: list[float], threshold: float) -> None:
    asked: list[float] = []

    def red(strength: float) -> bool:
        asked.append(strength)
        return strength >= threshold

    noticed = [strength for strength in grid if strength >= threshold]
    assert smallest_red(grid, red) == min(noticed, default=None)
    assert asked[0] == 1.0
    assert len(asked) == len(set(asked)) <= 1 + ceil(log2(len(grid)))


@given(st.sets(st.sampled_from(STRENGTHS)))
def test_what_is_found_is_red_by_measurement_and_the_next_is_green(noticed: set[float]) -> None:
    """Also where more of a fault is noticed less, which the search takes not to happen."""
    asked: dict[float, bool] = {}

    def red(strength: float) -> bool:
        return asked.setdefault(strength, strength in noticed)

    found = smallest_red(STRENGTHS, red)
    if found is None:
        assert asked == {1.0: False}
        return
    assert asked[found]
    below = found / 2
    assert below < STRENGTHS[-1] or asked[below] is False


def test_the_shipped_grid_takes_four_measurements() -> None:
    asked: list[float] = []
    smallest_red(STRENGTHS, lambda strength: asked.append(strength) or True)  # type: ignore[func-returns-value]
    assert (STRENGTHS[0], STRENGTHS[-1], len(asked)) == (1.0, 1 / 128, 4)
