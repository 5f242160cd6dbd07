"""Rogue dimensions: those that carry more of the mean cosine than chance lets any of them carry.

The mean cosine is a sum over dimensions (see ``dimensions``), so what several of them contribute
together is exact. A direction drawn at random in D dimensions has its largest squared coordinate,
of D, above t with probability at most D·(1 − t)^((D − 1)/2). With that at ``CHANCE``,

    t = 1 − (CHANCE / D)^(2 / (D − 1)),

but at least ``LEAST``. A dimension is *rogue* if its share of the anisotropy is above t: a common
direction that favours no axis has no such dimension. Of one dimension, or two, none can be rogue.

Source: Timkey and van Schijndel 2021 (what single dimensions contribute); the bound is that of a
spherical cap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotest.statistics.accumulator import Evaluated, divide, evaluated
from isotest.statistics.dimensions import contributions
from isotest.statistics.layer import value_of
from isotest.statistics.rogue_threshold import LEAST, threshold

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray
    from torch import Tensor

    Array = NDArray[np.float64]

ROGUE = frozenset({"rogue_share", "rogue_dimensions"})


def rogue(
    parts: Iterable[tuple[Tensor, Tensor, bool]], total: Array, order: NDArray[np.int64]
) -> dict[str, Evaluated]:
    """Share and number of the rogue dimensions, overall and without each block.

    Args:
        parts: (G, dimensions) U_b and Q_b of some dimensions at a time, in any order of blocks.
        total: (1 + G,) the sum of all contributions: overall, then without each block; NaN where
            that leaves no pair.
        order: (1 + G,) where each entry of ``total`` stands in what follows from ``parts``.
    """
    least = LEAST * float(np.nanmin(total))
    width, found = 0, []
    for sums, squares, _ in parts:
        width += sums.shape[1]
        overall, overall_squares = sums.sum(dim=0), squares.sum(dim=0)
        if least > 0:
            # As in ``Tops``: few dimensions can reach the threshold, and no others are looked at.
            reach = sums.abs().amax(dim=0).add_(overall.abs()).square_()
            few = (reach >= least).nonzero()[:, 0]
            sums, squares = sums[:, few], squares[:, few]
            overall, overall_squares = overall[few], overall_squares[few]
        found.append(contributions(sums, squares, overall, overall_squares).cpu().numpy())
    shares = divide(np.concatenate(found, axis=1)[order], total[:, None])
    above = shares > threshold(width)
    together = np.where(above, shares, 0.0).sum(axis=1)
    count = above.sum(axis=1).astype(np.float64)
    for values in (together, count):
        values[np.isnan(total)] = np.nan
    return {"rogue_share": evaluated(together), "rogue_dimensions": evaluated(count)}


def rogue_share(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """Share of the anisotropy that rogue dimensions contribute together (see the module).

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> x = torch.zeros(2, 1, 64).index_fill_(2, torch.tensor([3, 7]), 1.0)
    >>> round(rogue_share(x), 6)
    1.0
    """
    return value_of("rogue_share", x, units, mask)


def rogue_dimensions(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """How many dimensions are rogue (see the module).

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> rogue_dimensions(torch.zeros(2, 1, 64).index_fill_(2, torch.tensor([3, 7]), 1.0))
    2.0
    >>> rogue_dimensions(torch.ones(2, 1, 64))  # a common direction that favours no axis
    0.0
    """
    return value_of("rogue_dimensions", x, units, mask)
