"""Lengths of representations, and the length of their mean: the drift.

Sources: Godey, de la Clergerie and Sagot 2023 (drift). Means and spreads are merged by the update
of Chan, Golub and LeVeque 1983, which keeps its digits when the spread is small beside the mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
import torch

from isotest.statistics.accumulator import (
    Evaluated,
    divide,
    evaluated,
    per_block,
    totals,
    undefined,
)
from isotest.statistics.beta import mean_root_of_share
from isotest.statistics.blocks import BLOCKS, block_of
from isotest.statistics.layer import value_of
from isotest.statistics.sums import VectorSums

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.statistics.batch import Batch

    Array = NDArray[np.float64]


CANCELS = 1e-3
"""Below this share of its terms, ‖S‖² − 2 S·S_b + ‖S_b‖² has lost more digits than it may."""


def pooled(counts: Array, means: Array, spreads: Array) -> tuple[float, float]:
    """Mean and Σ(x − mean)² of several groups together (Chan, Golub and LeVeque 1983).

    Args:
        counts: members of each group.
        means: mean of each group.
        spreads: Σ(x − mean)² of each group.

    >>> pooled(np.array([1.0, 2.0]), np.array([0.0, 3.0]), np.array([0.0, 0.5]))
    (2.0, 6.5)
    """
    total = counts.sum()
    if not total:
        return float("nan"), float("nan")
    mean = (counts * means).sum() / total
    return float(mean), float((spreads + counts * (means - mean) ** 2).sum())


class Norms:
    """``mean_norm``, ``norm_std`` (÷ N), ``drift_norm`` and ``drift_share``.

    Representations of zero length count here. Everything is kept in units of 2^exponent, the
    largest power of two seen (float64 storage only), so that squares stay in range.
    """

    def __init__(self, metrics: Collection[str], *, grouped: bool) -> None:
        del grouped  # blocks are all that matters here
        self.metrics = frozenset(metrics)
        self._exponent: int | None = None
        self._counts = np.zeros(BLOCKS)
        self._means = np.zeros(BLOCKS)
        self._spreads = np.zeros(BLOCKS)
        self._energies = np.zeros(BLOCKS)
        self._sums = VectorSums()
        self._width = 0

    def update(self, batch: Batch) -> None:
        """Add the lengths and the vectors of a batch."""
        norms = batch.norms
        self._width = batch.raw.shape[2]
        # Zero rows have no magnitude, and must not set the scale of those that have one.
        directed = batch.directed
        if directed.any():
            self._raise_exponent(int(batch.exponents[directed].max()))
        relative = np.minimum(batch.exponents - (self._exponent or 0), 0)
        scale = np.where(directed, np.ldexp(1.0, relative), 0.0)
        self._add_lengths(norms * scale, batch)
        if not self.metrics & {"drift_norm", "drift_share"}:
            return
        if batch.wide:
            self._sums.hold(batch.held, scale[:, 0], batch.blocks)
        else:
            # A power of two each, hence exact.
            shift = np.ldexp(1.0, np.minimum(batch.tops - (self._exponent or 0), 0))
            factors = torch.from_numpy(shift).to(batch.sums.device)
            self._sums.add(batch.sums * factors[:, None], batch.blocks)

    def merge(self, other: Self) -> None:
        """Add everything ``other`` has seen."""
        factor = 1.0
        self._width = self._width or other._width
        if other._exponent is not None:
            self._raise_exponent(other._exponent)
            factor = float(np.ldexp(1.0, other._exponent - (self._exponent or 0)))
        self._pool(other._counts, other._means * factor, other._spreads * factor**2)
        self._energies += other._energies * factor**2
        self._sums.merge(other._sums.scaled(factor))

    def evaluate(self, blocks: NDArray[np.int64]) -> Mapping[str, Evaluated]:
        """The metrics over everything and without each block."""
        counts, means, spreads = (
            values[blocks] for values in (self._counts, self._means, self._spreads)
        )
        everything = np.ones(len(blocks), dtype=bool)
        masks = [everything, *(~np.eye(len(blocks), dtype=bool))]
        moments = np.array([pooled(counts[m], means[m], spreads[m]) for m in masks])
        kept = np.array([counts[m].sum() for m in masks])
        deviations = np.sqrt(divide(moments[:, 1], kept))
        result = {
            "mean_norm": self._restored(moments[:, 0]),
            "norm_std": self._restored(deviations),
        }
        if self.metrics & {"drift_norm", "drift_share"}:
            result |= self._drift(blocks, counts)
        return {name: result[name] for name in result if name in self.metrics}

    def _restored(self, values: Array, isotropic: float | None = None) -> Evaluated:
        """In the layer's own unit: the value overall, then without each block."""
        power = self._exponent or 0
        with np.errstate(over="ignore"):  # an infinite value is reported as out of range
            if isotropic is not None:
                isotropic = float(np.ldexp(isotropic, power))
            return evaluated(np.ldexp(values, power), isotropic=isotropic)

    def _drift(self, blocks: NDArray[np.int64], counts: Array) -> dict[str, Evaluated]:
        squares = self._squared_totals(blocks)
        energies = self._energies[blocks]
        count = totals(counts)
        # Of isotropic data of the same mean squared length.
        length = np.sqrt(energies.sum() / count[0])
        isotropic = length * mean_root_of_share(self._width, self._width * (int(count[0]) - 1))
        drift = self._restored(divide(np.sqrt(squares), count), isotropic)
        if not energies.sum():
            reason = f"all {int(count[0])} representations have zero length"
            return {"drift_norm": drift, "drift_share": undefined(reason)}
        return {
            "drift_norm": drift,
            "drift_share": evaluated(
                divide(squares, count * totals(energies)), isotropic=1 / count[0]
            ),
        }

    def _squared_totals(self, blocks: NDArray[np.int64]) -> Array:
        """(1 + G,) ‖S‖² of the vector sum S, then ‖S − S_b‖² for each block."""
        order = np.argsort(np.searchsorted(blocks, block_of(np.array(self._sums.keys))))
        total = 0.0
        cross, own = np.zeros(len(blocks)), np.zeros(len(blocks))
        for sums in self._sums.parts():
            overall = sums.sum(dim=0)
            total += float(overall.dot(overall))
            cross += (sums @ overall).cpu().numpy()
            own += torch.linalg.vector_norm(sums, dim=1).square().cpu().numpy()
        without = total - 2 * cross + own
        if (without < CANCELS * (total + own)).any():
            without = self._direct_totals(len(blocks))
        return np.append(total, without[order])

    def _direct_totals(self, blocks: int) -> Array:
        """‖S − S_b‖² from differences, which keep their digits where a block is nearly all of S."""
        without = np.zeros(blocks)
        for sums in self._sums.parts():
            rest = sums.sum(dim=0) - sums
            without += torch.linalg.vector_norm(rest, dim=1).square().cpu().numpy()
        return without

    def _add_lengths(self, lengths: Array, batch: Batch) -> None:
        counts = batch.counts.astype(np.float64)
        means = lengths.sum(axis=1) / np.maximum(counts, 1)
        deviations = np.where(batch.valid, lengths - means[:, None], 0.0)
        spreads = (deviations**2).sum(axis=1)
        totals = per_block(batch.blocks, counts)
        block_means = per_block(batch.blocks, counts * means) / np.maximum(totals, 1)
        between = counts * (means - block_means[batch.blocks]) ** 2
        self._pool(totals, block_means, per_block(batch.blocks, spreads + between))
        self._energies += per_block(batch.blocks, (lengths**2).sum(axis=1))

    def _pool(self, counts: Array, means: Array, spreads: Array) -> None:
        total = np.maximum(self._counts + counts, 1)
        step = means - self._means
        self._spreads += spreads + step**2 * (self._counts * counts / total)
        self._means += step * (counts / total)
        self._counts += counts

    def _raise_exponent(self, exponent: int) -> None:
        if self._exponent is None:
            self._exponent = exponent
        elif exponent > self._exponent:
            factor = float(np.ldexp(1.0, self._exponent - exponent))
            self._exponent = exponent
            self._means *= factor
            self._spreads *= factor**2
            self._energies *= factor**2
            self._sums = self._sums.scaled(factor)


def mean_norm(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """Mean of ‖x_i‖.

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> mean_norm(torch.tensor([[[3.0, 4.0], [0.0, 0.0]]]))
    2.5
    """
    return value_of("mean_norm", x, units, mask)


def norm_std(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """Standard deviation of ‖x_i‖, ÷ N.

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> norm_std(torch.tensor([[[3.0, 4.0], [0.0, 0.0]]]))
    2.5
    """
    return value_of("norm_std", x, units, mask)


def drift_norm(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """Length of the mean representation, ‖x̄‖.

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> drift_norm(torch.tensor([[[3.0, 4.0], [3.0, -4.0]]]))
    3.0
    """
    return value_of("drift_norm", x, units, mask)


def drift_share(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """Share of the energy that is the common direction, ‖x̄‖² / mean‖x_i‖².

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> drift_share(torch.tensor([[[3.0, 4.0], [3.0, -4.0]]]))
    0.36
    """
    return value_of("drift_share", x, units, mask)
