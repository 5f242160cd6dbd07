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
from isotest.statistics.layer import value_of

if TYPE_CHECKING:
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
    products = _centred_products(sample, np.ones(len(units), bool))
    if not products.diagonal().max() > 0:
        return undefined("all representations are the same: there is nothing but their mean")
    values, doubtful = _mean_cosines(products, units, sample.kept)
    for column in np.flatnonzero(doubtful):
        chosen = sample.kept[:, column]
        if chosen.any():
            alone = _centred_products(sample, chosen)
            values[column] = _mean_cosines(alone, units[chosen], np.ones((len(alone), 1), bool))[0][
                0
            ]
    if np.isnan(values[0]):
        return undefined("there are no two independent units")
    return Evaluated(
        float(values[0]), values[1:], isotropic=-1 / (sample.count - 1), basis=sample.basis
    )


def _centred_products(sample: Sample, chosen: NDArray[np.bool_]) -> Array:
    """(K, K) inner products of the chosen representations less their mean, up to a power of two."""
    index = None if chosen.all() else torch.from_numpy(chosen).to(sample.device)
    count = int(chosen.sum())
    products = torch.zeros(count, count, dtype=torch.float64, device=sample.device)
    for columns in sample.slices():
        part = columns if index is None else columns[index]
        # Less the first one first: near each other, they are subtracted without rounding.
        part = part - part[0]
        part -= part.mean(dim=0)
        products.addmm_(part, part.T)
    found: Array = products.cpu().numpy()
    return found


def _mean_cosines(
    products: Array, units: Index, kept: NDArray[np.bool_]
) -> tuple[Array, NDArray[np.bool_]]:
    """(C,) the mean cosine between units, of each column's selection; and which are in doubt.

    Of some representations the mean is another one, and so are all the directions. With y_i the
    rows centred by the mean of all, that mean is μ = Σ_j a_j y_j, and all that is wanted of y_i − μ
    follows from the products y_i·y_j. Where that leaves a length far below those before, digits
    have cancelled: such a selection is to be centred by itself.
    """
    shift = divide(kept.astype(np.float64), kept.sum(axis=0).astype(np.float64))  # a_j
    along = products @ shift  # y_i·μ
    of_shift = np.einsum("kc,kc->c", shift, along)  # μ·μ
    before = products.diagonal().max()
    squares = products.diagonal()[:, None] - 2 * along + of_shift
    doubtful = (kept & (squares < _DOUBTFUL**2 * before)).any(axis=0) & ~kept.all(axis=0)
    lengths = np.sqrt(np.maximum(squares, 0))
    directed = kept & (lengths > _NOTHING * np.sqrt(before))
    weights = divide(directed.astype(np.float64), np.where(directed, lengths, 0))
    weights[~directed] = 0

    def square(of: Array, dot: Array, total: Array) -> Array:
        """‖Σ_i w_i (y_i − μ)‖² from w·Y·Yᵀ·w, w·Y·μ and Σ w."""
        result: Array = of - 2 * total * dot + total**2 * of_shift
        return result

    everything = square(
        np.einsum("kc,kc->c", weights, products @ weights),
        np.einsum("kc,kc->c", weights, along),
        weights.sum(axis=0),
    )
    within = np.zeros(kept.shape[1])
    same = np.zeros(kept.shape[1])
    for unit in np.unique(units):
        members = np.flatnonzero(units == unit)
        own, count = weights[members], directed[members].sum(axis=0)
        within += square(
            np.einsum("kc,kc->c", own, products[np.ix_(members, members)] @ own),
            np.einsum("kc,kc->c", own, along[members]),
            own.sum(axis=0),
        )
        same += count**2
    pairs = directed.sum(axis=0).astype(np.float64) ** 2 - same
    return divide(everything - within, pairs), doubtful


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
