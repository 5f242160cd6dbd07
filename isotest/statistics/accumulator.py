"""What a statistic has to offer to be measured: take batches, merge, evaluate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from isotest.statistics.blocks import BLOCKS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from isotest.statistics.batch import Batch


LONE = "every sequence has one representation"
"""Why what happens within sequences has no value on flattened feature maps."""


@dataclass(frozen=True)
class Evaluated:
    """A statistic over everything, and without each block.

    Attributes:
        value: over all blocks; ``None`` where undefined.
        without: (G,) with one block left out, in block order; NaN where that leaves it undefined.
        undefined, vacuous, isotropic, basis, dropped: as in ``isotest.estimate.Estimate``.
    """

    value: float | None
    without: NDArray[np.float64]
    undefined: str | None = None
    vacuous: bool = False
    isotropic: float | None = None
    basis: str | None = None
    dropped: int | None = None


def evaluated(values: NDArray[np.float64], *, isotropic: float | None = None) -> Evaluated:
    """A statistic from (1 + G,) values: over everything, then without each block."""
    return Evaluated(float(values[0]), values[1:], isotropic=isotropic)


def undefined(reason: str, *, vacuous: bool = False) -> Evaluated:
    """A statistic without a value, and why."""
    return Evaluated(None, np.empty(0), reason, vacuous)


class Accumulator(Protocol):
    """The state behind one or several metrics of one layer.

    ``merge`` is associative and commutative up to rounding, so that batches, workers and resumed
    runs can be joined in any tree.
    """

    def __init__(self, metrics: Collection[str], *, grouped: bool) -> None:
        """Start empty; ``metrics`` says which of its metrics are wanted."""

    def update(self, batch: Batch) -> None:
        """Take in a few sequences, each exactly once."""

    def merge(self, other: Self) -> None:
        """Take in everything that ``other`` has seen."""

    def evaluate(self, blocks: NDArray[np.int64]) -> Mapping[str, Evaluated]:
        """The wanted metrics; ``blocks`` are the numbers of the blocks seen, ascending."""
        ...


def per_block(blocks: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(BLOCKS,) sums of ``values`` by block.

    >>> per_block(np.array([1, 1, 3]), np.array([1.0, 2.0, 4.0]))[:4].tolist()
    [0.0, 3.0, 0.0, 4.0]
    """
    return np.bincount(blocks, weights=values, minlength=BLOCKS).astype(np.float64)


def divide(numerator: NDArray[np.float64], by: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quotient, NaN (undefined) instead of a warning where ``by`` is zero."""
    result = np.full(np.broadcast(numerator, by).shape, np.nan)
    np.divide(numerator, by, out=result, where=by != 0)
    return result


def totals(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(1 + G, …) the sum of G values (G, …), then the sums of all values but one.

    >>> totals(np.array([1.0, 2.0, 4.0])).tolist()
    [7.0, 6.0, 5.0, 3.0]
    """
    zero = np.zeros((1, *values.shape[1:]))
    before = np.cumsum(np.concatenate([zero, values]), axis=0)
    after = np.cumsum(np.concatenate([zero, values[::-1]]), axis=0)[::-1]
    # Added up from both sides: a difference loses the digits of what one large value leaves.
    return np.concatenate([values.sum(axis=0, keepdims=True), before[:-1] + after[1:]])
