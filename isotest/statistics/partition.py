"""Isotropy by the partition function: how unlike the directions are that data prefer.

Source: Mu and Viswanath 2018. With Z(c) = Σ_i exp(c·x_i) and C the eigenvectors of XᵀX, the second
moment (not centred) of the representations,

    partition_isotropy = min over c ∈ C of Z(c) / max over c ∈ C of Z(c).

1 where no direction is preferred, towards 0 where one is. What the source leaves open:

- An eigenvector's sign is arbitrary. With c, −c is one, so both count: the value then neither
  depends on a library's choice nor on rotations.
- With fewer representations than dimensions, and wherever rank is lacking, the directions in which
  nothing lies are eigenvectors, too, of the eigenvalue 0: Z = N.
- Of equal eigenvalues any basis will do, and the value depends on which: on data that are exactly
  symmetric it is arbitrary, within what their symmetry allows.

It is not invariant under scale, by its definition: short representations look isotropic whatever
their directions, and of long ones the value falls exponentially with length (N equal ones of length
r have e^−2r). Where it would be below the range of float64 it is undefined. So it can be
compared with that of isotropic data of the same N, D and mean squared length.

A metric of kept representations. The jackknife leaves each block's terms of Z out exactly and holds
the eigenvectors fixed. Its error bars are right where one direction stands out and too wide, up to
twofold in simulations, where none does, since then another one is the extreme one each time.
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch

from isotest.statistics.accumulator import Evaluated, undefined
from isotest.statistics.blocks import block_of
from isotest.statistics.gaussian import isotropic_sample
from isotest.statistics.layer import value_of
from isotest.statistics.sample import Sample
from isotest.statistics.spectrum import second_moments

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    Array = NDArray[np.float64]

_SMALLEST = math.log(sys.float_info.min)
_FAR = 1e300
"""Beyond it a projection is as good as infinite, and differences of infinities are none."""


def evaluate(sample: Sample) -> Evaluated:
    """The metric over everything kept and without each block."""
    count, width = sample.count, sample.width
    projections = torch.from_numpy(sample.once(second_moments).scores)
    if not bool(projections.any()):
        return undefined("all representations have zero length: they have no directions")
    half = sample.exponent // 2  # in two steps: 2^1024 is itself out of range
    for power in (half, sample.exponent - half):
        projections = projections.mul(2.0**power).clamp_(-_FAR, _FAR)
    members = ~sample.kept[:, 1:]  # (K, G)
    by_block = np.stack([_log_z(projections[torch.from_numpy(own)]) for own in members.T])
    ratios = _log_ratios(by_block, members.sum(axis=0), empty=width > projections.shape[1])
    if ratios[0] < _SMALLEST:
        return undefined(
            "min Z / max Z is below the range of float64: the representations are too long for it"
        )
    length = math.sqrt(float(projections.square().sum()) / count)
    return Evaluated(
        math.exp(ratios[0]),
        np.exp(ratios[1:]),
        isotropic=_isotropic(count, width, length),
        basis=sample.basis,
    )


def _log_z(projections: Tensor) -> Array:
    """(2C,) log Z of each direction, then of its opposite."""
    both = torch.cat([projections.logsumexp(dim=0), (-projections).logsumexp(dim=0)])
    found: Array = both.numpy()
    return found


def _log_ratios(by_block: Array, counts: NDArray[np.int64], *, empty: bool) -> Array:
    """(1 + G,) log of min Z / max Z, over everything and without each block.

    Args:
        by_block: (G, 2C) log Z over the members of each block.
        counts: (G,) members of each block.
        empty: whether there are directions in which nothing lies.
    """
    nothing = np.full((1, by_block.shape[1]), -np.inf)
    before = np.logaddexp.accumulate(np.concatenate([nothing, by_block]))
    after = np.logaddexp.accumulate(np.concatenate([nothing, by_block[::-1]]))[::-1]
    # Added up from both sides, not subtracted, as everywhere.
    logs = np.concatenate([before[-1:], np.logaddexp(before[:-1], after[1:])])
    left = np.append(counts.sum(), counts.sum() - counts)
    low, high = logs.min(axis=1), logs.max(axis=1)
    ratios = np.full(len(left), np.nan)
    some = left > 0
    if empty:
        low[some] = np.minimum(low[some], np.log(left[some]))
        high[some] = np.maximum(high[some], np.log(left[some]))
    ratios[some] = low[some] - high[some]
    return ratios


def _isotropic(count: int, width: int, length: float) -> float:
    """What a sample of N(0, s² I) gives, s such that ``length`` is its root mean square length."""
    points = _gaussian(count, width)
    own = math.sqrt(float(points.square().sum()) / count)
    logs = _log_z(points * (length / own))[None]
    return math.exp(_log_ratios(logs, np.array([count]), empty=width > points.shape[1])[0])


@lru_cache(maxsize=4)
def _gaussian(count: int, width: int) -> Tensor:
    points, every = isotropic_sample(count, width), np.arange(count)
    sample = Sample([points], every, every, np.unique(block_of(every)), seen=count)
    return torch.from_numpy(second_moments(sample).scores)


def partition_isotropy(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """Smallest over largest Σ_i exp(c·x_i), c the eigenvectors of XᵀX and their opposites.

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> round(partition_isotropy(torch.tensor([[[3.0, 4.0]], [[3.0, 4.0]]])) * math.exp(10), 9)
    1.0
    """
    return value_of("partition_isotropy", x, units, mask)
