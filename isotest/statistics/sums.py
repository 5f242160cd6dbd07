"""Sums of vectors by key, exact in float64, kept so that very wide layers stay affordable."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from isotest.statistics.blocks import BLOCKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

SLICE = 1 << 19
"""Entries of the table that are worked on at a time: 4 MiB, which stay in a shared cache."""

NARROWEST = 1 << 13
"""Dimensions worked on at a time at least, so that the work outweighs the calls."""


class _Held(NamedTuple):
    """Vectors (B, D) in storage precision, and for each its weight and its row of the table."""

    vectors: Tensor
    weights: list[float]
    rows: list[int]


class VectorSums:
    """Σ w_i x_i for each key, or Σ (w_i x_i)² where ``squared``.

    Narrow vectors are added to a float64 table at once. Wide ones (flattened feature maps) are held
    as they are, in storage precision and with their weight, until there are more than ``BLOCKS`` of
    them; then they are folded into the table. Most samples of images never get there, which saves a
    pass over float64 tables that are far larger than any cache. Memory: keys × D float64, and at
    most BLOCKS × D in storage precision beside it.
    """

    def __init__(self, *, squared: bool = False) -> None:
        self.squared = squared
        self._row_of: dict[int, int] = {}
        self._table: Tensor | None = None
        self._held: list[_Held] = []
        self._vectors = 0

    @property
    def keys(self) -> list[int]:
        """The keys, in the order of the rows of ``parts``."""
        return list(self._row_of)

    @property
    def lone(self) -> bool:
        """Whether each sum is of a single vector."""
        return self._vectors == len(self._row_of)

    def add(self, vectors: Tensor, keys: NDArray[np.int64]) -> None:
        """Add ``vectors`` (B, D) float64 to the sums of ``keys`` (B,)."""
        self._vectors += len(vectors)
        rows = self._rows(keys.tolist())
        terms = vectors.square() if self.squared else vectors
        table = self._grown(terms.shape[1], terms.device)
        first = rows[0] if rows else 0
        if rows == list(range(first, first + len(rows))):
            table[first : first + len(rows)] += terms  # the usual case, without an index
        else:
            index = torch.tensor(rows, dtype=torch.int64, device=vectors.device)
            table.index_add_(0, index, terms)

    def hold(self, vectors: Tensor, weights: NDArray[np.float64], keys: NDArray[np.int64]) -> None:
        """Add ``weights`` (B,) × ``vectors`` (B, D), which must not change from now on."""
        self._vectors += len(vectors)
        self._held.append(_Held(vectors, weights.tolist(), self._rows(keys.tolist())))
        self._fold_if_many()

    def scaled(self, factor: float) -> VectorSums:
        """The same sums times ``factor``."""
        if factor == 1.0:
            return self
        scaled = VectorSums(squared=self.squared)
        scaled._row_of = dict(self._row_of)
        scaled._vectors = self._vectors
        power = factor**2 if self.squared else factor
        scaled._table = None if self._table is None else self._table * power
        scaled._held = [
            held._replace(weights=[weight * factor for weight in held.weights])
            for held in self._held
        ]
        return scaled

    def merge(self, other: VectorSums) -> None:
        """Add the sums of ``other``, which is left as it was."""
        self._vectors += other._vectors
        renumber = self._rows(other._row_of)
        if other._table is not None:
            filled = min(len(other._table), len(renumber))
            table = self._grown(other._table.shape[1], other._table.device)
            index = torch.tensor(renumber[:filled], device=table.device)
            table.index_add_(0, index, other._table[:filled].to(table.device))
        for held in other._held:
            self._held.append(held._replace(rows=[renumber[row] for row in held.rows]))
        self._fold_if_many()

    def parts(self) -> Iterator[Tensor]:
        """(keys, dimensions) float64: the sums, at some dimensions at a time, which cover all.

        Each is only good until the next one is asked for: all share one piece of memory.
        """
        keys, width, device = len(self._row_of), self._width, self._device
        step = _step(keys, device)
        if self._table is not None and not self._held:
            for start in range(0, width, step):
                yield self._table[:keys, start : start + step]
            return
        sums = torch.empty(keys, min(step, width), dtype=torch.float64, device=device)
        for start in range(0, width, step):
            part = sums[:, : min(step, width - start)]
            filled = 0
            if self._table is not None:
                filled = min(keys, len(self._table))
                part[:filled] = self._table[:filled, start : start + step]
            self._add_held(part, start, filled)
            yield part

    @property
    def _width(self) -> int:
        if self._table is not None:
            return self._table.shape[1]
        return self._held[0].vectors.shape[1] if self._held else 0

    def _rows(self, keys: Iterable[int]) -> list[int]:
        return [self._row_of.setdefault(key, len(self._row_of)) for key in keys]

    def _grown(self, width: int, device: torch.device) -> Tensor:
        needed = len(self._row_of)
        have = 0 if self._table is None else len(self._table)
        if self._table is None or have < needed:
            # Room for twice as many where that is cheap, so that many units do not copy for each.
            spare = needed if needed * width <= SLICE else 0
            table = torch.zeros(needed + spare, width, dtype=torch.float64, device=device)
            if self._table is not None:
                table[:have] = self._table
            self._table = table
        return self._table

    @property
    def _device(self) -> torch.device:
        if self._held:
            return self._held[0].vectors.device
        return torch.device("cpu") if self._table is None else self._table.device

    def _fold_if_many(self) -> None:
        if sum(len(held.vectors) for held in self._held) > BLOCKS:
            self._fold()

    def _fold(self) -> None:
        width, device = self._width, self._device
        table = self._grown(width, device)
        step = _step(len(table), device)
        for start in range(0, width, step):
            self._add_held(table[:, start : start + step], start, len(table))
        self._held = []

    def _add_held(self, sums: Tensor, start: int, filled: int) -> None:
        """Add what is held at the dimensions from ``start`` on to ``sums`` (keys, dimensions).

        What stands in the rows from ``filled`` on is overwritten.
        """
        most = max(len(held.vectors) for held in self._held)
        stop = start + sums.shape[1]
        memory = sums.new_empty(most, sums.shape[1])
        into = sums.unbind()
        begun = set(range(filled))
        for held in self._held:
            terms = memory[: len(held.vectors)].copy_(held.vectors[:, start:stop])
            if self.squared:
                terms.square_()
            # Row by row: one pass each, where scaling first and adding then would be two.
            for term, weight, row in zip(terms.unbind(), held.weights, held.rows, strict=True):
                factor = weight**2 if self.squared else weight
                if row in begun:
                    into[row].add_(term, alpha=factor)
                else:
                    begun.add(row)
                    torch.mul(term, factor, out=into[row])


def _step(keys: int, device: torch.device) -> int:
    entries = SLICE if device.type == "cpu" else SLICE << 6
    return max(NARROWEST, -(-entries // max(1, keys)))
