"""The count of copies, exact below its capacity and fair above it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isotest.statistics import duplicates
from isotest.statistics.duplicates import duplicate_share, hashes
from isotest.statistics.layer import LayerStatistics


def _layer(x: torch.Tensor, units: torch.Tensor) -> LayerStatistics:
    layer = LayerStatistics(["duplicate_share"], grouped=False)
    layer.update(x, units)
    return layer


def test_copies_across_blocks_count() -> None:
    x = torch.randn(40, 1, 6, generator=torch.Generator().manual_seed(0))
    x[20:] = x[:20]
    layer = _layer(x, torch.arange(40))
    estimate = layer.estimates()["duplicate_share"]
    assert estimate.value == 0.5
    # Without any one block there are 20 distinct among 39: τ = 40/2 − 39 (1 − 20/39).
    assert estimate.blocks == pytest.approx([40 * 0.5 - 39 * (1 - 20 / 39)] * 40)


def test_a_sign_of_zero_is_a_difference() -> None:
    assert duplicate_share(torch.tensor([[[0.0, 1.0], [-0.0, 1.0]]])) == 0.0


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 8, 1 << 14])
def test_every_width_and_dtype(dtype: torch.dtype, width: int) -> None:
    x = torch.randn(6, 1, width, generator=torch.Generator().manual_seed(1)).to(dtype)
    x[4] = x[1]
    x[5] = x[1]
    assert duplicate_share(x) == pytest.approx(2 / 6)


def test_rows_out_of_alignment() -> None:
    x = torch.arange(25.0)[1:].reshape(4, 1, 6)
    assert duplicate_share(x) == 0.0
    assert duplicate_share(x.transpose(1, 2)[:, :2]) == 0.0


def test_rows_of_signs_do_not_collide() -> None:
    """All 2^13 rows of ±1 differ in sign bits only, where a plain linear hash is blind."""
    signs = torch.tensor([[(n >> k) & 1 for k in range(13)] for n in range(1 << 13)])
    assert duplicate_share((signs * 2.0 - 1.0)[:, None]) == 0.0


def test_hashes_are_spread_evenly() -> None:
    words = np.arange(1 << 16, dtype=np.int64)[:, None]
    low = hashes(words) & np.uint64(255)
    counts = np.bincount(low.astype(np.int64), minlength=256)
    assert counts.mean() == 256
    # Poisson: 6 sd on 256 cells.
    assert abs(counts - 256).max() < 6 * 16


def test_beyond_its_capacity_it_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "CAPACITY", 500)
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(20_000, 1, 4, generator=generator)
    assert duplicate_share(x) == 0.0
    x[15_000:] = x[:5_000]
    layers = [_layer(part, torch.arange(len(part))) for part in x.split(1_500)]
    shuffled = _layer(x[torch.randperm(20_000, generator=generator)], torch.arange(20_000))
    for layer in layers[1:]:
        layers[0].merge(layer)
    value = layers[0].estimates()["duplicate_share"].value
    assert value == shuffled.estimates()["duplicate_share"].value
    # A quarter of the rows repeat; at least 250 distinct rows are sampled, sd below 0.03.
    assert value == pytest.approx(0.25, abs=0.09)
