"""Distance of a sequence's representations from all being the same: rank collapse.

Source: Dong, Cordonnier and Loukas 2021. For one sequence X (n × D) with mean row x̄, the relative
residual is ‖X − 1x̄ᵀ‖ / ‖X‖, in the Frobenius norm or in the composite norm √(‖·‖₁ ‖·‖_∞), where
‖·‖₁ is the largest column sum and ‖·‖_∞ the largest row sum of absolute values. The metric is the
mean over sequences: it is never pooled, since different sequences may collapse to different points.
Beside it stands the standard deviation over sequences, with which the paper draws its curves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
import torch

from isotest.statistics.accumulator import (
    LONE,
    Evaluated,
    divide,
    evaluated,
    per_block,
    totals,
    undefined,
)
from isotest.statistics.beta import mean_root_of_share
from isotest.statistics.blocks import BLOCKS
from isotest.statistics.layer import value_of
from isotest.statistics.norms import pooled
from isotest.statistics.scratch import scratch

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.statistics.batch import Batch

    Array = NDArray[np.float64]


FROBENIUS, COMPOSITE = "rank_residual", "rank_residual_composite"
SPREAD = "rank_residual_std"

CANCELS = 1e-3
"""Below this share of its terms, Σ‖x_i‖² − n‖x̄‖² has lost more digits than it may."""

_CLOSE = 16
"""So many rows or columns of a sequence that may be the largest are summed again one by one."""


def centred(rows: Tensor, valid: Tensor) -> Tensor:
    """(B, L, D) X − 1x̄ᵀ of each sequence, zero where masked.

    The first valid row is subtracted before the mean is taken, so that a common offset, however
    large, costs no digits and equal rows give exactly zero.

    Args:
        rows: (B, L, D) float64, zero where masked.
        valid: (B, L) bool.
    """
    sequences = torch.arange(len(rows), device=rows.device)
    first = rows[sequences, valid.to(torch.uint8).argmax(dim=1)]
    residual = (rows - first[:, None, :]) * valid[:, :, None]
    count = valid.sum(dim=1).clamp(min=1).to(rows.dtype)
    residual -= (residual.sum(dim=1) / count[:, None])[:, None, :]
    residual *= valid[:, :, None]
    return residual


def frobenius(matrices: Tensor) -> Tensor:
    """(B,) Frobenius norm of each matrix (B, L, D)."""
    norms: Tensor = torch.linalg.vector_norm(matrices, dim=(1, 2))
    return norms


def composite(matrices: Tensor) -> Tensor:
    """(B,) √(‖·‖₁ ‖·‖_∞) of each matrix (B, L, D)."""
    magnitudes = matrices.abs()
    columns = magnitudes.sum(dim=1).amax(dim=1)
    rows = magnitudes.sum(dim=2).amax(dim=1)
    return columns.sqrt() * rows.sqrt()


def largest_sums(
    magnitudes: Tensor,
    plain: Tensor,
    valid: NDArray[np.bool_],
    means: Tensor | None = None,
) -> Array:
    """(B,) ‖·‖₁ ‖·‖_∞ of X, or of X − 1x̄ᵀ, from float64 sums; NaN where in doubt.

    Sums in storage precision say which few rows and columns can have the largest one, by the bound
    on their rounding; only these are added up in float64.

    Args:
        magnitudes: (B, L, D) |X|, or about |X − 1x̄ᵀ|, in storage precision, zero where masked.
        plain: (B, L, D) X in storage precision, zero where masked.
        valid: (B, L) bool.
        means: (B, D) float64 x̄, or none.
    """
    offsets = None if means is None else means.abs().cpu().numpy()
    count, length, width = plain.shape
    kind = torch.finfo(plain.dtype)
    product = np.ones(count)
    for dim, terms in ((2, width), (1, length)):
        about = magnitudes.sum(dim=dim).cpu().numpy().astype(np.float64)
        finite = np.isfinite(about).all(axis=1)
        about[~finite] = 0.0
        # Of each entry: x̄ rounded and what is subtracted from it; then a sum in any order.
        slack = (kind.eps * (terms + 4)) * about
        slack += terms * kind.smallest_normal
        if offsets is not None:
            shift = offsets.sum(axis=1, keepdims=True) if dim == 2 else offsets * length
            slack += 2 * kind.eps * shift
        close = about + slack >= (about - slack).max(axis=1, keepdims=True)
        if dim == 2:
            close &= valid
        close &= (finite & (close.sum(axis=1) <= _CLOSE))[:, None]
        product *= _largest(plain, valid, means, close, dim)
    return product


def _largest(
    plain: Tensor,
    valid: NDArray[np.bool_],
    means: Tensor | None,
    close: NDArray[np.bool_],
    dim: int,
) -> Array:
    """(B,) the largest of the sums along ``dim`` that are ``close``; NaN where none is."""
    sequences, places = np.nonzero(close)
    sequence, place = (torch.from_numpy(index).to(plain.device) for index in (sequences, places))
    if dim == 2:
        chosen = plain[sequence, place].to(torch.float64)
        if means is not None:
            chosen -= means[sequence]
    else:
        chosen = plain[sequence, :, place].to(torch.float64)
        if means is not None:
            chosen -= means[sequence, place][:, None]
            chosen *= torch.from_numpy(valid[sequences]).to(plain.device)
    largest = np.full(len(close), -np.inf)
    np.maximum.at(largest, sequences, chosen.abs_().sum(dim=1).cpu().numpy())
    return np.where(close.any(axis=1), largest, np.nan)


class RankResidual:
    """``rank_residual`` (Frobenius) and ``rank_residual_composite``, means over sequences.

    ``rank_residual_std`` is the standard deviation (÷ N) of what ``rank_residual`` is the mean of.
    Sequences with one valid representation are left out (their residual is 0 by construction), and
    so are sequences in which every representation is zero (0 / 0).
    """

    def __init__(self, metrics: Collection[str], *, grouped: bool) -> None:
        del grouped  # the mean is over sequences, the error over blocks
        self.metrics = frozenset(metrics)
        self._counts = np.zeros(BLOCKS)
        self._sums = {name: np.zeros(BLOCKS) for name in sorted(self.metrics - {SPREAD})}
        self._moments = _Moments()
        self._zeros = 0
        self._isotropic = 0.0

    def update(self, batch: Batch) -> None:
        """Add the residual of each sequence."""
        long = batch.counts > 1
        usable = long & batch.directed.any(axis=1)
        self._zeros += int((long & ~usable).sum())
        if not usable.any():
            return
        blocks = batch.blocks[usable]
        self._counts += per_block(blocks, np.ones(len(blocks)))
        width = batch.raw.shape[2]
        for length, times in zip(*np.unique(batch.counts[usable], return_counts=True), strict=True):
            self._isotropic += times * mean_root_of_share((int(length) - 1) * width, width)
        squares = ((batch.norms * batch.scale) ** 2).sum(axis=1)
        of_mean = batch.sums.square().sum(dim=1).cpu().numpy() / np.maximum(batch.counts, 1)
        left = divide(squares - of_mean, squares)
        cancels = usable & (left < CANCELS)
        # The spread is that of the Frobenius ratios, whether their mean is wanted or not.
        for name in dict.fromkeys(
            FROBENIUS if each == SPREAD else each for each in sorted(self.metrics)
        ):
            if name == FROBENIUS:
                values = np.sqrt(np.maximum(left, 0.0))
                doubtful = cancels
            else:
                values = _composite_ratio(batch)
                doubtful = usable & (cancels | np.isnan(values))
            if doubtful.any():
                values[doubtful] = _directly(batch, doubtful, of=name)
            if name in self._sums:
                self._sums[name] += per_block(blocks, values[usable])
            if name == FROBENIUS and SPREAD in self.metrics:
                self._moments.add(blocks, values[usable])

    def merge(self, other: Self) -> None:
        """Add everything ``other`` has seen."""
        self._counts += other._counts
        for name, sums in self._sums.items():
            sums += other._sums[name]
        self._moments.merge(other._moments)
        self._zeros += other._zeros
        self._isotropic += other._isotropic

    def evaluate(self, blocks: NDArray[np.int64]) -> Mapping[str, Evaluated]:
        """The metrics over everything and without each block."""
        counts = self._counts[blocks]
        if not counts.sum():
            if not self._zeros:
                return dict.fromkeys(self.metrics, undefined(LONE, vacuous=True))
            reason = f"all representations of the {self._zeros} sequences have zero length"
            return dict.fromkeys(self.metrics, undefined(reason))
        # No closed form is known of the composite norm.
        isotropic = {FROBENIUS: self._isotropic / counts.sum()}
        result = {
            name: evaluated(
                divide(totals(sums[blocks]), totals(counts)), isotropic=isotropic.get(name)
            )
            for name, sums in self._sums.items()
        }
        if SPREAD in self.metrics:
            result[SPREAD] = evaluated(self._moments.deviations(blocks))
        return result


class _Moments:
    """Mean and Σ(r − mean)² of each block's sequences (Chan, Golub and LeVeque 1983)."""

    def __init__(self) -> None:
        self._counts = np.zeros(BLOCKS)
        self._means = np.zeros(BLOCKS)
        self._spreads = np.zeros(BLOCKS)

    def add(self, blocks: NDArray[np.int64], values: Array) -> None:
        """Add a value of each of some sequences."""
        counts = per_block(blocks, np.ones(len(blocks)))
        means = per_block(blocks, values) / np.maximum(counts, 1)
        self._pool(counts, means, per_block(blocks, (values - means[blocks]) ** 2))

    def merge(self, other: Self) -> None:
        """Add everything ``other`` has seen."""
        self._pool(other._counts, other._means, other._spreads)

    def deviations(self, blocks: NDArray[np.int64]) -> Array:
        """(1 + G,) standard deviation (÷ N) over everything, then without each block."""
        counts, means, spreads = (
            values[blocks] for values in (self._counts, self._means, self._spreads)
        )
        everything = np.ones(len(blocks), dtype=bool)
        masks = [everything, *(~np.eye(len(blocks), dtype=bool))]
        sums = np.array([pooled(counts[m], means[m], spreads[m])[1] for m in masks])
        return np.sqrt(divide(sums, np.array([counts[m].sum() for m in masks])))

    def _pool(self, counts: Array, means: Array, spreads: Array) -> None:
        total = np.maximum(self._counts + counts, 1)
        step = means - self._means
        self._spreads += spreads + step**2 * (self._counts * counts / total)
        self._means += step * (counts / total)
        self._counts += counts


