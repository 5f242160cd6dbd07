"""Flattened feature maps go a way of their own: values and errors equal algebra on the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from isotest.statistics import sums
from isotest.statistics.batch import WIDE
from isotest.statistics.blocks import BLOCKS, block_of
from isotest.statistics.dimensions import Tops, contributions
from isotest.statistics.duplicates import duplicate_share, hashes
from isotest.statistics.layer import LayerStatistics
from isotest.statistics.massive import median
from isotest.statistics.norms import Norms, drift_norm, drift_share
from tests.statistics import naive

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

NAMES = (
    "anisotropy",
    "anisotropy_all",
    "dimension_share",
    "mean_norm",
    "norm_std",
    "drift_norm",
    "drift_share",
    "massive",
    "massive_ratio",
    "duplicate_share",
)


def _reference(rows: Array, units: NDArray[np.int64]) -> dict[str, float]:
    """The definitions on (N, D) rows, pairs from the matrix of all cosines."""
    lengths = np.linalg.norm(rows, axis=1)
    directions = rows / lengths[:, None]
    cosines = directions @ directions.T
    apart = units[:, None] != units
    shares = np.einsum("ik,ik->k", directions, apart.astype(float) @ directions)
    mean = rows.mean(axis=0)
    magnitudes = np.abs(rows)
    return {
        "anisotropy": float(cosines[apart].mean()),
        "anisotropy_all": float(cosines[~np.eye(len(rows), dtype=bool)].mean()),
        "dimension_share": float((shares / shares.sum()).max()),
        "mean_norm": float(lengths.mean()),
        "norm_std": float(lengths.std()),
        "drift_norm": float(np.linalg.norm(mean)),
        "drift_share": float(mean @ mean / (lengths**2).mean()),
        "massive": float(magnitudes.max()),
        "massive_ratio": float((magnitudes.max(axis=1) / np.median(magnitudes, axis=1)).max()),
        "duplicate_share": 1 - len({row.tobytes() for row in rows}) / len(rows),
    }


def _assert_as_reference(layer: LayerStatistics, rows: Array, units: NDArray[np.int64]) -> None:
    estimates = layer.estimates()
    blocks = block_of(units)
    values = _reference(rows, units)
    kept = [blocks != block for block in np.unique(blocks)]
    without = [_reference(rows[keep], units[keep]) for keep in kept]
    sizes = [int((~keep).sum()) for keep in kept]
    for name in NAMES:
        assert estimates[name].value == pytest.approx(values[name], rel=1e-10, abs=1e-14), name
        left = [others[name] for others in without]
        error = naive.standard_error(values[name], left, sizes)
        assert estimates[name].se == pytest.approx(error, rel=1e-7, abs=1e-11), name


def _maps(count: int, seed: int = 0) -> torch.Tensor:
    """(count, 1, D) maps with a mean and with one dimension that stands out."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 1, WIDE + 5, generator=generator) + 0.3
    x[:, :, 4] += 40.0
    return x


def _measured(
    x: torch.Tensor, units: torch.Tensor, *, grouped: bool, shards: int = 1
) -> LayerStatistics:
    layers = [LayerStatistics(NAMES, grouped=grouped) for _ in range(shards)]
    for number, start in enumerate(range(0, len(x), 8)):
        part = slice(start, start + 8)
        layers[number % shards].update(x[part], units[part])
    for layer in layers[1:]:
        layers[0].merge(layer)
    return layers[0]


