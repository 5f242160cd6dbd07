"""Intrinsic dimension: known manifolds, scikit-dimension, copies, distances that lose digits."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform

from isotest.errors import MeasurementError
from isotest.statistics.distances import distances
from isotest.statistics.layer import LayerStatistics
from isotest.statistics.sample import Sample
from isotest.statistics.twonn import DISTINCT, twonn

NAME = "twonn"


def layer_of(x: torch.Tensor) -> LayerStatistics:
    layer = LayerStatistics([NAME], grouped=False)
    layer.update(x, torch.arange(len(x)))
    return layer


def sample_of(x: torch.Tensor) -> Sample:
    units = np.arange(len(x))
    return Sample([x], units, units, np.unique(units % 64), seen=len(x))


def cube(count: int, dimension: int, width: int, seed: int = 0) -> torch.Tensor:
    """(count, 1, width) uniform in a cube of ``dimension`` that is turned in ``width``."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(width, width)))[0][:dimension]
    return torch.from_numpy(rng.uniform(size=(count, dimension)) @ turn)[:, None]


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_a_cube_in_a_wider_space(dimension: int) -> None:
    estimate = layer_of(cube(2000, dimension, 20)).estimates()[NAME]
    assert estimate.value == pytest.approx(dimension, rel=0.1)
    assert estimate.isotropic is not None
    assert estimate.isotropic > 12, "isotropic data of that width have another dimension"


def test_a_curve_that_bends() -> None:
    angle = torch.from_numpy(np.random.default_rng(0).uniform(0, 6, 1500))
    helix = torch.stack([angle.cos(), angle.sin(), 0.3 * angle], dim=1)
    assert twonn(helix[:, None]) == pytest.approx(1, rel=0.06)


@pytest.mark.parametrize(("count", "width"), [(50, 5), (300, 3), (1001, 10), (500, 40)])
def test_scikit_dimension(count: int, width: int) -> None:
    peer = pytest.importorskip("skdim", reason="scikit-dimension is not installed")
    x = np.random.default_rng(count).normal(size=(count, width))
    expected = peer.id.TwoNN().fit(x).dimension_
    assert twonn(torch.from_numpy(x)[:, None]) == pytest.approx(expected, rel=1e-6)


def test_isotropic_data_are_what_the_isotropic_value_says() -> None:
    """N far below e^D: the dimension found is far below D, of both."""
    found = []
    for seed in range(8):
        x = torch.randn(400, 1, 64, generator=torch.Generator().manual_seed(seed))
        found.append(layer_of(x).estimates()[NAME])
    values = np.array([each.value for each in found])
    assert len({each.isotropic for each in found}) == 1
    assert found[0].isotropic == pytest.approx(values.mean(), abs=4 * values.std(ddof=1))
    assert values.max() < 50


@pytest.mark.parametrize("width", [1, 2, 30])
def test_it_is_the_same_of_few_wide_representations(width: int) -> None:
    """Fewer than dimensions, they are drawn as their coordinates in the space that they span."""
    x = torch.randn(20, 1, width, generator=torch.Generator().manual_seed(1))
    estimate = layer_of(x).estimates()[NAME]
    assert estimate.isotropic is not None
    assert 0.2 * min(width, 10) < estimate.isotropic < 10 * width


def test_copies_are_dropped_and_counted() -> None:
    x = cube(300, 3, 8)
    copied = torch.cat([x, x[:40], x[:40], torch.zeros(5, 1, 8).double()])
    once = torch.cat([x, torch.zeros(1, 1, 8).double()])
    assert twonn(copied) == pytest.approx(twonn(once), rel=1e-12)
    assert len(distances(sample_of(copied[:, 0])).homes) == 301
    estimate = layer_of(copied).estimates()[NAME]
    assert estimate.dropped == 385 - 301
    assert estimate.basis == (
        "all 385 representations, copies dropped, the smallest 90% of the ratios"
    )


def test_minus_zero_is_zero() -> None:
    x = cube(30, 3, 8)
    x[:, :, 3] = 0.0
    negative = x.clone()
    negative[:, :, 3] = -0.0
    assert twonn(torch.cat([x, negative])) == twonn(x)


def test_a_block_takes_away_what_is_its_own() -> None:
    """A copy in another block keeps a representation; without its own block it is still there."""
    x = cube(40, 2, 4)
    copies = torch.cat([x, x[:20].flip(0)])  # 40 … 59, in blocks of their own
    estimate = layer_of(copies).estimates()[NAME]
    h = 60.0
    assert estimate.value is not None
    without = [(h * estimate.value - block) / (h - 1) for block in estimate.blocks]
    assert without[:20] == pytest.approx([twonn(x)] * 20, rel=1e-9)
    for lost in (20, 33):
        rest = torch.cat([x[:lost], x[lost + 1 :]])
        assert without[lost] == pytest.approx(twonn(rest), rel=1e-9)
    assert without[40:] == pytest.approx([twonn(x)] * 20, rel=1e-9)


