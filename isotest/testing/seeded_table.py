"""Sequences from an embedding table that a few numbers describe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from isotest.data.embeddings import Draw, EmbeddingTable, draw
from isotest.testing.described import Described

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, repr=False)
class SeededTable(Described):
    """Sequences of the drift experiment, and a direction for its bias.

    Attributes:
        table: standard deviation and rows of the table, and the length L of the sequences.
        width: D.
        sequences: B.
        seed: of all random numbers.

    >>> table = SeededTable(EmbeddingTable(vocabulary=5, length=3), width=4, sequences=2)
    >>> table.tensor().shape, bool(torch.isclose(table.bias(2.0).norm(), torch.tensor(2.0)))
    (torch.Size([2, 3, 4]), True)
    """

    table: EmbeddingTable
    width: int
    sequences: int = 1
    seed: int = 0

    def tensor(self) -> Tensor:
        """(B, L, D) float32: rows drawn uniformly from the table."""
        return torch.from_numpy(self._drawn.x)

    def bias(self, norm: float) -> Tensor:
        """(D,) float32: a vector of length ``norm`` in the experiment's direction."""
        return torch.from_numpy(self._drawn.direction * norm).float()

    @property
    def _drawn(self) -> Draw:
        return draw(
            self.table, sequences=self.sequences, width=self.width, seed=self.seed, replicate=0
        )
