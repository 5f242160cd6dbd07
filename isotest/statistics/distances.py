"""Distances between the distinct ones of the representations that are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from isotest.statistics.sample import centre

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.statistics.sample import Sample

    Index = NDArray[np.int64]

_NEAR = 1e-4
"""Squared distance, as a share of the squared lengths, below which it is computed from differences.
"""


@dataclass(frozen=True)
class Distances:
    """How far U distinct representations are from each other.

    Attributes:
        squares: (U, U) squared distances up to one common factor, infinite on the diagonal.
        homes: (U,) which of the G blocks, by its place, each one is of; −1 where copies of it are
            in several, so that leaving one out does not remove it.
    """

    squares: Tensor
    homes: Index


def distances(sample: Sample) -> Distances:
    """Distances between those that differ.

    ‖x‖² + ‖y‖² − 2 x·y, about the mean, is quick, and loses the digits of distances that are short
    beside the lengths. Among those that have a neighbour within about a hundredth of their
    lengths they are computed as ‖x − y‖², so that all are good to twelve digits.
    """
    first, label = _distinct(sample)
    chosen = torch.from_numpy(first).to(sample.device)
    products = torch.zeros(len(first), len(first), dtype=torch.float64, device=sample.device)
    for columns in sample.slices():
        rows = centre(columns[chosen])
        products.addmm_(rows, rows.T)
    lengths = products.diagonal().clone()
    squares = products.mul_(-2).add_(lengths).add_(lengths[:, None])
    near = squares < _NEAR * (lengths + lengths[:, None])
    close = near.fill_diagonal_(False).any(dim=1).nonzero()[:, 0]
    if len(close):
        squares[close[:, None], close] = _exact(sample, chosen[close])
    squares.fill_diagonal_(torch.inf)
    return Distances(squares, _homes(sample, label, len(first)))


def _distinct(sample: Sample) -> tuple[Index, Index]:
    """(U,) the first of each set of copies, and (K,) which of these each representation is."""
    labels = []
    for columns in sample.slices():
        rows = (columns + 0.0).cpu().numpy()  # −0 becomes 0, its equal
        bits = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1] * 8)))[:, 0]
        labels.append(np.unique(bits, return_inverse=True)[1])
    label = labels[0]
    for other in labels[1:]:
        label = np.unique(label * len(other) + other, return_inverse=True)[1]
    _, first, label = np.unique(label, return_index=True, return_inverse=True)
    order = np.argsort(first)  # as they came, not by their bits
    return first[order], np.argsort(order)[label]


def _homes(sample: Sample, label: Index, count: int) -> Index:
    low, high = np.full(count, len(sample.blocks)), np.full(count, -1)
    np.minimum.at(low, label, sample.places)
    np.maximum.at(high, label, sample.places)
    return np.where(low == high, low, -1)


def _exact(sample: Sample, chosen: Tensor) -> Tensor:
    """(C, C) squared distances between the chosen ones, from their differences."""
    count = len(chosen)
    above = torch.zeros(count * (count - 1) // 2, dtype=torch.float64, device=sample.device)
    for columns in sample.slices():
        above += torch.pdist(columns[chosen]).square_()
    squares = torch.zeros(count, count, dtype=torch.float64, device=sample.device)
    row, column = torch.triu_indices(count, count, 1, device=sample.device)
    squares[row, column] = above
    return squares + squares.T
