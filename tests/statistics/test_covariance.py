"""Covariances of narrow layers: everything, without a block, in any order and from any shards."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isotest.statistics.batch import Batch
from isotest.statistics.covariance import Covariances

BLOCKS = np.array([0, 1, 3])


def batch(x: torch.Tensor, units: list[int], valid: np.ndarray | None = None) -> Batch:
    mask = np.ones(x.shape[:2], bool) if valid is None else valid
    return Batch(x, mask, np.array(units), wide=False)


def sequences(dtype: torch.dtype = torch.float64, scale: float = 1.0) -> torch.Tensor:
    x = torch.randn(6, 3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return ((x + 2.0) * scale).to(dtype)


UNITS = [0, 1, 3, 64, 65, 0]


def measured(x: torch.Tensor, order: list[int], shards: int = 1) -> Covariances:
    parts = [Covariances(4) for _ in range(shards)]
    for number, index in enumerate(order):
        parts[number % shards].update(batch(x[index : index + 1], [UNITS[index]]))
    for other in parts[1:]:
        parts[0].merge(other)
    return parts[0]


@pytest.mark.parametrize("shards", [1, 2, 5])
@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [5, 2, 4, 0, 3, 1]])
def test_against_numpy(shards: int, order: list[int]) -> None:
    x = sequences()
    counts, means, scatters = measured(x, order, shards).leaving_out(BLOCKS)
    of = np.array(UNITS) % 64
    for row, keep in enumerate([of >= 0, *(of != block for block in BLOCKS)]):
        rows = x.numpy()[keep].reshape(-1, 4)
        assert counts[row] == len(rows)
        # Stored in float64, they are divided by one power of two: the largest entry is below 1.
        power = 2.0 ** np.frexp(np.abs(x.numpy()).max())[1]
        assert means[row] == pytest.approx(rows.mean(axis=0) / power, rel=1e-12)
        expected = np.cov(rows.T, bias=True) * len(rows)
        assert scatters[row] == pytest.approx(expected / power**2, rel=1e-11)


def test_masked_positions_do_not_count() -> None:
    x = sequences(torch.float32)
    valid = np.arange(3) < np.array([1, 2, 3, 3, 1, 2])[:, None]
    holes = x.masked_fill(~torch.from_numpy(valid)[:, :, None], float("nan"))
    found = Covariances(4)
    found.update(batch(holes, UNITS, valid))
    rows = x.double().numpy()[valid]
    counts, _, scatters = found.leaving_out(BLOCKS)
    assert counts[0] == len(rows) == found.count
    assert scatters[0] == pytest.approx(np.cov(rows.T, bias=True) * len(rows), rel=1e-11)
    sizes = np.sqrt((rows**2).mean(axis=0))
    assert found.sizes == pytest.approx(sizes, rel=1e-12)


def test_equal_rows_have_no_scatter_at_all() -> None:
    x = torch.full((6, 3, 4), 0.1, dtype=torch.float32)
    _, _, scatters = measured(x, [0, 1, 2, 3, 4, 5], shards=3).leaving_out(BLOCKS)
    assert not scatters.any()


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0]])
def test_each_batch_may_be_much_larger_than_the_last(order: list[int]) -> None:
    """Squares of neither fit into float64; relative to the largest, the first are nothing."""
    x = sequences()
    x[5] *= 1e250
    x[0] *= 1e-250
    _, _, scatters = measured(x, order).leaving_out(np.array([0]))
    largest = x[5].numpy() / 2.0 ** np.frexp(float(x.abs().max()))[1]
    rows = np.concatenate([np.zeros((6, 4)), largest])  # of the sequences 0, 3 and 5
    assert scatters[0] == pytest.approx(np.cov(rows.T, bias=True) * 9, rel=1e-11)


def test_nothing_left_without_the_only_block() -> None:
    found = Covariances(4)
    found.update(batch(sequences()[:1], [7]))
    counts, _, scatters = found.leaving_out(np.array([7]))
    assert counts.tolist() == [3, 0]
    assert not scatters[1].any()
