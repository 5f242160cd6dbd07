"""Cosines over all pairs of representations, exactly, from sums of unit vectors.

With unit vectors u_i, sequences s of n_s members, units g (independent groups of sequences),
N = Σ n, U = Σ u over a sequence or a unit and T = Σ u over everything, the sum of all cosines is
‖T‖², and the sum of those within a unit is ‖U_g‖². So O(N·D) work yields the mean over all O(N²)
pairs. Representations of zero length have no direction and are left out.

Sources: Godey, de la Clergerie and Sagot 2023 (anisotropy); Ethayarajh 2019 (intra-similarity);
Timkey and van Schijndel 2021 (the share of single dimensions).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import torch

from isotest.statistics.accumulator import (
    LONE,
    Evaluated,
    divide,
    evaluated,
    per_block,
    totals,
    undefined,
)
from isotest.statistics.blocks import BLOCKS, block_of
from isotest.statistics.dimensions import Tops, contributions
from isotest.statistics.layer import value_of
from isotest.statistics.rogue import ROGUE, rogue
from isotest.statistics.sums import VectorSums

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.statistics.batch import Batch

    Array = NDArray[np.float64]

ISOTROPIC = 0.01
"""Below this |anisotropy| there is too little of it to say which dimension contributes it."""


def between_units(total: Array, own: Array, count: Array, own_pairs: Array) -> Array:
    """Mean cosine over pairs from different units: (‖T‖² − Σ‖U_g‖²) / (N² − Σ n_g²).

    Args:
        total: ‖T‖².
        own: Σ ‖U_g‖².
        count: N.
        own_pairs: Σ n_g².
    """
    return divide(total - own, count**2 - own_pairs)


def over_all_pairs(total: Array, count: Array) -> Array:
    """Mean cosine over all distinct pairs: (‖T‖² − N) / (N(N − 1))."""
    return divide(total - count, count * (count - 1))


def within_sequences(own: Array, count: Array, ordered_pairs: Array) -> Array:
    """Mean cosine within sequences: (Σ‖U_s‖² − N) / Σ n_s(n_s − 1)."""
    return divide(own - count, ordered_pairs)


@dataclass(frozen=True)
class _Geometry:
    """Squared lengths of sums of unit vectors, (1 + G,): overall, then without each block.

    Attributes:
        total: ‖T‖².
        own: Σ_g ‖U_g‖².
        top: largest of T_k² − Σ_g U_{g,k}² over the dimensions k.
    """

    total: Array
    own: Array
    top: Array


class Cosines:
    """``anisotropy``, ``anisotropy_all``, ``intra_similarity`` and ``dimension_share``.

    Without groups every sequence is its own unit and is folded into its block at once: memory is
    2 × 64 × D float64 whatever the number of sequences. With groups the sequences of one unit may
    come in any batch, so the sum of each unit is kept: units × D float64.
    """

    def __init__(self, metrics: Collection[str], *, grouped: bool) -> None:
        self.metrics = frozenset(metrics)
        self.grouped = grouped
        self._sums = VectorSums()
        self._squares = VectorSums(squared=True)
        self._unit_counts: Counter[int] = Counter()
        self._unit_pairs = np.zeros(BLOCKS)
        self._counts = np.zeros(BLOCKS)
        self._sequence_squares = np.zeros(BLOCKS)
        self._sequence_pairs = np.zeros(BLOCKS)
        self._zero_length = 0
        self._longest = 0

    def update(self, batch: Batch) -> None:
        """Add the unit vectors of a batch."""
        directed = batch.directed
        counts = directed.sum(axis=1)
        keys = batch.units if self.grouped else batch.blocks
        if batch.wide:
            weights = np.zeros(len(directed))
            np.divide(1.0, batch.norms[:, 0], out=weights, where=directed[:, 0])
            self._sums.hold(batch.held, weights, keys)
            if not self.grouped:
                self._squares.hold(batch.held, weights, keys)
            squares = counts.astype(np.float64)  # one unit vector, or none
        else:
            sums = batch.direction_sums
            self._sums.add(sums, keys)
            if not self.grouped:
                self._squares.add(sums, keys)
            squares = sums.square().sum(dim=1).cpu().numpy()
        if self.grouped:
            for unit, count in zip(batch.units.tolist(), counts.tolist(), strict=True):
                self._unit_counts[unit] += count
        else:
            self._unit_pairs += per_block(batch.blocks, counts**2)
        self._counts += per_block(batch.blocks, counts)
        self._sequence_squares += per_block(batch.blocks, squares)
        self._sequence_pairs += per_block(batch.blocks, counts * (counts - 1))
        self._zero_length += int(batch.counts.sum() - counts.sum())
        self._longest = max(self._longest, int(batch.counts.max(initial=0)))

    def merge(self, other: Self) -> None:
        """Add everything ``other`` has seen."""
        self._sums.merge(other._sums)
        self._squares.merge(other._squares)
        self._unit_counts.update(other._unit_counts)
        self._unit_pairs += other._unit_pairs
        self._counts += other._counts
        self._sequence_squares += other._sequence_squares
        self._sequence_pairs += other._sequence_pairs
        self._zero_length += other._zero_length
        self._longest = max(self._longest, other._longest)

    def evaluate(self, blocks: NDArray[np.int64]) -> Mapping[str, Evaluated]:
        """The metrics over everything and without each block."""
        counts = self._counts[blocks]
        if not counts.sum():
            reason = undefined(f"all {self._zero_length} representations have zero length")
            return dict.fromkeys(self.metrics, reason)
        geometry = self._geometry(blocks)
        result = {}
        if self.metrics & ({"anisotropy", "dimension_share"} | ROGUE):
            pairs = self._pairs(blocks)
            between = self._between(geometry, counts, pairs)
            result["anisotropy"] = between
            if "dimension_share" in self.metrics:
                result["dimension_share"] = self._dimension_share(geometry, between, blocks)
            if self.metrics & ROGUE:
                result |= self._rogue(geometry, between, blocks)
        if "anisotropy_all" in self.metrics:
            result["anisotropy_all"] = _all_pairs(geometry, counts)
        if "intra_similarity" in self.metrics:
            result["intra_similarity"] = self._within(blocks)
        return {name: result[name] for name in result if name in self.metrics}

    def _pairs(self, blocks: NDArray[np.int64]) -> Array:
        if not self.grouped:
            return self._unit_pairs[blocks]
        units = np.fromiter(self._unit_counts, np.int64, len(self._unit_counts))
        sizes = np.fromiter(self._unit_counts.values(), np.float64, len(self._unit_counts))
        return per_block(block_of(units), sizes**2)[blocks]

    def _between(self, geometry: _Geometry, counts: Array, pairs: Array) -> Evaluated:
        count, own_pairs = counts.sum(), pairs.sum()
        if count**2 == own_pairs:
            return undefined(
                f"all {int(count)} representations with a direction are of one independent unit"
            )
        values = between_units(geometry.total, geometry.own, totals(counts), totals(pairs))
        return evaluated(values, isotropic=0.0)

    def _within(self, blocks: NDArray[np.int64]) -> Evaluated:
        own, count = self._sequence_squares[blocks], self._counts[blocks]
        pairs = self._sequence_pairs[blocks]
        if not pairs.sum():
            if self._longest <= 1:
                return undefined(LONE, vacuous=True)
            return undefined(
                f"no sequence has two representations with a direction "
                f"({self._zero_length} have zero length)"
            )
        return evaluated(within_sequences(totals(own), totals(count), totals(pairs)), isotropic=0.0)

    def _geometry(self, blocks: NDArray[np.int64]) -> _Geometry:
        order = self._order(blocks)
        total = 0.0
        cross, square, own = (np.zeros(len(blocks)) for _ in range(3))
        top = Tops(len(blocks))
        for sums, squares, single in self._parts(blocks):
            overall, overall_squares = sums.sum(dim=0), squares.sum(dim=0)
            total += float(overall.dot(overall))
            cross += (sums @ overall).cpu().numpy()
            lengths = squares.sum(dim=1).cpu().numpy()
            own += lengths
            square += lengths if single else sums.square().sum(dim=1).cpu().numpy()
            if "dimension_share" in self.metrics:
                top.update(sums, squares, overall, overall_squares)
        without_block = total - 2 * cross + square  # ‖T − U_b‖²
        return _Geometry(
            np.append(total, without_block[order]),
            totals(own[order]),
            top.values[np.append(0, 1 + order)],
        )

    def _order(self, blocks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where in the rows of ``_parts`` each block stands."""
        rows = self._rows(blocks)
        return np.argsort(rows) if len(rows) == len(blocks) else np.arange(len(blocks))

    def _rows(self, blocks: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.searchsorted(blocks, block_of(np.array(self._sums.keys, dtype=np.int64)))

    def _parts(self, blocks: NDArray[np.int64]) -> Iterator[tuple[Tensor, Tensor, bool]]:
        """At some dimensions at a time, (G, dimensions) U_b and Σ_g U_g² over the units of b.

        Third, whether each block is one unit, so that the squares are those of the sums.
        """
        rows = self._rows(blocks)
        # With one key to a block its sum is the block's, and only the results need sorting.
        one_key = len(rows) == len(blocks)
        one_unit = one_key and (self.grouped or self._sums.lone)
        for sums, squares in self._by_key():
            if not one_key:
                sums, squares = (_by_block(part, rows, len(blocks)) for part in (sums, squares))
            yield sums, squares, one_unit

    def _dimension_share(
        self, geometry: _Geometry, anisotropy: Evaluated, blocks: NDArray[np.int64]
    ) -> Evaluated:
        if anisotropy.value is None:
            return anisotropy
        if abs(anisotropy.value) < ISOTROPIC:
            return undefined(
                f"|anisotropy| is below {ISOTROPIC}: there is nothing to share out", vacuous=True
            )
        total = geometry.total - geometry.own
        largest = geometry.top
        if (total < 0).any():  # of a negative total the smallest contributes most
            bottom = np.full(1 + len(blocks), np.inf)
            for sums, squares, _ in self._parts(blocks):
                overall, overall_squares = sums.sum(dim=0), squares.sum(dim=0)
                every = contributions(sums, squares, overall, overall_squares)
                np.minimum(bottom, every.amin(dim=1).cpu().numpy(), out=bottom)
            order = np.append(0, 1 + self._order(blocks))
            largest = np.where(total >= 0, largest, bottom[order])
        shares = divide(largest, total)
        # Without any pair the total is zero but for rounding, which is nothing to divide by.
        shares[1:][np.isnan(anisotropy.without)] = np.nan
        return evaluated(shares)

    def _rogue(
        self, geometry: _Geometry, anisotropy: Evaluated, blocks: NDArray[np.int64]
    ) -> Mapping[str, Evaluated]:
        if anisotropy.value is None or abs(anisotropy.value) < ISOTROPIC:
            return dict.fromkeys(ROGUE, self._dimension_share(geometry, anisotropy, blocks))
        total = geometry.total - geometry.own
        total[1:][np.isnan(anisotropy.without)] = np.nan
        order = np.append(0, 1 + self._order(blocks))
        return rogue(self._parts(blocks), total, order)

    def _by_key(self) -> Iterator[tuple[Tensor, Tensor]]:
        """(keys, dimensions) U of each key and Σ U_g² over its units, at some dimensions."""
        if not self.grouped and not self._sums.lone:
            yield from zip(self._sums.parts(), self._squares.parts(), strict=True)
            return
        memory: Tensor | None = None
        for sums in self._sums.parts():
            if memory is None:
                memory = sums.new_empty(sums.shape)
            squares = memory[:, : sums.shape[1]]
            yield sums, torch.mul(sums, sums, out=squares)


def _by_block(parts: Tensor, rows: NDArray[np.int64], blocks: int) -> Tensor:
    index = torch.from_numpy(rows).to(parts.device)
    return parts.new_zeros(blocks, parts.shape[1]).index_add_(0, index, parts)


def _all_pairs(geometry: _Geometry, counts: Array) -> Evaluated:
    if counts.sum() < 2:
        return undefined("there is one representation with a direction, and no pair")
    return evaluated(over_all_pairs(geometry.total, totals(counts)), isotropic=0.0)


def anisotropy(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """Mean cosine over pairs from different independent units (see the module).

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> anisotropy(torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]], [[0.0, 5.0]]]))
    0.3333333333333333
    """
    return value_of("anisotropy", x, units, mask)


def anisotropy_all(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """Mean cosine over all distinct pairs (see the module).

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> anisotropy_all(torch.tensor([[[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]]))
    0.3333333333333333
    """
    return value_of("anisotropy_all", x, units, mask)


def intra_similarity(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """Mean cosine over pairs within a sequence (see the module).

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> intra_similarity(torch.tensor([[[3.0, 0.0], [0.5, 0.0]], [[0.0, 2.0], [0.0, 4.0]]]))
    1.0
    """
    return value_of("intra_similarity", x, units, mask)


def dimension_share(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """Share of the anisotropy that the largest single dimension contributes.

    max_k (T_k² − Σ_g U_{g,k}²) / (‖T‖² − Σ_g‖U_g‖²), undefined where the anisotropy is within
    ± ``ISOTROPIC``.

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> dimension_share(torch.tensor([[[1.0, 0.0]], [[1.0, 0.0]]]))
    1.0
    """
    return value_of("dimension_share", x, units, mask)
