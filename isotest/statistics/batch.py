"""A few sequences of one layer, prepared once for every statistic that looks at them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from isotest.errors import NonFiniteError
from isotest.statistics.blocks import block_of
from isotest.statistics.scratch import scratch

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

WIDE = 1 << 14
"""From this width on, lone representations are worked on in slices instead of as a whole."""

CHUNK = 1 << 17
"""Entries in a slice: 1 MiB in float64, so that several passes over it stay in the cache."""


_LOWEST = -(1 << 12)
"""Below the exponent of every float64."""


class Batch:
    """Sequences (B, L, D) with what every statistic needs of them, each computed at most once.

    Storage in float64 covers the whole range of exponents, where squares overflow or vanish. Rows
    are therefore kept as ``rows × 2^exponents``, each row's own power of two (an exact scaling)
    bringing its largest entry near 1. Narrower dtypes need none: their squares fit into float64.

    Attributes:
        raw: (B, L, D) as the layer put it out, float16, bfloat16, float32 or float64.
        valid: (B, L); false where a position is masked.
        units: (B,) number of the independent unit of each sequence.
        blocks: (B,) block of each sequence.
        wide: the rows are too long to be worked on as a whole; then L = 1.
    """

    def __init__(
        self, raw: Tensor, valid: NDArray[np.bool_], units: NDArray[np.int64], *, wide: bool
    ) -> None:
        self.raw = raw
        self.valid = valid
        self.units = units
        self.blocks = block_of(units)
        self.wide = wide
        self.everything_valid = bool(valid.all())

    @cached_property
    def valid_tensor(self) -> Tensor:
        """``valid`` on the device of the rows."""
        return torch.from_numpy(self.valid).to(self.raw.device)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """(B,) valid representations of each sequence."""
        counts: NDArray[np.int64] = self.valid.sum(axis=1, dtype=np.int64)
        return counts

    @cached_property
    def exponents(self) -> NDArray[np.int64]:
        """(B, L) the power of two taken out of each row; 0 unless storage is float64."""
        if self.raw.dtype != torch.float64:
            return np.zeros(self.valid.shape, dtype=np.int64)
        peaks = torch.linalg.vector_norm(self.stored, float("inf"), dim=2)
        values: NDArray[np.float64] = peaks.cpu().numpy()
        self._require_finite(values)
        exponents: NDArray[np.int64] = np.frexp(values)[1].astype(np.int64)
        return exponents

    @cached_property
    def stored(self) -> Tensor:
        """(B, L, D) float32 or float64: the entries as they are, zero where masked."""
        stored = self.raw if self.raw.dtype == torch.float64 else self.raw.to(torch.float32)
        return self._zeroed(stored)

    @cached_property
    def rows(self) -> Tensor:
        """(B, L, D) float64, each row without its power of two; zero where masked.

        Like all that is ``scratch``, it is only good until the next batch of the same thread.
        """
        if self.raw.dtype != torch.float64:
            memory = scratch("rows", self.raw.shape, torch.float64, self.raw.device)
            return memory.copy_(self.stored)
        rows = self.stored
        # In two steps: 2^1074, which lifts the smallest subnormal, is itself out of range.
        half = self.exponents // 2
        for part in (half, self.exponents - half):
            factor = torch.from_numpy(np.ldexp(1.0, -part)).to(rows.device)
            rows = rows * factor[:, :, None]
        return rows

    @cached_property
    def norms(self) -> NDArray[np.float64]:
        """(B, L) Euclidean length of each row without its power of two; 0 where masked.

        Raises:
            NonFiniteError: a valid entry is NaN or infinite.
        """
        if self.wide and self.raw.dtype != torch.float64:
            norms = torch.stack([_norm(row) for row in self.raw[:, 0]])[:, None]
        else:
            norms = torch.linalg.vector_norm(self.rows, dim=2)
        values: NDArray[np.float64] = norms.cpu().numpy()
        self._require_finite(values)
        return values

    @cached_property
    def directed(self) -> NDArray[np.bool_]:
        """(B, L) valid rows of a length above zero: those that have a direction."""
        return self.valid & (self.norms > 0)

    @cached_property
    def tops(self) -> NDArray[np.int64]:
        """(B,) the largest power of two taken out of a row of each sequence that is not zero."""
        if self.raw.dtype != torch.float64:
            return np.zeros(len(self.valid), dtype=np.int64)
        tops = np.where(self.directed, self.exponents, _LOWEST).max(axis=1, initial=_LOWEST)
        result: NDArray[np.int64] = np.where(tops > _LOWEST, tops, 0)
        return result

    @cached_property
    def scale(self) -> NDArray[np.float64]:
        """(B, L) what brings each of ``rows`` to its sequence's power of two; 0 without direction.

        1 unless storage is float64.
        """
        if self.raw.dtype != torch.float64:
            return self.directed.astype(np.float64)
        relative = np.where(self.directed, self.exponents - self.tops[:, None], 0)
        return np.where(self.directed, np.ldexp(1.0, relative), 0.0)

    @cached_property
    def plain(self) -> Tensor:
        """(B, L, D) float32 or float64, each sequence in a power of two of its own, ``tops``."""
        if self.raw.dtype != torch.float64:
            return self.stored
        return self.rows * torch.from_numpy(self.scale).to(self.rows.device)[:, :, None]

    @cached_property
    def held(self) -> Tensor:
        """(B, D) a copy of lone rows that outlives the forward pass, without powers of two.

        The layer's own memory may be written to by a later in-place operation.
        """
        if self.raw.dtype == torch.float64:
            return self.rows[:, 0]
        return self.raw[:, 0].clone()

    @property
    def direction_sums(self) -> Tensor:
        """(B, D) float64: the sum of each sequence's unit vectors."""
        return self._weighted_sums[:, 0]

    @property
    def sums(self) -> Tensor:
        """(B, D) float64: the sum of each sequence's rows, in its power of two, ``tops``."""
        return self._weighted_sums[:, 1]

    @cached_property
    def magnitudes(self) -> Tensor:
        """(B, L, D) float32 or float64: absolute values of ``stored``; only of narrow batches."""
        memory = scratch("magnitudes", self.stored.shape, self.stored.dtype, self.stored.device)
        return torch.abs(self.stored, out=memory)

    @cached_property
    def peaks(self) -> NDArray[np.float64]:
        """(B,) largest absolute value of each sequence."""
        if self.wide:
            # Lowest and highest instead of absolute values, which would have to be written.
            return np.array([max(float(row.max()), -float(row.min())) for row in self._host[:, 0]])
        peaks: NDArray[np.float64] = self.magnitudes.amax(dim=(1, 2)).double().cpu().numpy()
        return peaks

    def entries(self, sequence: int) -> NDArray[np.floating]:
        """All valid entries of a sequence, flat, in float32 or float64; not to be written to."""
        return self._flat(self._host, sequence)

    def magnitudes_of(self, sequence: int) -> NDArray[np.floating]:
        """Their absolute values; not to be written to."""
        if not self.wide:
            return self._flat(self._host_magnitudes, sequence)
        entries = self.entries(sequence)
        return entries if entries.min() >= 0 else np.abs(entries)

    def words(self) -> NDArray[np.int64]:
        """(B, L, W) the bits of each row as 64-bit words, masked or not."""
        raw = self.raw.detach()
        if raw.stride(2) != 1:
            raw = raw.contiguous()
        width = raw.shape[2] * raw.element_size()
        unit, view = next(
            (size, dtype)
            for size, dtype in ((8, torch.int64), (4, torch.int32), (2, torch.int16))
            if width % size == 0 and raw.element_size() <= size
        )
        share = unit // raw.element_size()
        if any(step % share for step in (raw.storage_offset(), *raw.stride()[:2])):
            raw = raw.clone(memory_format=torch.contiguous_format)
        words: NDArray[np.int64] = raw.view(view).cpu().numpy().astype(np.int64, copy=False)
        return words

    @cached_property
    def _weighted_sums(self) -> Tensor:
        """(B, 2, D): both in one pass, and always both, so that each is the same to the last bit.

        What else is measured must not matter.
        """
        weights = np.zeros((len(self.valid), 2, self.valid.shape[1]))
        np.divide(1.0, self.norms, out=weights[:, 0], where=self.directed)
        weights[:, 1] = self.scale
        return torch.bmm(torch.from_numpy(weights).to(self.rows.device), self.rows)

    @cached_property
    def _host(self) -> NDArray[np.floating]:
        host: NDArray[np.floating] = self.stored.detach().cpu().numpy()
        return host

    @cached_property
    def _host_magnitudes(self) -> NDArray[np.floating]:
        host: NDArray[np.floating] = self.magnitudes.cpu().numpy()
        return host

    def _flat(self, host: NDArray[np.floating], sequence: int) -> NDArray[np.floating]:
        rows: NDArray[np.floating] = host[sequence]
        if not self.everything_valid:
            rows = rows[self.valid[sequence]]
        return rows.reshape(-1)

    def _zeroed(self, rows: Tensor) -> Tensor:
        if self.everything_valid:
            return rows
        # where, not a product: NaN × 0 is NaN.
        return torch.where(self.valid_tensor[:, :, None], rows, torch.zeros_like(rows))

    def _require_finite(self, values: NDArray[np.float64]) -> None:
        if not np.isfinite(values).all():
            found = first_nonfinite(self.raw, self.valid_tensor)
            raise NonFiniteError(f"expected finite representations, found {found}")


