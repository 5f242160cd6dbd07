"""How evenly directions cover the sphere.

Source: Wang and Isola 2020. With unit vectors u_i, over all distinct pairs of the representations
that have a direction,

    uniformity = log mean exp(−2‖u_i − u_j‖²).

0 where all directions are one, −8 at the least (two opposite ones); scale and rotation change
nothing. Directions drawn evenly from the sphere in D dimensions give, whatever their number,

    log E exp(4 u·v − 4) = −4 + log ₀F₁(; D/2; 4),

about −4 + 8/D. A metric of kept representations; its jackknife leaves each
block out exactly, from the sums of exp(−2‖u_i − u_j‖²) between every two blocks.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy.special import hyp0f1

from isotest.statistics.accumulator import Evaluated, undefined
from isotest.statistics.layer import value_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.statistics.sample import Sample

    Array = NDArray[np.float64]

LOWEST = -8.0
"""Of two opposite directions."""


def evaluate(sample: Sample) -> Evaluated:
    """The metric over everything kept and without each block."""
    cosines, directed = _cosines(sample)
    counted = directed.sum()
    if counted < 2:
        return undefined(
            f"of {sample.count} representations {counted} have a direction: there is no pair"
        )
    kernel = cosines.sub_(1).mul_(4).exp_()  # ‖u − v‖² = 2 − 2 u·v
    kernel.fill_diagonal_(0)
    members = ~sample.kept[:, 1:]  # (K, G)
    inside = torch.from_numpy((members & directed[:, None]).astype(np.float64)).to(kernel.device)
    between: Array = (inside.T @ (kernel @ inside)).cpu().numpy()  # (G, G)
    kept = np.append(
        np.ones((len(sample.blocks), 1)), 1 - np.eye(len(sample.blocks)), axis=1
    )  # (G, 1 + G) which blocks are in
    sums = np.einsum("gc,gc->c", kept, between @ kept)
    counts = (members & directed[:, None]).sum(axis=0) @ kept
    values = np.full(len(sums), np.nan)
    some = counts >= 2
    values[some] = np.log(sums[some] / (counts[some] * (counts[some] - 1)))
    values = np.clip(values, LOWEST, 0)
    return Evaluated(
        float(values[0]), values[1:], isotropic=isotropic(sample.width), basis=sample.basis
    )


def isotropic(width: int) -> float:
    """What directions drawn evenly from the sphere in ``width`` dimensions give.

    >>> round(isotropic(1), 6)  # half the pairs agree, half are opposite: log((1 + e⁻⁸)/2)
    -0.692812
    >>> round(isotropic(768), 4)
    -3.9896
    """
    return -4 + math.log(float(hyp0f1(width / 2, 4.0)))


def _cosines(sample: Sample) -> tuple[Tensor, NDArray[np.bool_]]:
    """(K, K) cosines, at most 1, and (K,) who has a direction; zero where somebody has none."""
    count, device = sample.count, sample.device
    peaks = torch.zeros(count, dtype=torch.float64, device=device)
    for columns in sample.slices():
        peaks = torch.maximum(peaks, columns.abs().amax(dim=1))
    # Lengths may be decades apart; a power of two each brings them near 1 without rounding. (2^1023
    # is the largest one there is.)
    exponents = torch.frexp(peaks)[1].neg().clamp(max=1023)[:, None]
    products = torch.zeros(count, count, dtype=torch.float64, device=device)
    for columns in sample.slices():
        columns = torch.ldexp(columns, exponents)
        products.addmm_(columns, columns.T)
    lengths = products.diagonal().sqrt()
    directed = lengths > 0
    inverse = torch.where(directed, 1 / lengths, 0)
    products.mul_(inverse[:, None]).mul_(inverse).clamp_(-1, 1)
    return products, directed.cpu().numpy().astype(bool)


def uniformity(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """Log of the mean of exp(−2‖u_i − u_j‖²) over distinct pairs of directions.

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> uniformity(torch.tensor([[[3.0, 0.0]], [[0.0, 1.0]]]))  # ‖u − v‖² = 2
    -4.0
    """
    return value_of("uniformity", x, units, mask)
