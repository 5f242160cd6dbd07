"""Sequences with a label at every position: what a network learns from and is judged by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from isotest.errors import BlockError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor


@dataclass(frozen=True)
class Examples:
    """Sequences with a label at every position.

    Attributes:
        inputs: (B, L) int64 tokens, or (B, L, 2) float32 coordinates.
        labels: (B, L) int64, from 0; 0 where not valid.
        valid: (B, L) bool, true where a position is no padding.
    """

    inputs: Tensor
    labels: Tensor
    valid: Tensor

    @classmethod
    def of(
        cls,
        inputs: NDArray[np.int64] | NDArray[np.float32],
        labels: NDArray[np.int64],
        valid: NDArray[np.bool_] | None = None,
    ) -> Examples:
        """From arrays of these shapes and types; all positions are valid unless said otherwise."""
        of_labels = torch.from_numpy(labels)
        everywhere = torch.ones(of_labels.shape, dtype=torch.bool)
        return cls(
            torch.from_numpy(inputs),
            of_labels,
            everywhere if valid is None else torch.from_numpy(valid),
        )

    def __len__(self) -> int:
        """How many sequences."""
        return len(self.labels)

    def __getitem__(self, chosen: slice | Tensor) -> Examples:
        """Some of the sequences."""
        return Examples(self.inputs[chosen], self.labels[chosen], self.valid[chosen])

    def trimmed(self) -> Examples:
        """Without the positions at the end that are padding in every sequence.

        >>> valid = torch.tensor([[True, True, False], [True, False, False]])
        >>> Examples(valid.long(), valid.long(), valid).trimmed().labels.shape
        torch.Size([2, 2])
        """
        filled = self.valid.any(dim=0).nonzero()
        end = int(filled.max()) + 1 if len(filled) else 0
        return Examples(self.inputs[:, :end], self.labels[:, :end], self.valid[:, :end])

    def chance(self) -> float:
        """The share of the commonest label: what a network can do that sees no input.

        >>> labels = torch.tensor([[0, 1, 1], [1, 0, 0]])
        >>> Examples(labels, labels, torch.ones(2, 3, dtype=torch.bool)).chance()
        0.5
        """
        labels = self.labels[self.valid]
        if not len(labels):
            raise BlockError("task: expected examples with at least one valid position, found none")
        return int(labels.bincount().max()) / len(labels)
