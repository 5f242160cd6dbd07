"""Intrinsic dimension from the two nearest neighbours.

Source: Facco, d'Errico, Rodriguez and Laio 2017. With r_1 ≤ r_2 the distances of a representation
to its nearest and second nearest, μ = r_2 / r_1 is distributed as F(μ) = 1 − μ^−d where density
hardly varies over such a distance, d the dimension of what the representations lie on. Of N of
them, μ_1 ≤ … ≤ μ_N, the ⌊0.9 N⌋ smallest are fitted by a line through the origin, F(μ_i) = i/N:

    twonn = Σ_i log μ_i · (−log(1 − i/N)) / Σ_i (log μ_i)².

The largest tenth is discarded, since that is where noise and outliers stand. Above 0, without an
upper limit; it may exceed D. Rotation, scale and a common offset change nothing.

- Copies have the distance 0 and no ratio. All but one of a set of equal representations are
  dropped, and counted beside the value. Where fewer than ``DISTINCT`` are left, the dimension is
  undefined. Copies up to rounding stay.
- Where r_1 = r_2 throughout (the corners of a simplex) it is undefined.
- Far fewer samples than e^d cannot show a dimension of d: hence the value of an isotropic sample of
  the same N and D beside it, from one draw that is always the same.

A metric of kept representations, and of how many are kept: with more of them the neighbours are
nearer. The jackknife leaves each block out exactly, with the neighbours that then are nearest.
Which these are is no smooth function of the sample, so its error bars err on the wide side (Efron
and Stein 1981), 1.6 to 1.9 times as wide as values spread in simulations.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch

from isotest.statistics.accumulator import Evaluated, divide, undefined
from isotest.statistics.distances import distances
from isotest.statistics.gaussian import isotropic_sample
from isotest.statistics.layer import value_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.statistics.sample import Sample

    Array = NDArray[np.float64]
    Index = NDArray[np.int64]

DISTINCT = 5
"""Distinct representations below which there is no fit."""

FITTED = 0.9
"""Share of the ratios that is fitted, the smallest ones."""

_EQUAL = 1e-11
"""Log of a ratio below which the two distances are the same up to rounding."""


def evaluate(sample: Sample) -> Evaluated:
    """The metric over everything kept and without each block."""
    found = distances(sample)
    if len(found.homes) < DISTINCT:
        return undefined(
            f"of {sample.count} representations fewer than {DISTINCT} are distinct: too few to fit"
        )
    ratios = _log_ratios(found.squares, found.homes, len(sample.blocks))
    values = _dimensions(ratios)
    if np.isnan(values[0]):
        return undefined("every representation is as far from its second nearest as from the first")
    return Evaluated(
        float(values[0]),
        values[1:],
        isotropic=_isotropic(sample.count, sample.width),
        basis=f"{sample.basis}, copies dropped, the smallest {FITTED:.0%} of the ratios",
        dropped=sample.count - len(found.homes),
    )


def _log_ratios(squares: Tensor, homes: Index, blocks: int) -> Array:
    """(U, 1 + G) log μ among everything, then among those outside each block; infinite within it.

    Only who loses one of the two nearest with a block has other neighbours without it.
    """
    near, which = squares.topk(2, largest=False)
    ratios = np.repeat(_log_ratio(near)[:, None], 1 + blocks, axis=1)
    home = torch.from_numpy(homes).to(squares.device)
    for nearest in which.T:
        lost = home[nearest]
        others = torch.where(home == lost[:, None], torch.inf, squares).topk(2, largest=False)[0]
        rows = np.flatnonzero(homes[nearest.cpu().numpy()] >= 0)
        ratios[rows, 1 + homes[nearest.cpu().numpy()][rows]] = _log_ratio(others)[rows]
    own = np.flatnonzero(homes >= 0)
    ratios[own, 1 + homes[own]] = np.inf
    return ratios


def _log_ratio(squares: Tensor) -> Array:
    """(U,) half the log of the ratio of (U, 2) squares, which may be infinite."""
    values: Array = squares.cpu().numpy()
    present = np.isfinite(values[:, 1])
    ratios = np.full(len(values), np.inf)
    # Distinct ones may be nearer than what the smallest square resolves.
    logs = np.log(np.maximum(values[present], np.finfo(np.float64).tiny))
    ratios[present] = (logs[:, 1] - logs[:, 0]) / 2
    ratios[ratios < _EQUAL] = 0
    return ratios


def _dimensions(ratios: Array) -> Array:
    """(C,) the slope of each column of log ratios, of which those that are infinite are absent."""
    ratios = np.sort(ratios, axis=0)
    counts = np.isfinite(ratios).sum(axis=0)
    rank = np.arange(len(ratios))[:, None]
    fitted = rank < (counts * FITTED).astype(np.int64)
    x = np.where(fitted, ratios, 0)
    y = -np.log1p(-np.where(fitted, rank + 1, 0) / np.maximum(counts, 1))
    slopes = divide((x * y).sum(axis=0), np.square(x).sum(axis=0))
    slopes[counts < DISTINCT] = np.nan
    return slopes


@lru_cache(maxsize=64)
def _isotropic(count: int, width: int) -> float | None:
    """What K representations drawn from N(0, I_D) give."""
    points = isotropic_sample(count, width)
    lengths = points.square().sum(dim=1)
    squares = (lengths[:, None] + lengths).addmm_(points, points.T, alpha=-2)
    squares.fill_diagonal_(torch.inf)
    value = float(_dimensions(_log_ratio(squares.topk(2, largest=False)[0])[:, None])[0])
    return None if np.isnan(value) else value


def twonn(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """Intrinsic dimension from the ratio of the distances to the two nearest neighbours.

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> generator = torch.Generator().manual_seed(0)
    >>> plane = torch.rand(1000, 1, 2, generator=generator) @ torch.rand(2, 50, generator=generator)
    >>> round(twonn(plane))
    2
    """
    return value_of("twonn", x, units, mask)