def _composite_ratio(batch: Batch) -> Array:
    """(B,) the composite norm of X − 1x̄ᵀ over that of X; NaN where in doubt."""
    plain, valid = batch.plain, batch.valid
    count = torch.from_numpy(np.maximum(batch.counts, 1)).to(plain.device)
    means = batch.sums / count[:, None]
    memory = scratch("residual", plain.shape, plain.dtype, plain.device)
    residual = torch.sub(plain, means.to(plain.dtype)[:, None, :], out=memory).abs_()
    if not batch.everything_valid:
        residual *= batch.valid_tensor[:, :, None]
    of_residual = largest_sums(residual, plain, valid, means)
    same = plain is batch.stored
    magnitudes = batch.magnitudes if same else torch.abs(plain, out=memory)
    return np.sqrt(divide(of_residual, largest_sums(magnitudes, plain, valid)))


def _directly(batch: Batch, chosen: NDArray[np.bool_], *, of: str) -> Array:
    """The ratio of some sequences in float64 throughout, which keeps what little there may be."""
    index = torch.from_numpy(np.flatnonzero(chosen)).to(batch.plain.device)
    rows = batch.plain[index].to(torch.float64)
    residual = centred(rows, batch.valid_tensor[index])
    norm = frobenius if of == FROBENIUS else composite
    ratio: Array = (norm(residual) / norm(rows)).cpu().numpy()
    return ratio


def rank_residual(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """Mean over sequences of ‖X − 1x̄ᵀ‖_F / ‖X‖_F.

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> rank_residual(torch.tensor([[[3.0, 4.0], [3.0, -4.0]]]))
    0.8
    """
    return value_of("rank_residual", x, units, mask)


def rank_residual_std(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """Standard deviation (÷ N) over N sequences of ‖X − 1x̄ᵀ‖_F / ‖X‖_F.

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    One sequence has 0.8, the other, whose positions are all the same, 0:

    >>> import torch
    >>> rank_residual_std(torch.tensor([[[3.0, 4.0], [3.0, -4.0]], [[1.0, 2.0], [1.0, 2.0]]]))
    0.4
    """
    return value_of(SPREAD, x, units, mask)


def rank_residual_composite(
    x: Tensor, units: Tensor | None = None, mask: Tensor | None = None
) -> float:
    """Mean over sequences of ‖X − 1x̄ᵀ‖ / ‖X‖ in the norm √(‖·‖₁ ‖·‖_∞).

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> round(rank_residual_composite(torch.tensor([[[3.0, 4.0], [3.0, -4.0]]])), 6)
    0.755929
    """
    return value_of("rank_residual_composite", x, units, mask)