@pytest.mark.parametrize(
    ("x", "reason"),
    [
        (torch.ones(9, 2, 3), "of 18 representations fewer than 5 are distinct"),
        (torch.eye(DISTINCT - 1)[:, None], "of 4 representations fewer than 5 are distinct"),
        (torch.zeros(1, 1, 1), "of 1 representations fewer than 5 are distinct"),
        (torch.eye(30)[:, None], "as far from its second nearest as from the first"),
    ],
)
def test_undefined(x: torch.Tensor, reason: str) -> None:
    with pytest.raises(MeasurementError, match=reason):
        twonn(x)
    assert not layer_of(x).estimates()[NAME].vacuous, "a check of it must not pass"


@pytest.mark.parametrize("x", [torch.rand(40, 1, 1), torch.rand(40, 1, 1) * torch.ones(6)])
def test_width_one_and_rank_one(x: torch.Tensor) -> None:
    assert 0.5 < twonn(x) < 2


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e8])
@pytest.mark.parametrize("apart", [0.0, 1e2, 1e7])
def test_distances_that_are_short_beside_the_lengths(offset: float, apart: float) -> None:
    """Two clusters far apart and far out: what inner products of 1e14 leave of distances near 1."""
    x = torch.randn(60, 4, generator=torch.Generator().manual_seed(2)).double() + offset
    x[::2] += apart
    expected = squareform(pdist(x.numpy(), "sqeuclidean"))
    np.fill_diagonal(expected, np.inf)
    sample = sample_of(x)
    found = distances(sample).squares.numpy() * 4.0**sample.exponent
    assert found == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e300])
def test_any_scale(scale: float) -> None:
    x = cube(100, 3, 8)
    assert twonn(x * scale) == pytest.approx(twonn(x), rel=1e-9)


def test_nearer_than_squares_resolve() -> None:
    """Distances of 1e-200 beside lengths of 1 have squares of 0; they are still the nearest."""
    x = cube(100, 3, 8)
    x[0], x[1], x[2] = 0.0, 1e-200, 1e-210
    estimate = layer_of(x).estimates()[NAME]
    assert estimate.value == pytest.approx(3, rel=0.5)
    assert estimate.se is not None
    assert math.isfinite(estimate.se)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 4))
def test_batches_shards_and_turns_change_nothing(seed: int, batch: int, shards: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(40, 3, 6)) + 3
    x[rng.random((40, 3)) < 0.3] = x[0, 0]
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    turned = np.stack([row @ turn * 7 for row in x.reshape(-1, 6)]).reshape(x.shape)
    layers = [LayerStatistics([NAME], grouped=False) for _ in range(shards)]
    order = rng.permutation(40)
    for number, start in enumerate(range(0, 40, batch)):
        chosen = torch.from_numpy(order[start : start + batch])
        layers[number % shards].update(torch.from_numpy(turned)[chosen], chosen)
    for other in layers[1:]:
        layers[0].merge(other)
    one, cut = (layer.estimates()[NAME] for layer in (layer_of(torch.from_numpy(x)), layers[0]))
    assert cut.value == pytest.approx(one.value, rel=1e-9)
    assert cut.blocks == pytest.approx(one.blocks, rel=1e-7)


@pytest.mark.parametrize("shape", [(64, 1, 200_000), (1000, 1000, 32)])
def test_wide_and_many(shape: tuple[int, int, int]) -> None:
    layer = LayerStatistics([NAME], grouped=False)
    generator = torch.Generator().manual_seed(5)
    for unit in range(0, shape[0], 50):
        count = min(50, shape[0] - unit)
        layer.update(
            torch.randn(count, *shape[1:], generator=generator), unit + torch.arange(count)
        )
    estimate = layer.estimates()[NAME]
    assert estimate.value == pytest.approx(estimate.isotropic, rel=0.5)
    assert estimate.se is not None


def test_error_bars_are_no_narrower_than_values_spread() -> None:
    """Leaving a block out counts twice what two blocks make together (Efron and Stein 1981)."""
    rng = np.random.default_rng(6)
    found = []
    for _ in range(60):
        x = torch.from_numpy(rng.normal(size=(64, 1, 3)) + rng.normal(size=(64, 4, 3)))
        found.append(layer_of(x).estimates()[NAME])
    spread = np.std([each.value for each in found if each.value is not None], ddof=1)
    error = math.sqrt(np.mean([each.se**2 for each in found if each.se is not None]))
    assert 0.9 * spread < error < 2.5 * spread
