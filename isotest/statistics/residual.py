"""Distance of a sequence's representations from all being the same: rank collapse.

Source: Dong, Cordonnier and Loukas 2021. For one sequence X (n × D) with mean row x̄, the relative
residual is ‖X − 1x̄ᵀ‖ / ‖X‖, in the Frobenius norm or in the composite norm √(‖·‖₁ ‖·‖_∞), where
‖·‖₁ is the largest column sum and ‖·‖_∞ the largest row sum of absolute values. The metric is the
mean over sequences: it is never pooled, since different sequences may collapse to different points.
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
from isotest.statistics.blocks import BLOCKS
from isotest.statistics.layer import value_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.statistics.batch import Batch

    Array = NDArray[np.float64]


def centred(rows: Tensor, valid: Tensor, out: Tensor) -> Tensor:
    """(B, L, D) X − 1x̄ᵀ of each sequence, zero where masked.

    The first valid row is subtracted before the mean is taken, so that a common offset, however
    large, costs no digits and equal rows give exactly zero.

    Args:
        rows: (B, L, D) float64, zero where masked.
        valid: (B, L) bool.
        out: (B, L, D) float64, overwritten and returned.
    """
    everything = bool(valid.all())
    sequences = torch.arange(len(rows), device=rows.device)
    first = rows[sequences, valid.to(torch.uint8).argmax(dim=1)]
    residual = torch.sub(rows, first[:, None, :], out=out)
    if not everything:
        residual *= valid[:, :, None]
    count = valid.sum(dim=1).clamp(min=1).to(rows.dtype)
    residual -= (residual.sum(dim=1) / count[:, None])[:, None, :]
    if not everything:
        residual *= valid[:, :, None]
    return residual


def frobenius(matrices: Tensor) -> Tensor:
    """(B,) Frobenius norm of each matrix (B, L, D)."""
    norms: Tensor = torch.linalg.vector_norm(matrices, dim=(1, 2))
    return norms


def composite(matrices: Tensor, out: Tensor) -> Tensor:
    """(B,) √(‖·‖₁ ‖·‖_∞) of each matrix (B, L, D); ``out``, as large, is overwritten."""
    magnitudes = torch.abs(matrices, out=out)
    columns = magnitudes.sum(dim=1).amax(dim=1)
    rows = magnitudes.sum(dim=2).amax(dim=1)
    return columns.sqrt() * rows.sqrt()


FROBENIUS, COMPOSITE = "rank_residual", "rank_residual_composite"


class RankResidual:
    """``rank_residual`` (Frobenius) and ``rank_residual_composite``, means over sequences.

    Sequences with one valid representation are left out (their residual is 0 by construction), and
    so are sequences in which every representation is zero (0 / 0).
    """

    def __init__(self, metrics: Collection[str], *, grouped: bool) -> None:
        del grouped  # the mean is over sequences, the error over blocks
        self.metrics = frozenset(metrics)
        self._counts = np.zeros(BLOCKS)
        self._sums = {name: np.zeros(BLOCKS) for name in sorted(self.metrics)}
        self._zeros = 0
        # Kept from batch to batch: fresh memory of this size costs more than the arithmetic.
        self._scratch: Tensor | None = None

    def update(self, batch: Batch) -> None:
        """Add the residual of each sequence."""
        long = batch.counts > 1
        usable = long & batch.directed.any(axis=1)
        self._zeros += int((long & ~usable).sum())
        if not usable.any():
            return
        rows = _common_scale(batch)
        if self._scratch is None or self._scratch.shape != rows.shape:
            with torch.inference_mode(False):  # so that it can be written in any mode
                self._scratch = torch.empty_like(rows)
        residual = centred(rows, batch.valid_tensor, out=self._scratch)
        blocks = batch.blocks[usable]
        self._counts += per_block(blocks, np.ones(len(blocks)))
        if FROBENIUS in self._sums:
            self._add(FROBENIUS, frobenius(residual) / frobenius(rows), blocks, usable)
        if COMPOSITE in self._sums:
            # The residual is of no use any more, so its memory serves for the magnitudes.
            of_residual = composite(residual, out=residual)
            self._add(COMPOSITE, of_residual / composite(rows, out=residual), blocks, usable)

    def _add(
        self, name: str, relative: Tensor, blocks: NDArray[np.int64], usable: NDArray[np.bool_]
    ) -> None:
        self._sums[name] += per_block(blocks, relative.cpu().numpy()[usable])

    def merge(self, other: Self) -> None:
        """Add everything ``other`` has seen."""
        self._counts += other._counts
        for name, sums in self._sums.items():
            sums += other._sums[name]
        self._zeros += other._zeros

    def evaluate(self, blocks: NDArray[np.int64]) -> Mapping[str, Evaluated]:
        """The metrics over everything and without each block."""
        counts = self._counts[blocks]
        if not counts.sum():
            if not self._zeros:
                return dict.fromkeys(self.metrics, undefined(LONE, vacuous=True))
            reason = f"all representations of the {self._zeros} sequences have zero length"
            return dict.fromkeys(self.metrics, undefined(reason))
        return {
            name: evaluated(divide(totals(sums[blocks]), totals(counts)))
            for name, sums in self._sums.items()
        }


def _common_scale(batch: Batch) -> Tensor:
    """The rows of each sequence in one power of two, instead of each row in its own."""
    if batch.raw.dtype != torch.float64:
        return batch.rows
    exponents = np.where(batch.directed, batch.exponents, -4096)  # below every float64
    relative = exponents - exponents.max(axis=1, keepdims=True)
    scale = np.where(batch.directed, np.ldexp(1.0, relative), 0.0)
    return batch.rows * torch.from_numpy(scale).to(batch.rows.device)[:, :, None]


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