def first_nonfinite(x: Tensor, mask: Tensor | None = None) -> str | None:
    """What is not finite among the valid entries of ``x``, in words; ``None`` if all is well.

    Args:
        x: (B, L, D), any floating dtype.
        mask: (B, L) bool, true where valid; all are valid without one.

    >>> first_nonfinite(torch.tensor([[[float("nan"), 0.0], [0.0, float("inf")]]]))
    '1 NaN and 1 Inf among 4 entries, the first in sequence 0 of the batch, position 0, dimension 0'
    >>> first_nonfinite(torch.zeros(1, 2, 2)) is None
    True
    """
    bad = ~torch.isfinite(x)
    entries = x.numel()
    if mask is not None:
        bad = bad & mask[:, :, None]
        entries = int(mask.sum()) * x.shape[2]
    if not bool(bad.any()):
        return None
    nans = int((torch.isnan(x) & bad).sum())
    infs = int(bad.sum()) - nans
    kinds = [f"{count} {kind}" for count, kind in ((nans, "NaN"), (infs, "Inf")) if count]
    sequence, position, dimension = bad.nonzero()[0].tolist()
    return (
        f"{' and '.join(kinds)} among {entries} entries, the first in sequence {sequence} of the "
        f"batch, position {position}, dimension {dimension}"
    )


def _norm(row: Tensor) -> Tensor:
    total = torch.zeros((), dtype=torch.float64, device=row.device)
    for part in torch.split(row, CHUNK):
        wide = part.to(torch.float64)
        total += torch.dot(wide, wide)
    return total.sqrt()
