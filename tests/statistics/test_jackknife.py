"""The block jackknife against closed forms and against the formula as printed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from isotest.estimate import Estimate
from isotest.statistics.jackknife import jackknife, paired_change, standard_error
from tests.statistics import naive


def _mean(values: list[np.ndarray[tuple[int], np.dtype[np.float64]]]) -> Estimate:
    """The mean of all entries, a block an array."""
    value = float(np.concatenate(values).mean())
    without = [
        float(np.concatenate(values[:b] + values[b + 1 :]).mean()) for b in range(len(values))
    ]
    return jackknife(value, without, [len(block) for block in values])


def test_of_a_mean_it_is_s_over_root_n() -> None:
    x = np.random.default_rng(0).normal(3.0, 2.0, 50)
    estimate = _mean([x[i : i + 1] for i in range(50)])
    assert estimate.se == pytest.approx(x.std(ddof=1) / math.sqrt(50), rel=1e-12)
    assert estimate.blocks == pytest.approx(tuple(x), rel=1e-12)


def test_of_equal_blocks_it_is_s_over_root_g_of_their_means() -> None:
    x = np.random.default_rng(1).normal(size=(20, 7))
    estimate = _mean(list(x))
    assert estimate.se == pytest.approx(x.mean(axis=1).std(ddof=1) / math.sqrt(20), rel=1e-12)


def test_of_unequal_blocks_it_is_the_formula_as_printed() -> None:
    rng = np.random.default_rng(2)
    sizes = rng.integers(1, 30, 13).tolist()
    value, without = float(rng.normal()), rng.normal(size=13).tolist()
    expected = naive.standard_error(value, without, sizes)
    assert jackknife(value, without, sizes).se == pytest.approx(expected, rel=1e-12)


def test_unequal_blocks_give_the_error_of_a_weighted_mean() -> None:
    """Pseudo-values of a mean are the block means; 400 samples show that the error bar is right."""
    rng = np.random.default_rng(3)
    sizes = [2, 3, 5, 8, 13, 21, 4, 4, 9, 11, 6, 30]
    estimates = [_mean([rng.normal(size=m) for m in sizes]) for _ in range(400)]
    errors = [estimate.se for estimate in estimates if estimate.se is not None]
    values = [estimate.value for estimate in estimates if estimate.value is not None]
    root_mean_square = math.sqrt(float(np.mean(np.square(errors))))
    assert root_mean_square == pytest.approx(float(np.std(values)), rel=0.15)


def test_a_change_that_all_blocks_share_has_no_error() -> None:
    rng = np.random.default_rng(4)
    blocks = [rng.normal(size=m) for m in (3, 5, 7, 9)]
    shifted = [block + 0.25 for block in blocks]
    change, error, freedom = paired_change(_mean(shifted), _mean(blocks), [3, 5, 7, 9])
    assert change == pytest.approx(0.25)
    assert error == pytest.approx(0.0, abs=1e-14)
    assert freedom == 3


def test_a_paired_change_is_the_jackknife_of_the_difference() -> None:
    rng = np.random.default_rng(5)
    sizes = [4, 9, 2, 6, 6]
    old = [rng.normal(size=m) for m in sizes]
    new = [block + rng.normal(0.1, 0.05, len(block)) for block in old]
    difference = _mean([b - a for a, b in zip(old, new, strict=True)])
    change, error, freedom = paired_change(_mean(new), _mean(old), sizes)
    assert change == pytest.approx(difference.value, rel=1e-12)
    assert error == pytest.approx(difference.se, rel=1e-12)
    assert freedom == 4
    assert error is not None
    unpaired = _mean(old).se
    assert unpaired is not None
    assert error < unpaired / 3


def test_one_block_has_no_error() -> None:
    assert jackknife(1.5, [], [10]) == Estimate(1.5)
    assert standard_error([1.5], [10]) is None
    assert paired_change(Estimate(2.0), Estimate(1.5), [10]) == (0.5, None, 0)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_values_of_any_magnitude(scale: float) -> None:
    plain = standard_error([1.0, 2.0, 4.0], [1, 2, 3])
    scaled = standard_error([scale, 2.0 * scale, 4.0 * scale], [1, 2, 3])
    assert plain is not None
    assert scaled == pytest.approx(plain * scale, rel=1e-12)


def test_what_is_not_paired_is_refused() -> None:
    whole, other = jackknife(2.0, [2.5, 1.5], [1, 1]), jackknife(2.0, [2.5, 2.0, 1.5], [1, 1, 1])
    with pytest.raises(ValueError, match="not paired"):
        paired_change(whole, other, [1, 1])
    with pytest.raises(ValueError, match="defined"):
        paired_change(Estimate(None, undefined="nothing"), whole, [1, 1])
    with pytest.raises(ValueError, match="above zero"):
        jackknife(2.0, [2.5, 1.5], [1, 0])
