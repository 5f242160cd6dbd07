"""What single dimensions contribute to the mean cosine, and the largest of it without each block.

Dimension k contributes T_k² − Σ_g U_{g,k}², with U_g the sum of the unit vectors of unit g and T of
all (see ``cosine``). Without block b it is (T_k − U_{b,k})² − (Q_k − Q_{b,k}) with Q the sum of
squares over all units and over those of b.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from torch import Tensor

_SLACK = 1 + 1e-9
"""So that rounding of a bound never rules out a dimension that belongs in."""


def contributions(
    sums: Tensor, squares: Tensor, overall: Tensor, overall_squares: Tensor
) -> Tensor:
    """(1 + G, D) contribution of each dimension: overall, then without each block.

    Args:
        sums: (G, D) U_b, the sum of the unit vectors of each block.
        squares: (G, D) Q_b, the sum over units of a block of the squares of their sums.
        overall: (D,) T = Σ_b U_b.
        overall_squares: (D,) Q = Σ_b Q_b.

    >>> u = torch.tensor([[1.0, 0.0], [0.6, 0.8]], dtype=torch.float64)
    >>> contributions(u, u**2, u.sum(dim=0), (u**2).sum(dim=0)).round(decimals=6).tolist()
    [[1.2, 0.0], [0.0, 0.0], [0.0, 0.0]]
    """
    result = sums.new_empty(1 + len(sums), sums.shape[1])
    result[0] = overall.square() - overall_squares
    without = torch.sub(overall, sums, out=result[1:])
    without.square_().sub_(overall_squares).add_(squares)
    return result


class Tops:
    """Running max_k of the contributions, overall and without each block, over slices of k.

    Almost no dimension can be the largest without some block: |T_k − U_{b,k}| is at most |T_k| plus
    the largest |U_{b,k}|, and what is subtracted is at least zero. Only where the square of that
    reaches the smallest of the maxima so far is the contribution without each block computed.

    Args:
        blocks: G.
    """

    def __init__(self, blocks: int) -> None:
        self.values = np.full(1 + blocks, -np.inf)

    def update(
        self, sums: Tensor, squares: Tensor, overall: Tensor, overall_squares: Tensor
    ) -> None:
        """Take in a slice; the arguments are those of ``contributions``."""
        everything = overall.square() - overall_squares
        self._raise(sums, squares, overall, overall_squares, everything.argmax()[None])
        largest = torch.maximum(sums.amax(dim=0), -sums.amin(dim=0))
        bound = largest.add_(overall.abs()).square_().mul_(_SLACK)
        reaching = (bound >= float(self.values[1:].min(initial=np.inf))).nonzero()[:, 0]
        self._raise(sums, squares, overall, overall_squares, reaching)

    def _raise(
        self,
        sums: Tensor,
        squares: Tensor,
        overall: Tensor,
        overall_squares: Tensor,
        chosen: Tensor,
    ) -> None:
        if not len(chosen):
            return
        found = contributions(
            sums[:, chosen], squares[:, chosen], overall[chosen], overall_squares[chosen]
        )
        np.maximum(self.values, found.amax(dim=1).cpu().numpy(), out=self.values)
