"""What is left when the mean is subtracted: closed forms, and which representations are kept."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isotest.statistics.centered import centered_anisotropy
from isotest.statistics.kept import CAPACITY, ENTRIES
from isotest.statistics.layer import LayerStatistics, value_of
from isotest.statistics.sample import SLICE
from tests.statistics.naive import Sample
from tests.statistics.naive import centered_anisotropy as naive

NAME = "centered_anisotropy"


def layer_of(x: torch.Tensor, units: torch.Tensor, batch: int, shards: int = 1) -> LayerStatistics:
    layers = [LayerStatistics([NAME], grouped=True) for _ in range(shards)]
    for number, start in enumerate(range(0, len(x), batch)):
        part = slice(start, start + batch)
        layers[number % shards].update(x[part], units[part])
    for other in layers[1:]:
        layers[0].merge(other)
    return layers[0]


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e6])
@pytest.mark.parametrize("count", [2, 3, 10])
def test_the_corners_of_a_simplex(count: int, offset: float) -> None:
    """Centred, they are as far apart as can be: every cosine is -1/(N - 1), wherever they lie."""
    corners = torch.eye(count, dtype=torch.float64)[:, None] + offset
    # Far out, a corner's own coordinate is all that tells it from the offset: 1 in 1e6.
    assert centered_anisotropy(corners) == pytest.approx(-1 / (count - 1), rel=1e-9)


def test_drift_explains_all_of_it() -> None:
    """One direction added to isotropic rows: cosines near 1, and -1/(N - 1) without the mean."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 8, 32, generator=generator) + 20 * torch.ones(32)
    assert value_of("anisotropy", x) > 0.99
    layer = layer_of(x, torch.arange(64), 16)
    estimate = layer.estimates()[NAME]
    assert estimate.value is not None
    assert estimate.se is not None
    assert estimate.value == pytest.approx(-1 / (64 * 8 - 1), abs=3 * estimate.se)
    assert estimate.se < 0.01


def test_a_minority_is_not_explained_by_drift() -> None:
    """Nine rows at one point, one at another: eight ninths of a pair's lot is cosine 1.

    Centred, the nine lie on one side and the one on the other: of 45 pairs, 36 have the cosine 1
    and 9 have -1.
    """
    x = torch.zeros(10, 1, 3)
    x[:, :, 0] = 5.0
    x[9, 0, 1] = 1.0
    assert centered_anisotropy(x) == pytest.approx((36 - 9) / 45, rel=1e-9)


def test_nothing_but_a_mean_is_undefined() -> None:
    estimate = layer_of(torch.ones(4, 2, 3), torch.arange(4), 4).estimates()[NAME]
    assert estimate.undefined is not None
    assert "the same" in estimate.undefined
    assert not estimate.vacuous


@pytest.mark.parametrize(("batch", "shards"), [(40, 1), (7, 1), (3, 4)])
def test_beyond_the_capacity_every_second_position_is_kept(batch: int, shards: int) -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(40, 100, 6, generator=generator, dtype=torch.float64) + 1
    assert CAPACITY < 40 * 100 <= 2 * CAPACITY
    units = torch.arange(40) // 2
    directions = x[:, ::2] - x[:, ::2].mean(dim=(0, 1))
    directions /= directions.norm(dim=2, keepdim=True)
    cosines = directions.reshape(-1, 6) @ directions.reshape(-1, 6).T
    of = units.repeat_interleave(50)
    expected = float(cosines[of[:, None] != of[None, :]].mean())
    found = layer_of(x, units, batch, shards).estimates()[NAME]
    assert found.value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("batch", "shards"), [(500, 1), (350, 3), (64, 1), (64, 2)])
def test_of_lone_representations_every_other_round_of_units_is_kept(
    batch: int, shards: int
) -> None:
    count = 3000
    x = torch.randn(count, 1, 4, generator=torch.Generator().manual_seed(2)).double()
    kept = x[(torch.arange(count) // 64) % 2 == 0]
    assert len(kept) <= CAPACITY < count
    found = layer_of(x, torch.arange(count), batch, shards).estimates()[NAME]
    assert found.value == pytest.approx(centered_anisotropy(kept), rel=1e-9)
    assert found.se is not None


def test_masked_positions_do_not_count_for_the_stride() -> None:
    """The same texts with padding in front keep the same representations."""
    x = torch.randn(40, 80, 5, generator=torch.Generator().manual_seed(3)).double()
    padded = torch.cat([torch.full((40, 3, 5), float("nan")).double(), x], dim=1)
    mask = torch.ones(40, 83, dtype=torch.bool)
    mask[:, :3] = False
    plain, shifted = (LayerStatistics([NAME], grouped=False) for _ in range(2))
    plain.update(x, torch.arange(40))
    shifted.update(padded, torch.arange(40), mask)
    assert plain.estimates()[NAME].value == shifted.estimates()[NAME].value


def test_wide_representations_of_few_groups_are_too_many() -> None:
    width = ENTRIES // 64 + 1
    layer = layer_of(torch.ones(66, 1, width), torch.arange(66) % 3, 33)
    estimate = layer.estimates()[NAME]
    assert estimate.value is None
    assert estimate.undefined is not None
    assert "too many to keep" in estimate.undefined
    assert not estimate.vacuous, "a check of it must not pass"


def test_units_of_which_no_round_is_kept_are_too_many() -> None:
    """Units 64 … 127 are one round, the second: beyond the capacity only the first would stay."""
    count = CAPACITY + 1
    layer = layer_of(torch.randn(count, 1, 3), 64 + torch.arange(count) % 64, 100)
    estimate = layer.estimates()[NAME]
    assert estimate.value is None
    assert estimate.undefined is not None
    assert "too many to keep" in estimate.undefined


def test_an_outlier_left_out_leaves_the_digits_of_the_others() -> None:
    """Without the block of the outlier the rest is a millionth as long, and as exact."""
    rng = np.random.default_rng(4)
    sequences = [rng.normal(size=(3, 4)) * 1e-6 + 1 for _ in range(6)]
    sequences[0] = sequences[0] + 100.0
    sample = Sample(sequences, list(range(6)))
    x = torch.from_numpy(np.stack(sequences))
    estimate = layer_of(x, torch.arange(6), 6).estimates()[NAME]
    without = naive(sample.without_block(0))
    assert without is not None
    # The block's pseudo-value is h θ - (h - 1) θ₋₀ with h = 6.
    assert estimate.value is not None
    assert (6 * estimate.value - estimate.blocks[0]) / 5 == pytest.approx(without, abs=1e-7)


def test_wide_representations_are_as_exact_whatever_their_lengths() -> None:
    """Wider than a slice, where inner products stand for the representations."""
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(12, 1, SLICE + 3, generator=generator, dtype=torch.float64)
    x *= 10.0 ** torch.linspace(-6, 0, 12)[:, None, None]
    units = torch.arange(12) // 2
    rows = x[:, 0] - x[:, 0].mean(dim=0)
    directions = rows / rows.norm(dim=1, keepdim=True)
    cosines = directions @ directions.T
    expected = float(cosines[units[:, None] != units].mean())
    assert layer_of(x, units, 5).estimates()[NAME].value == pytest.approx(expected, rel=1e-9)
