"""The representations of a layer that were kept, as metrics that need them see them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import torch

from isotest.statistics.blocks import block_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.statistics.covariance import Covariances

    Index = NDArray[np.int64]

Result = TypeVar("Result")

SLICE = 1 << 14
"""Dimensions worked on at a time: representations may be hundreds of thousands wide."""


class Sample:
    """K representations of width D, kept from all those of a layer.

    Args:
        rows: tensors (k, D) that make up the K representations, as stored, any floating dtype.
        units: (K,) the independent unit of each, in the order of ``rows``.
        order: (K,) the order in which they are to be taken: by unit, then position.
        blocks: (G,) numbers of the blocks that the layer has representations in, ascending.
        seen: how many representations the layer has; K of them were kept.
        covariances: of a narrow layer, those of all its representations, if they are wanted.
    """

    def __init__(
        self,
        rows: Sequence[Tensor],
        units: Index,
        order: Index,
        blocks: Index,
        *,
        seen: int,
        covariances: Covariances | None = None,
    ) -> None:
        self._rows = rows
        self._order = torch.from_numpy(order)
        self._in_order = bool((np.diff(order) == 1).all())
        self._found: dict[Callable[[Sample], Any], Any] = {}
        self.units: Index = units[order]
        self.blocks = blocks
        self.seen = seen
        self.covariances = covariances

    @property
    def count(self) -> int:
        """K."""
        return len(self.units)

    @property
    def width(self) -> int:
        """D."""
        if self.covariances is not None:  # there may be too many representations to keep any
            return self.covariances.width
        return int(self._rows[0].shape[1])

    @property
    def device(self) -> torch.device:
        """Where the representations are."""
        return self._rows[0].device

    @property
    def dtype(self) -> torch.dtype:
        """What they are stored in."""
        return self._rows[0].dtype

    @property
    def basis(self) -> str:
        """In words, what is measured from: all representations, or how many of them."""
        if self.count == self.seen:
            return f"all {self.seen} representations"
        return f"{self.count} of {self.seen} representations"

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """(K, 1 + G) who is in: first everybody, then everybody but the members of a block."""
        return without_each(self.units, self.blocks)

    @cached_property
    def places(self) -> Index:
        """(K,) which of the G blocks each is of, by its place among them."""
        places: Index = np.searchsorted(self.blocks, block_of(self.units))
        return places

    def slices(self) -> Iterator[Tensor]:
        """(K, ≤ ``SLICE``) float64 columns of the representations, from the first dimension on.

        They are copies, which may be written to.

        All are divided by one and the same power of two, 2^``exponent``, an exact scaling, so that
        no square of what was stored in float64 is out of range; narrower dtypes need none.
        """
        power = self.exponent
        for start in range(0, self.width, SLICE):
            parts = [part[:, start : start + SLICE].to(self.device) for part in self._rows]
            columns = torch.cat(parts)
            if not self._in_order:
                columns = columns[self._order.to(self.device)]
            columns = columns.to(torch.float64)
            if power:
                columns = torch.ldexp(columns, torch.tensor(-power, device=self.device))
            yield columns

    def once(self, compute: Callable[[Sample], Result]) -> Result:
        """``compute(self)``, computed by the first who asks: metrics share what they need alike."""
        if compute not in self._found:
            self._found[compute] = compute(self)
        return cast("Result", self._found[compute])

    @cached_property
    def exponent(self) -> int:
        """The power of two that ``slices`` are divided by."""
        if self._rows[0].dtype != torch.float64:
            return 0
        return int(np.frexp(max(float(part.abs().max()) for part in self._rows))[1])


def centre(rows: Tensor) -> Tensor:
    """(N, D) rows less their mean, in place."""
    # Less the first one first: near each other, they are subtracted without rounding.
    rows -= rows[0].clone()
    rows -= rows.mean(dim=0)
    return rows


def without_each(units: Index, blocks: Index) -> NDArray[np.bool_]:
    """(K, 1 + G) who is in: first everybody, then everybody but the members of a block.

    >>> without_each(np.array([0, 0, 5]), np.array([0, 5])).astype(int).tolist()
    [[1, 0, 1], [1, 0, 1], [1, 1, 0]]
    """
    without = block_of(units)[:, None] != blocks
    return np.append(np.ones((len(units), 1), bool), without, axis=1)
