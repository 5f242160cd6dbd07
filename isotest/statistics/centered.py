"""Mean cosine after the mean representation is subtracted: what drift does not explain.

Source: Biś, Sobolewski and Rychlik 2021. With x̄ the mean, it is the ``anisotropy`` of x_i − x̄: near
0 where a common direction is all that makes representations alike, and -1/(N − 1) at the least
where they cannot be told from a sample without structure.

Lengths after centring do not follow from sums, so representations are kept: all of them up to a
capacity, and beyond it every second, fourth, … position of each sequence, then, where each sequence
has but one, those of every second, fourth, … round of 64 units. Which are kept depends on positions
and units alone, hence not on batches, order or merges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
import torch

from isotest.statistics.accumulator import Evaluated, divide, evaluated, undefined
from isotest.statistics.blocks import BLOCKS, block_of
from isotest.statistics.layer import value_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.statistics.batch import Batch

    Array = NDArray[np.float64]
    Index = NDArray[np.int64]

CAPACITY = 1024
"""Representations that are kept at most."""

ENTRIES = 1 << 22
"""Entries that they have at most; of very wide ones, one for each block is always kept."""

_SLICE = 1 << 14
# Of the largest centred length: below it, a length is rounding and a direction would be noise;
# and what squares of lengths, from which something was left out, still have half their digits of.
_NOTHING, _DOUBTFUL = 1e-13, 1e-4


class Centered:
    """``centered_anisotropy``, with x̄ (also without a block) that of the representations kept."""

    def __init__(self, metrics: Collection[str], *, grouped: bool) -> None:
        del metrics, grouped  # one metric; units are kept beside each representation
        self._stride = 1
        self._rounds = 1
        self._too_many = False
        self._rows: list[Tensor] = []
        self._units: list[Index] = []
        self._positions: list[Index] = []

    def update(self, batch: Batch) -> None:
        """Keep what is to be kept of a batch."""
        if self._too_many:
            return
        position = np.cumsum(batch.valid, axis=1) - 1
        kept = batch.valid & (position % self._stride == 0)
        kept &= ((batch.units // BLOCKS) % self._rounds == 0)[:, None]
        if not kept.any():
            return
        if kept.shape[1] == 1 and kept.all() and batch.raw.dtype != torch.float64:
            rows = batch.held  # one copy for all that hold wide rows
        elif batch.everything_valid and self._rounds == 1:
            # As below, but a copy of stretches of memory instead of a look-up of rows.
            rows = batch.raw[:, :: self._stride].clone().flatten(0, 1)
        else:
            rows = batch.raw[torch.from_numpy(kept).to(batch.raw.device)]
        units = np.broadcast_to(batch.units[:, None], kept.shape)
        self._add(rows, units[kept], position[kept])

    def merge(self, other: Self) -> None:
        """Keep what is to be kept of what ``other`` has."""
        self._too_many |= other._too_many
        self._stride = max(self._stride, other._stride)
        self._rounds = max(self._rounds, other._rounds)
        for rows, units, positions in zip(other._rows, other._units, other._positions, strict=True):
            self._rows.append(rows)
            self._units.append(units)
            self._positions.append(positions)
        self._thin()

    def evaluate(self, blocks: Index) -> Mapping[str, Evaluated]:
        """The metric over everything and without each block."""
        return {"centered_anisotropy": self._evaluated(blocks)}

    def _add(self, rows: Tensor, units: Index, positions: Index) -> None:
        self._rows.append(rows)
        self._units.append(units)
        self._positions.append(positions)
        if sum(map(len, self._units)) > self._capacity(rows.shape[1]):
            self._thin()

    @staticmethod
    def _capacity(width: int) -> int:
        return max(BLOCKS, min(CAPACITY, ENTRIES // width))

    def _thin(self) -> None:
        """Double the stride, then the rounds, until what is left fits."""
        if self._too_many:
            self._rows, self._units, self._positions = [], [], []
        if not self._rows:
            return
        units, positions = np.concatenate(self._units), np.concatenate(self._positions)
        capacity = self._capacity(self._rows[0].shape[1])

        def kept() -> NDArray[np.bool_]:
            here: NDArray[np.bool_] = (positions % self._stride == 0) & (
                (units // BLOCKS) % self._rounds == 0
            )
            return here

        while kept().sum() > capacity:
            if (positions[kept()] > 0).any():
                self._stride *= 2
            elif (units[kept()] >= BLOCKS).any():
                self._rounds *= 2
            else:
                self._too_many = True
                self._rows, self._units, self._positions = [], [], []
                return
        chosen = kept()
        if chosen.all():
            return
        # A part that loses all its rows goes.
        parts = list(zip(self._rows, self._units, self._positions, strict=True))
        self._rows, self._units, self._positions = [], [], []
        first = 0
        for rows, own_units, own_positions in parts:
            mine = chosen[first : first + len(rows)]
            first += len(rows)
            if mine.any():
                here = slice(None) if mine.all() else torch.from_numpy(mine).to(rows.device)
                self._rows.append(rows[here])
                self._units.append(own_units[mine])
                self._positions.append(own_positions[mine])

    def _evaluated(self, blocks: Index) -> Evaluated:
        if self._too_many or not any(map(len, self._units)):
            return undefined(
                f"more than {BLOCKS} wide representations of few groups: too many to keep"
            )
        units = np.concatenate(self._units)
        everything = np.ones(len(units), bool)
        products = _centred_products(self._rows, everything)
        if not products.diagonal().max() > 0:
            return undefined("all representations are the same: there is nothing but their mean")
        # (K, 1 + G): first nothing is left out, then each block in turn.
        kept = np.append(everything[:, None], block_of(units)[:, None] != blocks, axis=1)
        values, doubtful = _mean_cosines(products, units, kept)
        for column in np.flatnonzero(doubtful):
            chosen = kept[:, column]
            if chosen.any():
                alone = _centred_products(self._rows, chosen)
                values[column] = _mean_cosines(
                    alone, units[chosen], np.ones((len(alone), 1), bool)
                )[0][0]
        if np.isnan(values[0]):
            return undefined("there are no two independent units")
        return evaluated(values)


def _centred_products(rows: list[Tensor], chosen: NDArray[np.bool_]) -> Array:
    """(K, K) inner products of the chosen representations less their mean, up to a power of two."""
    power = 0
    if rows[0].dtype == torch.float64:  # narrower ones have squares that fit into float64
        power = int(np.frexp(max(float(part.abs().max()) for part in rows))[1])
    device = rows[0].device
    index = None if chosen.all() else torch.from_numpy(chosen).to(device)
    count = int(chosen.sum())
    products = torch.zeros(count, count, dtype=torch.float64, device=device)
    for start in range(0, rows[0].shape[1], _SLICE):
        narrow = torch.cat([part[:, start : start + _SLICE].to(device) for part in rows])
        part = (narrow if index is None else narrow[index]).to(torch.float64)
        if power:
            part = torch.ldexp(part, torch.tensor(-power, device=device))
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
