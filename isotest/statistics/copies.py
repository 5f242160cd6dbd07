"""Pairs that are one representation twice: the part of the mean cosine that copies make.

``duplicate_share`` counts rows; what copies do to a mean over pairs depends on the pairs. With P
the share of the pairs of ``anisotropy`` (different independent units, both with a direction) whose
members are bitwise equal, and A′ the mean cosine of all other pairs,

    anisotropy = P + (1 − P)·A′.

A metric of kept representations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from isotest.statistics.accumulator import Evaluated, divide, undefined
from isotest.statistics.duplicates import hashes
from isotest.statistics.layer import value_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.statistics.sample import Sample

    Array = NDArray[np.float64]
    Index = NDArray[np.int64]

_FEW = 64
_SLICES = np.uint64(0x9E3779B97F4A7C15)


def evaluate(sample: Sample) -> Evaluated:
    """The metric over everything kept and without each block."""
    names, directed = _rows(sample)
    names, units, places = names[directed], sample.units[directed], sample.places[directed]
    groups = len(sample.blocks)
    pairs = _between_units(np.zeros(len(units), np.int64), units, places, groups)
    if not len(units) or not pairs[0]:
        return undefined("there are no two independent units with a direction")
    copies = _between_units(names, units, places, groups)
    shares = divide(copies, pairs)
    return Evaluated(float(shares[0]), shares[1:], basis=sample.basis)


def _rows(sample: Sample) -> tuple[Index, NDArray[np.bool_]]:
    """(K,) which representations are equal, by a number, and which have a direction."""
    name = np.zeros(sample.count, np.uint64)
    directed = np.zeros(sample.count, bool)
    alike = np.ones(sample.count, bool)  # whether another one was equal so far
    for columns in sample.slices():
        for part in (columns[:, :_FEW], columns[:, _FEW:]):
            if not alike.any() or not part.shape[1]:
                break
            words = part[torch.from_numpy(alike).to(part.device)].cpu()
            directed[alike] |= (words != 0).any(dim=1).numpy()
            name[alike] = name[alike] * _SLICES + hashes(words.view(torch.int64).numpy())
            # Nearly always the first few entries tell all of them apart.
            _, first, count = np.unique(name, return_inverse=True, return_counts=True)
            alike &= (count[first] > 1) | ~directed
    return np.unique(name, return_inverse=True)[1].reshape(-1), directed


def _between_units(names: Index, units: Index, block: Index, groups: int) -> Array:
    """(1 + G,) ordered pairs of one name and two units: overall, then without each block."""
    count = int(names.max(initial=-1)) + 1
    by_block = np.zeros((count, groups))
    np.add.at(by_block, (names, block), 1.0)
    _, first, own = np.unique(
        np.stack([names, units]), axis=1, return_index=True, return_counts=True
    )
    inside = np.bincount(block[first], weights=own.astype(np.float64) ** 2, minlength=groups)
    overall = by_block.sum(axis=1)
    everything = np.append((overall**2).sum(), ((overall[:, None] - by_block) ** 2).sum(axis=0))
    within = np.append(inside.sum(), inside.sum() - inside)
    result: Array = everything - within
    return result


def duplicate_pairs(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """Share of the pairs from different independent units that are bitwise copies.

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> round(duplicate_pairs(torch.tensor([[[1.0, 2.0]], [[1.0, 2.0]], [[2.0, 1.0]]])), 6)
    0.333333
    """
    return value_of("duplicate_pairs", x, units, mask)
