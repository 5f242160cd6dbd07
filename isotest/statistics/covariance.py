"""Covariances of a narrow layer, of all its representations: exact, also without a block.

Up to ``NARROW`` dimensions a D × D matrix for each block is smaller than the representations that
would be kept instead, so spectra are those of everything the layer put out. Counts, means and
scatters are merged as Chan, Golub and LeVeque 1983 do it: never as a difference of large numbers,
so that 1e4 ± 0.05 in float32 keeps its digits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
import torch

from isotest.statistics.blocks import BLOCKS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isotest.statistics.batch import Batch

    Array = NDArray[np.float64]
    Index = NDArray[np.int64]

NARROW = 64
"""Dimensions up to which covariances are accumulated instead of representations kept."""


class Covariances:
    """Count, mean and scatter of the representations of each block.

    All are of the representations divided by one power of two, so that no square of what was stored
    in float64 is out of range.

    Args:
        width: D, at most ``NARROW``.
    """

    def __init__(self, width: int) -> None:
        self.eps = 0.0
        """Distance from 1 to the next number of the widest-spaced dtype they were stored in."""
        self._counts = np.zeros(BLOCKS)
        self._means = np.zeros((BLOCKS, width))
        self._scatters = np.zeros((BLOCKS, width, width))
        self._power: int | None = None

    def update(self, batch: Batch) -> None:
        """Add the representations of a batch."""
        self.eps = max(self.eps, float(torch.finfo(batch.raw.dtype).eps))
        rows = batch.rows
        if batch.directed.any() and batch.raw.dtype == torch.float64:
            self._raise_power(int(batch.exponents[batch.directed].max()))
            relative = batch.exponents - (self._power or 0)
            scale = np.where(batch.directed, np.ldexp(1.0, np.minimum(relative, 0)), 0.0)
            rows = rows * torch.from_numpy(scale).to(rows.device)[:, :, None]
        of_block = np.where(batch.valid, batch.blocks[:, None], BLOCKS).reshape(-1)
        order = np.argsort(of_block, kind="stable")[: int(batch.counts.sum())]
        blocks, sizes = np.unique(of_block[order], return_counts=True)
        ordered = rows.reshape(-1, rows.shape[2])[torch.from_numpy(order).to(rows.device)]
        means, scatters = [], []
        for part in torch.split(ordered, sizes.tolist()):
            # Less the first one first: near each other, they are subtracted without rounding.
            centred = part - part[0]
            shift = centred.mean(dim=0)
            centred -= shift
            means.append(part[0] + shift)
            scatters.append(centred.T @ centred)
        self._join(
            blocks,
            sizes.astype(np.float64),
            torch.stack(means).cpu().numpy(),
            torch.stack(scatters).cpu().numpy(),
        )

    def merge(self, other: Self) -> None:
        """Add everything that ``other`` has seen."""
        self.eps = max(self.eps, other.eps)
        factor = 1.0
        if other._power is not None:
            self._raise_power(other._power)
            factor = float(np.ldexp(1.0, other._power - (self._power or 0)))
        self._join(
            np.arange(BLOCKS),
            other._counts,
            other._means * factor,
            other._scatters * factor**2,
        )

    def _raise_power(self, power: int) -> None:
        if self._power is not None and power > self._power:
            factor = float(np.ldexp(1.0, self._power - power))
            self._means *= factor
            self._scatters *= factor**2
        self._power = power if self._power is None else max(power, self._power)

    def _join(self, blocks: Index, counts: Array, means: Array, scatters: Array) -> None:
        before = self._counts[blocks]
        total = np.maximum(before + counts, 1)
        step = means - self._means[blocks]
        between = step[:, :, None] * step[:, None, :]
        self._scatters[blocks] += scatters + between * (before * counts / total)[:, None, None]
        self._means[blocks] += step * (counts / total)[:, None]
        self._counts[blocks] += counts

    @property
    def count(self) -> int:
        """N, the representations of all blocks."""
        return int(self._counts.sum())

    @property
    def width(self) -> int:
        """D."""
        return self._means.shape[1]

    @property
    def sizes(self) -> Array:
        """(D,) root mean square of each dimension, over all blocks."""
        energies = np.einsum("bdd->bd", self._scatters) + self._counts[:, None] * self._means**2
        sizes: Array = np.sqrt(energies.sum(axis=0) / max(1, self.count))
        return sizes

    def leaving_out(self, blocks: Index) -> tuple[Array, Array, Array]:
        """Counts, means and scatters over everything and without each of G blocks.

        Args:
            blocks: (G,) numbers of the blocks that there are representations in.

        Returns:
            (1 + G,) counts, (1 + G, D) means, (1 + G, D, D) scatters; zeros where nothing is left.
        """
        chosen = [np.ones(len(blocks), bool), *(np.arange(len(blocks)) != np.c_[: len(blocks)])]
        counts, means, scatters = (
            array[blocks] for array in (self._counts, self._means, self._scatters)
        )
        found = [_joined(counts[some], means[some], scatters[some]) for some in chosen]
        return (
            np.array([count for count, _, _ in found]),
            np.array([mean for _, mean, _ in found]),
            np.array([scatter for _, _, scatter in found]),
        )


def _joined(counts: Array, means: Array, scatters: Array) -> tuple[float, Array, Array]:
    """Count, mean and scatter of several groups as one; zeros of none."""
    total = float(counts.sum())
    if not total:
        return 0.0, np.zeros(means.shape[1]), np.zeros(scatters.shape[1:])
    first = means[0]
    mean = first + counts @ (means - first) / total
    away = means - mean
    return total, mean, scatters.sum(axis=0) + (away.T * counts) @ away
