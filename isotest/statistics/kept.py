"""Representations that are kept, for metrics that do not follow from sums.

Spectra, neighbours and lengths after centring need the representations themselves. All of a layer
are kept up to a capacity, and beyond it every second, fourth, … position of each sequence, then,
where each sequence has but one, those of every second, fourth, … round of 64 units. Which are kept
depends on positions and units alone, hence not on batches, order or merges.

Each metric is a function of the :class:`isotest.statistics.sample.Sample` that comes of it, named
as ``evaluator`` in the registry; what several of them need is computed once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, cast

import numpy as np
import torch

from isotest.statistics.accumulator import Evaluated, undefined
from isotest.statistics.blocks import BLOCKS
from isotest.statistics.computing import computing
from isotest.statistics.covariance import NARROW, Covariances
from isotest.statistics.registry import METRICS
from isotest.statistics.sample import Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.statistics.batch import Batch

    Index = NDArray[np.int64]

CAPACITY = 2048
"""Representations that are kept at most."""

ENTRIES = 1 << 22
"""Entries that they have at most; of very wide ones, one for each block is always kept."""

_NONE = np.empty(0, np.int64)


class Kept:
    """The representations of one layer that are kept, and the metrics wanted of them."""

    def __init__(self, metrics: Collection[str], *, grouped: bool) -> None:
        del grouped  # units are kept beside each representation
        self._metrics = tuple(metrics)
        self._stride = 1
        self._rounds = 1
        self._seen = 0
        self._spectral = any(METRICS[name].covariance for name in metrics)
        self._covariances: Covariances | None = None
        self._too_many = False
        self._rows: list[Tensor] = []
        self._units: list[Index] = []
        self._positions: list[Index] = []

    def update(self, batch: Batch) -> None:
        """Keep what is to be kept of a batch."""
        self._seen += int(batch.counts.sum())
        width = batch.raw.shape[2]
        if self._spectral and width <= NARROW:
            self._covariances = self._covariances or Covariances(width)
            self._covariances.update(batch)
        if self._too_many:
            return
        position = np.cumsum(batch.valid, axis=1) - 1
        kept = batch.valid & (position % self._stride == 0)
        kept &= ((batch.units // BLOCKS) % self._rounds == 0)[:, None]
        if not kept.any():
            return
        units = np.broadcast_to(batch.units[:, None], kept.shape)
        if self._count + int(kept.sum()) > self._capacity(width):
            # Thinned before it is copied, not after.
            self._thin(width, units[kept], position[kept])
            kept &= self._chosen(units, position)
            if self._too_many or not kept.any():
                return
        if kept.shape[1] == 1 and kept.all() and batch.raw.dtype != torch.float64:
            rows = batch.held  # one copy for all that hold wide rows
        elif batch.everything_valid and self._rounds == 1:
            # As below, but a copy of stretches of memory instead of a look-up of rows.
            rows = batch.raw[:, :: self._stride].clone().flatten(0, 1)
        else:
            rows = batch.raw[torch.from_numpy(kept).to(batch.raw.device)]
        self._rows.append(rows)
        self._units.append(units[kept])
        self._positions.append(position[kept])

    def merge(self, other: Self) -> None:
        """Keep what is to be kept of what ``other`` has."""
        self._seen += other._seen
        if other._covariances is not None:
            self._covariances = self._covariances or Covariances(other._covariances.width)
            self._covariances.merge(other._covariances)
        self._too_many |= other._too_many
        self._stride = max(self._stride, other._stride)
        self._rounds = max(self._rounds, other._rounds)
        for rows, units, positions in zip(other._rows, other._units, other._positions, strict=True):
            self._rows.append(rows)
            self._units.append(units)
            self._positions.append(positions)
        if self._rows:
            self._thin(self._rows[0].shape[1])

    def evaluate(self, blocks: Index) -> Mapping[str, Evaluated]:
        """The wanted metrics over everything and without each block."""
        none = self._too_many or not any(map(len, self._units))
        # The order in which they came must not matter, not even to the last digit.
        units, positions = (
            np.empty(0, np.int64) if none else np.concatenate(parts)
            for parts in (self._units, self._positions)
        )
        order = np.lexsort((positions, units))
        sample = Sample(
            self._rows, units, order, blocks, seen=self._seen, covariances=self._covariances
        )
        unkept = undefined(
            f"more than {BLOCKS} wide representations of few groups: too many to keep"
        )
        return {
            name: unkept if none and not self._is_summed(name) else _evaluator(name)(sample)
            for name in self._metrics
        }

    def _is_summed(self, name: str) -> bool:
        return METRICS[name].covariance and self._covariances is not None

    @property
    def _count(self) -> int:
        return sum(map(len, self._units))

    @staticmethod
    def _capacity(width: int) -> int:
        return max(BLOCKS, min(CAPACITY, ENTRIES // width))

    def _chosen(self, units: Index, positions: Index) -> NDArray[np.bool_]:
        """Which of these are to be kept."""
        chosen: NDArray[np.bool_] = (positions % self._stride == 0) & (
            (units // BLOCKS) % self._rounds == 0
        )
        return chosen

    def _thin(self, width: int, more_units: Index = _NONE, more_positions: Index = _NONE) -> None:
        """Double the stride, then the rounds, until what is left fits, with some more to come."""
        if self._too_many:
            self._rows, self._units, self._positions = [], [], []
            return
        units = np.concatenate([*self._units, more_units])
        positions = np.concatenate([*self._positions, more_positions])
        chosen = self._chosen(units, positions)
        while chosen.sum() > self._capacity(width):
            if (positions[chosen] > 0).any():
                self._stride *= 2
            elif (units[chosen] >= BLOCKS).any():
                self._rounds *= 2
            else:
                self._too_many = True
                self._rows, self._units, self._positions = [], [], []
                return
            chosen = self._chosen(units, positions)
        if chosen[: self._count].all():
            return
        # A part that loses all its rows goes.
        parts = list(zip(self._rows, self._units, self._positions, strict=True))
        self._rows, self._units, self._positions = [], [], []
        first = 0
        for rows, own_units, own_positions in parts:
            mine = chosen[first : first + len(rows)]
            first += len(rows)
            if mine.any():
                here = slice(None) if mine.all() else torch.from_numpy(mine).to(rows.device)
                self._rows.append(rows[here])
                self._units.append(own_units[mine])
                self._positions.append(own_positions[mine])


def _evaluator(name: str) -> Callable[[Sample], Evaluated]:
    reference = METRICS[name].evaluator
    if reference is None:
        raise ValueError(f"metric {name!r} is of kept representations and names no evaluator")
    return cast("Callable[[Sample], Evaluated]", computing(name, reference))
