"""Mean cosine after the mean representation is subtracted: what drift does not explain.

Source: Biś, Sobolewski and Rychlik 2021. With x̄ the mean, it is the ``anisotropy`` of x_i − x̄: near
0 where a common direction is all that makes representations alike, and -1/(N − 1) at the least
where they cannot be told from a sample without structure.

Lengths after centring do not follow from sums, so this is a metric of kept representations; x̄, also
without a block, is the mean of those kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from isotest.statistics.accumulator import Evaluated, divide, undefined
from isotest.statistics.blocks import block_of
from isotest.statistics.layer import value_of
from isotest.statistics.sample import centre, without_each

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.statistics.sample import Sample

    Array = NDArray[np.float64]
    Index = NDArray[np.int64]

# Of the largest centred length: below it, a length is rounding and a direction would be noise;
# and what squares of lengths, from which something was left out, still have half their digits of.
_NOTHING, _DOUBTFUL = 1e-13, 1e-4


def evaluate(sample: Sample) -> Evaluated:
    """The metric over everything kept and without each block."""
    units = sample.units
    centred = _centred(sample, np.ones(len(units), bool))
    if not float(torch.linalg.vector_norm(centred)) > 0:
        return undefined("all representations are the same: there is nothing but their mean")
    values, doubtful = _mean_cosines(centred, units, sample.blocks)
    for column in np.flatnonzero(doubtful):
        chosen = sample.kept[:, column]
        if chosen.any():
            alone = _centred(sample, chosen)
            nobody = np.empty(0, np.int64)
            values[column] = _mean_cosines(alone, units[chosen], nobody)[0][0]
    if np.isnan(values[0]):
        return undefined("there are no two independent units")
    return Evaluated(
        float(values[0]), values[1:], isotropic=-1 / (sample.count - 1), basis=sample.basis
    )


def _centred(sample: Sample, chosen: NDArray[np.bool_]) -> Tensor:
    """(K, ≤ D) the chosen representations less their mean, up to a power of two and a rotation.

    Of wide ones the inner products are added up slice by slice, and the few coordinates of vectors
    with the same inner products are as good.
    """
    index = None if chosen.all() else torch.from_numpy(chosen).to(sample.device)
    products: Tensor | None = None
    for columns in sample.slices():
        part = columns if index is None else columns[index]
        centre(part)
        if part.shape[1] == sample.width:
            return part
        if products is None:
            products = part.new_zeros(len(part), len(part))
        products.addmm_(part, part.T)
    if products is None:
        raise ValueError("no representations")
    # Of vectors of length one, lest short ones drown in the rounding of long ones.
    lengths = products.diagonal().sqrt()
    scale = torch.where(lengths > 0, 1 / lengths, 0.0)
    vectors: Tensor
    values, vectors = torch.linalg.eigh(products * scale * scale[:, None])
    vectors *= values.clamp(min=0).sqrt()
    vectors *= lengths[:, None]
    return vectors


def _mean_cosines(centred: Tensor, units: Index, blocks: Index) -> tuple[Array, NDArray[np.bool_]]:
    """(1 + G,) the mean cosine between units, without each block, too; and which are in doubt.

    Of some representations the mean is another one, and so are all the directions. With y_i the
    rows centred by the mean of all, that mean is μ = Σ_j a_j y_j, and all that is wanted of y_i − μ
    follows from the products y_i·μ, from sums of the y_i, and from the products within each unit.
    Where that leaves a length far below those before, digits have cancelled: such a selection is to
    be centred by itself.
    """
    kept = without_each(units, blocks)
    means = _means(centred, units, blocks)  # μ
    along: Array = (centred @ means.T).cpu().numpy()  # y_i·μ
    of_shift: Array = means.square().sum(dim=1).cpu().numpy()  # μ·μ
    lengths = torch.linalg.vector_norm(centred, dim=1).square().cpu().numpy()
    before = lengths.max()
    squares = lengths[:, None] - 2 * along + of_shift
    doubtful = (kept & (squares < _DOUBTFUL**2 * before)).any(axis=0) & ~kept.all(axis=0)
    lengths = np.sqrt(np.maximum(squares, 0))
    directed = kept & (lengths > _NOTHING * np.sqrt(before))
    weights = divide(directed.astype(np.float64), np.where(directed, lengths, 0))
    weights[~directed] = 0
    # ‖Σ_i w_i (y_i − μ)‖² from sums of w_i y_i.
    total = _on(centred, weights).T @ centred
    everything = (total - _on(centred, weights.sum(axis=0))[:, None] * means).square().sum(dim=1)
    within, same = np.zeros(kept.shape[1]), np.zeros(kept.shape[1])
    for members in _units_by_size(units):
        own, counts = weights[members], directed[members].sum(axis=1)  # (U, n, C), (U, C)
        rows = centred[torch.from_numpy(members).to(centred.device)]
        own_total = own.sum(axis=1)
        products = torch.bmm(rows, rows.transpose(1, 2))
        of = (_on(centred, own) * (products @ _on(centred, own))).sum(dim=(0, 1)).cpu().numpy()
        dot = (own * along[members]).sum(axis=1)
        within += of + (own_total**2 * of_shift - 2 * own_total * dot).sum(axis=0)
        same += (counts.astype(np.float64) ** 2).sum(axis=0)
    pairs = directed.sum(axis=0).astype(np.float64) ** 2 - same
    return divide(everything.cpu().numpy() - within, pairs), doubtful


def _means(centred: Tensor, units: Index, blocks: Index) -> Tensor:
    """(1 + G, D) the mean of all, and without each block: of nobody, zero."""
    if not len(blocks):
        return centred.mean(dim=0, keepdim=True)
    own = np.searchsorted(blocks, block_of(units))
    sums = centred.new_zeros(len(blocks), centred.shape[1])
    sums.index_add_(0, torch.from_numpy(own).to(centred.device), centred)
    overall = sums.sum(dim=0, keepdim=True)
    counts = len(units) - np.append(0, np.bincount(own, minlength=len(blocks)))
    means = torch.cat([overall, overall - sums])
    return means.div_(_on(centred, np.maximum(counts, 1.0))[:, None])


def _on(like: Tensor, values: Array) -> Tensor:
    return torch.from_numpy(values).to(like.device)


def _units_by_size(units: Index) -> Iterator[Index]:
    """For each size that units have, (U, n) where the members of those U units are.

    ``units`` are ascending.
    """
    _, first, sizes = np.unique(units, return_index=True, return_counts=True)
    for size in np.unique(sizes):
        yield first[sizes == size][:, None] + np.arange(size)


def centered_anisotropy(
    x: Tensor, units: Tensor | None = None, mask: Tensor | None = None
) -> float:
    """Mean cosine of x_i − x̄ over pairs of representations from different independent units.

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> centered_anisotropy(torch.tensor([[[9.0, 1.0]], [[9.0, -1.0]]]))  # opposite, when centred
    -1.0
    """
    return value_of("centered_anisotropy", x, units, mask)
