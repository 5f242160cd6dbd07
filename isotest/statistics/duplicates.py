"""Share of representations that are bitwise copies of another one, and of pairs within sequences.

Each representation is reduced to a 64-bit hash of its bits in storage precision, and distinct
hashes are counted. Beyond ``CAPACITY`` distinct ones only those hashes are kept whose low bits are
zero (adaptive sampling, Flajolet 1990), with the number of times each occurred. What is kept
depends on the hashes alone, hence not on order, batches or merges; but whether equal positions of
two batches of another shape are bitwise equal is up to the rounding of the model's forward pass.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Self

import numpy as np

from isotest.statistics.accumulator import (
    Evaluated,
    divide,
    evaluated,
    per_block,
    totals,
    undefined,
)
from isotest.statistics.blocks import BLOCKS
from isotest.statistics.layer import value_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.statistics.batch import Batch

    Hashes = NDArray[np.uint64]

CAPACITY = 1 << 15
"""Distinct representations up to which the count is exact (but for chance collisions of hashes)."""

PAIRS = "duplicate_pairs_within"

_PENDING = 1 << 13
_SLICE = 1 << 14
_ENTRIES = 1 << 17
_SHORT = 1 << 4
_POWER = np.uint64(0x9E3779B97F4A7C15)


class Duplicates:
    """``duplicate_share``: 1 − distinct / N, the share that repeats one seen elsewhere.

    And ``duplicate_pairs_within``: of the pairs of representations of one sequence that have a
    direction, the share that are copies. It is counted sequence by sequence, always exactly.

    Exact while there are at most ``CAPACITY`` distinct representations; beyond, the same ratio over
    the sampled ones, which is still exactly 0 if nothing repeats. Without block b it is the same
    ratio over the other blocks, so copies in different blocks count as copies.
    """

    def __init__(self, metrics: Collection[str], *, grouped: bool) -> None:
        del grouped  # pairs are those within a sequence
        self._metrics = frozenset(metrics)
        self._pairs = np.zeros(BLOCKS)
        self._copies = np.zeros(BLOCKS)
        self._level = 0
        self._hashes = np.empty(0, np.uint64)
        self._blocks = np.empty(0, np.int64)
        self._counts = np.empty(0, np.int64)
        self._pending: list[tuple[Hashes, NDArray[np.int64]]] = []

    def update(self, batch: Batch) -> None:
        """Hash the valid representations of a batch."""
        blocks = np.repeat(batch.blocks, batch.counts)
        rows = _hashed(batch)
        if PAIRS in self._metrics:
            self._count_pairs(batch, rows)
        self._pending.append((rows, blocks))
        if sum(len(blocks) for _, blocks in self._pending) > _PENDING:
            self._compact()

    def merge(self, other: Self) -> None:
        """Take in everything ``other`` has seen."""
        self._pairs += other._pairs
        self._copies += other._copies
        other._compact()
        self._level = max(self._level, other._level)
        self._compact((other._hashes, other._blocks, other._counts))

    def evaluate(self, blocks: NDArray[np.int64]) -> Mapping[str, Evaluated]:
        """The wanted shares over everything and without each block."""
        found = {"duplicate_share": self._rows, PAIRS: self._within}
        return {name: found[name](blocks) for name in self._metrics}

    def _count_pairs(self, batch: Batch, rows: Hashes) -> None:
        directed = batch.directed.sum(axis=1)
        self._pairs += per_block(batch.blocks, directed * (directed - 1.0))
        sequences = np.repeat(np.arange(len(batch.counts)), batch.counts)
        some = batch.directed[batch.valid]  # zeros are alike, and have no direction
        sequences, rows = sequences[some], rows[some]
        order = np.lexsort((rows, sequences))
        sequences, rows = sequences[order], rows[order]
        if not len(rows):
            return
        new = (rows[1:] != rows[:-1]) | (sequences[1:] != sequences[:-1])
        first = np.flatnonzero(np.r_[True, new])
        alike = np.diff(np.r_[first, len(rows)])
        self._copies += per_block(batch.blocks[sequences[first]], alike * (alike - 1.0))

    def _within(self, blocks: NDArray[np.int64]) -> Evaluated:
        pairs, copies = self._pairs[blocks], self._copies[blocks]
        if not pairs.sum():
            return undefined("no sequence has two representations with a direction", vacuous=True)
        return evaluated(divide(totals(copies), totals(pairs)))

    def _rows(self, blocks: NDArray[np.int64]) -> Evaluated:
        self._compact()
        first = np.flatnonzero(np.r_[True, self._hashes[1:] != self._hashes[:-1]])
        lone = np.diff(np.r_[first, len(self._hashes)]) == 1
        lost = np.bincount(self._blocks[first[lone]], minlength=blocks.max() + 1)[blocks]
        seen = np.bincount(self._blocks, weights=self._counts, minlength=blocks.max() + 1)[blocks]
        total = seen.sum()
        with np.errstate(invalid="ignore"):
            without = 1.0 - (len(first) - lost) / (total - seen)
        return Evaluated(float(1.0 - len(first) / total), without)

    def _compact(
        self,
        more: tuple[Hashes, NDArray[np.int64], NDArray[np.int64]] | None = None,
    ) -> None:
        pending, self._pending = self._pending, []
        parts = [
            (self._hashes, self._blocks, self._counts),
            *((values, blocks, np.ones(len(values), np.int64)) for values, blocks in pending),
            *([more] if more else []),
        ]
        values, blocks, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
        keep = (values & _low_bits(self._level)) == 0
        values, blocks, counts = values[keep], blocks[keep], counts[keep]
        order = np.lexsort((blocks, values))
        values, blocks, counts = values[order], blocks[order], counts[order]
        if len(values):
            new = (values[1:] != values[:-1]) | (blocks[1:] != blocks[:-1])
            starts = np.flatnonzero(np.r_[True, new])
            values, blocks = values[starts], blocks[starts]
            counts = np.add.reduceat(counts, starts)
        while len(values) > CAPACITY and len(np.unique(values)) > CAPACITY:
            self._level += 1
            keep = (values & _low_bits(self._level)) == 0
            values, blocks, counts = values[keep], blocks[keep], counts[keep]
        self._hashes, self._blocks, self._counts = values, blocks, counts


def _hashed(batch: Batch) -> Hashes:
    """(valid rows,) hash of each, row after row."""
    words = batch.words()
    count, length, width = words.shape
    # Between sequences there may be a prefix that was left out: do not copy around it.
    whole = words.flags.c_contiguous or length < _SHORT
    parts = [words.reshape(-1, width)] if whole else words
    found = np.concatenate([hashes(part) for part in parts]).reshape(count, length)
    valid: Hashes = found[batch.valid]
    return valid


def hashes(words: NDArray[np.int64]) -> Hashes:
    """(R,) hash of each row of 64-bit words (R, W): equal rows have equal hashes.

    A random linear form modulo 2^64. Rows that differ in a single high bit would often collide
    under it, so the high half of each word is first mixed into the low half, which leaves a chance
    of about 2^-32 for rows that differ in sign bits only, and far less for any others.
    """
    count, width = words.shape
    factors = _factors(min(width, _SLICE))
    total = np.zeros(count, np.uint64)
    step = max(1, _ENTRIES // max(1, min(width, _SLICE)))
    memory = np.empty((min(step, count), len(factors)), np.uint64)
    for row in range(0, count, step):
        for column in range(0, width, _SLICE):
            part = words[row : row + step, column : column + _SLICE].view(np.uint64)
            mixed = memory[: part.shape[0], : part.shape[1]]
            np.right_shift(part, np.uint64(32), out=mixed)
            mixed ^= part
            # Every slice has the same factors; where it stands, counts by powers of this one.
            total[row : row + step] *= _POWER
            total[row : row + step] += np.einsum("rw,w->r", mixed, factors[: part.shape[1]])
    return _finished(total)


def _finished(values: Hashes) -> Hashes:
    """Spread the bits evenly, so that the low ones sample fairly (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


@lru_cache(maxsize=64)
def _factors(width: int) -> Hashes:
    return np.random.Generator(np.random.PCG64(width)).integers(
        0, 2**64, size=width, dtype=np.uint64
    ) | np.uint64(1)


def _low_bits(level: int) -> np.uint64:
    return np.uint64((1 << level) - 1)


def duplicate_share(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """Share of representations that are bitwise copies of another one, 1 − distinct / N.

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> duplicate_share(torch.tensor([[[1.0, 2.0], [1.0, 2.0], [2.0, 1.0], [0.0, 0.0]]]))
    0.25
    """
    return value_of("duplicate_share", x, units, mask)


def duplicate_pairs_within(
    x: Tensor, units: Tensor | None = None, mask: Tensor | None = None
) -> float:
    """Share of the pairs of representations of one sequence that are bitwise copies.

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> x = torch.tensor([[[1.0, 2.0], [1.0, 2.0], [2.0, 1.0]]])
    >>> round(duplicate_pairs_within(x), 6)
    0.333333
    """
    return value_of("duplicate_pairs_within", x, units, mask)
