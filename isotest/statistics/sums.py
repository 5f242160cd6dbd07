"""Sums of vectors by key, exact in float64, kept so that very wide layers stay affordable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from isotest.statistics.blocks import BLOCKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

SLICE = 1 << 16
"""Entries of the table that are worked on at a time: half of a common L2 cache."""


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
        self._held: list[tuple[Tensor, Tensor, Tensor]] = []
        self._vectors = 0

    @property
    def keys(self) -> list[int]:
        """The keys, in the order of the rows that ``slices`` yields."""
        return list(self._row_of)

    @property
    def lone(self) -> bool:
        """Whether each sum is of a single vector."""
        return self._vectors == len(self._row_of)

    def add(self, vectors: Tensor, keys: NDArray[np.int64]) -> None:
        """Add ``vectors`` (B, D) float64 to the sums of ``keys`` (B,)."""
        self._vectors += len(vectors)
        rows = self._rows(keys.tolist(), vectors.device)
        terms = vectors.square() if self.squared else vectors
        self._grown(terms.shape[1], terms.device).index_add_(0, rows, terms)

    def hold(self, vectors: Tensor, weights: NDArray[np.float64], keys: NDArray[np.int64]) -> None:
        """Add ``weights`` (B,) × ``vectors`` (B, D), which must not change from now on."""
        self._vectors += len(vectors)
        rows = self._rows(keys.tolist(), vectors.device)
        factors = torch.from_numpy(weights).to(vectors.device)
        self._held.append((vectors, factors, rows))
        if sum(len(held) for held, _, _ in self._held) > BLOCKS:
            self._fold()

    def scaled(self, factor: float) -> VectorSums:
        """The same sums times ``factor``."""
        if factor == 1.0:
            return self
        scaled = VectorSums(squared=self.squared)
        scaled._row_of = dict(self._row_of)
        scaled._vectors = self._vectors
        power = factor**2 if self.squared else factor
        scaled._table = None if self._table is None else self._table * power
        scaled._held = [(vectors, weights * factor, rows) for vectors, weights, rows in self._held]
        return scaled

    def merge(self, other: VectorSums) -> None:
        """Add the sums of ``other``, which is left as it was."""
        self._vectors += other._vectors
        renumber = self._rows(other._row_of, torch.device("cpu"))
        if other._table is not None:
            filled = min(len(other._table), len(renumber))
            table = self._grown(other._table.shape[1], other._table.device)
            table.index_add_(
                0, renumber[:filled].to(table.device), other._table[:filled].to(table.device)
            )
        for vectors, weights, rows in other._held:
            self._held.append((vectors, weights, renumber.to(rows.device)[rows]))
        if sum(len(held) for held, _, _ in self._held) > BLOCKS:
            self._fold()

    def slices(self) -> Iterator[tuple[int, int]]:
        """Ranges of dimensions that together cover the width."""
        width = self._width
        step = max(1, SLICE // max(1, len(self._row_of)))
        for start in range(0, width, step):
            yield start, min(width, start + step)

    def part(self, start: int, stop: int) -> Tensor:
        """(keys, stop − start) float64: the sums at some dimensions."""
        keys = len(self._row_of)
        if self._table is not None and not self._held:
            return self._table[:keys, start:stop]
        device = self._held[0][0].device if self._held else torch.device("cpu")
        if self._table is None and self.lone and not self.squared:
            single = torch.empty(keys, stop - start, dtype=torch.float64, device=device)
            for vectors, weights, rows in self._held:
                terms = vectors[:, start:stop].to(torch.float64, copy=True)
                single.index_copy_(0, rows, terms.mul_(weights[:, None]))
            return single
        total = torch.zeros(keys, stop - start, dtype=torch.float64, device=device)
        if self._table is not None:
            filled = min(keys, len(self._table))
            total[:filled] += self._table[:filled, start:stop].to(device)
        for vectors, weights, rows in self._held:
            terms = vectors[:, start:stop].to(torch.float64, copy=True).mul_(weights[:, None])
            total.index_add_(0, rows, terms.square_() if self.squared else terms)
        return total

    @property
    def _width(self) -> int:
        if self._table is not None:
            return self._table.shape[1]
        return self._held[0][0].shape[1] if self._held else 0

    def _rows(self, keys: Iterable[int], device: torch.device) -> Tensor:
        rows = [self._row_of.setdefault(key, len(self._row_of)) for key in keys]
        return torch.tensor(rows, dtype=torch.int64, device=device)

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

    def _fold(self) -> None:
        held, self._held = self._held, []
        table = self._grown(held[0][0].shape[1], held[0][0].device)
        for start, stop in self.slices():
            for vectors, weights, rows in held:
                part = vectors[:, start:stop].to(torch.float64, copy=True)
                terms = part.mul_(weights[:, None])
                table[:, start:stop].index_add_(0, rows, terms.square_() if self.squared else terms)