UNITS = {
    "each its own": torch.arange(17),
    "three a unit, one unit a block": torch.arange(17) // 3,
    "three a unit, out of order": torch.arange(17) % 7,
    "two units a block": (torch.arange(17) // 3) % 4 + BLOCKS * (torch.arange(17) // 9),
    "unequal": torch.tensor([0] * 7 + [1] * 2 + [70] * 4 + [6] + [134] * 3),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize("name", UNITS)
def test_grouped(name: str, shards: int, dtype: torch.dtype) -> None:
    x, units = _maps(17).to(dtype), UNITS[name]
    layer = _measured(x, units, grouped=True, shards=shards)
    _assert_as_reference(layer, x[:, 0].double().numpy(), units.numpy())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("shards", [1, 2])
@pytest.mark.parametrize("several", [False, True])
def test_ungrouped(several: bool, shards: int, dtype: torch.dtype) -> None:
    x = _maps(17, seed=1).to(dtype)
    units = torch.arange(17) + BLOCKS * 3
    if several:  # the last five are in the blocks of the first five
        units[12:] = units[:5] + BLOCKS
    layer = _measured(x, units, grouped=False, shards=shards)
    _assert_as_reference(layer, x[:, 0].double().numpy(), units.numpy())


@pytest.mark.parametrize("grouped", [True, False])
def test_folded_and_still_held_together(monkeypatch: pytest.MonkeyPatch, grouped: bool) -> None:
    monkeypatch.setattr(sums, "BLOCKS", 10)
    monkeypatch.setattr(sums, "SLICE", 1 << 10)
    x = _maps(17, seed=2)
    units = torch.arange(17) // 2 if grouped else torch.arange(17)
    layer = _measured(x, units, grouped=grouped)
    _assert_as_reference(layer, x[:, 0].double().numpy(), units.numpy())


def test_the_drift_without_a_block_that_is_nearly_all_of_it() -> None:
    """Its square would be a difference of numbers that are 1e10 times as large."""
    x = _maps(6, seed=3).double()
    x[2] *= 1e5
    norms = Norms(["drift_norm"], grouped=False)
    layer = LayerStatistics(["drift_norm"], grouped=False)
    layer._accumulators = {"norms": norms}
    layer.update(x, torch.arange(6))
    without = norms.evaluate(np.arange(6))["drift_norm"].without
    rows = x[:, 0].numpy()
    expected = [
        float(np.linalg.norm(np.delete(rows, block, axis=0).mean(axis=0))) for block in range(6)
    ]
    assert without == pytest.approx(expected, rel=1e-9)


def test_a_negative_total_is_shared_out_by_the_most_negative_dimension() -> None:
    x = torch.zeros(3, 1, WIDE)
    x[0, 0, :2] = torch.tensor([3.0, 4.0])
    x[1, 0, :2] = torch.tensor([-4.0, 3.0])
    x[2, 0, :2] = torch.tensor([-3.0, -4.0])
    estimate = _measured(x, torch.arange(3), grouped=False).estimates()["dimension_share"]
    # Products over the three pairs: dimension 0 has −12, −9, 12, dimension 1 has 12, −16, −12.
    assert estimate.value == pytest.approx(16 / 25, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mean", [0.0, 1.0])
def test_no_dimension_that_is_the_largest_is_passed_over(seed: int, mean: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    u = torch.randn(5, 600, generator=generator, dtype=torch.float64) + mean
    u[:, 300:] *= 0.2  # candidates are rare where little is left to win
    u[seed, 17] += 30.0  # the largest with this block is none without
    q = u.square() * torch.rand(5, 600, generator=generator, dtype=torch.float64)
    tops = Tops(5)
    for start in range(0, 600, 100):
        s, t = u[:, start : start + 100], q[:, start : start + 100]
        tops.update(s, t, s.sum(dim=0), t.sum(dim=0))
    every = contributions(u, q, u.sum(dim=0), q.sum(dim=0))
    assert tops.values == pytest.approx(every.amax(dim=1).numpy(), rel=1e-12)


@pytest.mark.parametrize("size", [1, 2, 5, 16_383, 16_384, 50_001, 200_704])
@pytest.mark.parametrize("kind", ["normal", "half zero", "two values", "sorted"])
def test_the_median_of_many_is_exact(size: int, kind: str) -> None:
    generator = np.random.default_rng(size)
    values = np.abs(generator.normal(size=size)).astype(np.float32)
    if kind == "half zero":
        values[generator.random(size) < 0.5] = 0.0
    elif kind == "two values":
        values = (values > 0.6).astype(np.float32)
    elif kind == "sorted":
        values.sort()
    before = values.copy()
    # In float64, since the mean of the middle two is not rounded to float32.
    assert median(values) == float(np.median(values.astype(np.float64)))
    assert (values == before).all()


def test_hashes_know_where_a_slice_stands() -> None:
    words = np.random.default_rng(0).integers(0, 1 << 62, (3, 5 << 14))
    words[1] = np.roll(words[0], 1 << 14)
    words[2] = np.roll(words[0], 2 << 14)
    assert len(np.unique(hashes(words))) == 3
    assert len(np.unique(hashes(words[[0, 0, 1]]))) == 2


def test_copies_that_differ_in_one_bit_are_none() -> None:
    x = _maps(1).expand(40, 1, -1).clone()
    bits = x.view(torch.int32)
    for row in range(1, 33):
        # Small numbers, so that no change of an exponent leads out of range.
        x[row, 0, 1000 * (row % 16)] = x[0, 0, 1000 * (row % 16)] = 0.25
    for row in range(1, 33):
        bits[row, 0, 1000 * (row % 16)] ^= 1 << (row - 1) if row < 32 else -(1 << 31)
    # Rows 33 to 39 are copies of each other.
    assert duplicate_share(x) == pytest.approx(6 / 40)


def test_little_beside_a_block_that_is_nearly_everything() -> None:
    """Without the large block the shares are those of the small ones alone, to the last digits."""
    x = torch.randn(3, 2, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x[1] *= 1e6
    rest = x[[0, 2]]
    norms = Norms(["drift_norm", "drift_share"], grouped=False)
    layer = LayerStatistics(["drift_norm", "drift_share"], grouped=False)
    layer._accumulators = {"norms": norms}
    layer.update(x, torch.arange(3))
    evaluated = norms.evaluate(np.arange(3))
    assert evaluated["drift_share"].without[1] == pytest.approx(drift_share(rest), rel=1e-8)
    assert evaluated["drift_norm"].without[1] == pytest.approx(drift_norm(rest), rel=1e-8)
