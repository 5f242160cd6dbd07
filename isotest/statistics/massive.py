"""Massive activations: the largest |x|, and how far it stands above the median |x|.

Source: Sun, Chen, Kolter and Liu 2024, who call an activation massive if it is above 100 and at
least about 1,000 times the median magnitude of its hidden state.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Self

import numpy as np

from isotest.statistics.accumulator import Evaluated, undefined
from isotest.statistics.blocks import BLOCKS
from isotest.statistics.layer import value_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.statistics.batch import Batch


_SLICE = 1 << 16
_SAMPLE = 1 << 12
_MARGIN = 1 << 7
"""Places around the middle of a sample of ``_SAMPLE``: 4 standard deviations of its median's."""

_GUESS = 1 << 9


def median(values: NDArray[np.floating]) -> float:
    """Median of a flat array; the mean of the middle two of an even number.

    >>> median(np.array([4.0, 1.0, 3.0, 2.0]))
    2.5
    """
    part, half = _middle(values)
    part.partition(half)
    if len(values) % 2:
        return float(part[half])
    # Halved first: the sum of two of the largest floats is out of range.
    return float(part[:half].max()) / 2 + float(part[half]) / 2


def _middle(values: NDArray[np.floating]) -> tuple[NDArray[np.floating], int]:
    """A copy of those ``values`` that surely hold the middle, and its upper place among them.

    Of many values a sample says roughly where the median lies. Counting what is below costs less
    than selecting among all, and shows whether the guess was right.
    """
    half = len(values) // 2
    if len(values) >= 4 * _SAMPLE:
        sample = np.sort(values[_places(len(values), _SAMPLE)])
        middle = len(sample) // 2
        at_least = values >= sample[middle - _MARGIN]
        below = len(values) - int(np.count_nonzero(at_least))
        at_least &= values <= sample[middle + _MARGIN]
        inside = values[at_least]
        if 1 <= half - below < len(inside):
            return inside, half - below
    return values.copy(), half


def _median_at_least(values: NDArray[np.floating], bound: float) -> bool:
    """Whether the median is surely ``bound`` or more: one comparison instead of a selection."""
    limit = np.nextafter(values.dtype.type(bound), values.dtype.type(np.inf))
    below = sum(
        int(np.count_nonzero(values[start : start + _SLICE] < limit))
        for start in range(0, len(values), _SLICE)
    )
    return below <= (len(values) - 1) // 2


@lru_cache(maxsize=64)
def _places(size: int, count: int) -> NDArray[np.int64]:
    """Where to look for a sample: drawn, since a stride would fall in step with rows or maps."""
    return np.random.Generator(np.random.PCG64(0)).integers(0, size, size=count)


def _guess(peak: float, entries: NDArray[np.floating]) -> float:
    """About what the ratio is, from few of the entries."""
    few = np.abs(entries[_places(len(entries), _GUESS)])
    few.partition(len(few) // 2)
    middle = float(few[len(few) // 2])
    return peak / middle if middle else np.inf


class MassiveActivations:
    """``massive`` and ``massive_ratio``, both maxima.

    ``massive_ratio`` is the largest over sequences of max|x| / median|x|, both over the entries of
    that sequence's hidden state, the median exact. What leaving a block out does to a maximum is
    decided by the two blocks with the largest values, so only these are kept, and a sequence whose
    ratio is provably no larger costs one comparison.

    The jackknife is conservative for a maximum: leaving out the one block that holds it moves all
    the way to the next largest, and that one pseudo-value carries the whole error.
    """

    def __init__(self, metrics: Collection[str], *, grouped: bool) -> None:
        del grouped  # a maximum knows no pairs
        self.metrics = frozenset(metrics)
        self._peaks = np.full(BLOCKS, -np.inf)
        self._leaders: dict[int, float] = {}
        self._zero_median = False

    def update(self, batch: Batch) -> None:
        """Look at the magnitudes of a batch."""
        peaks = batch.peaks
        some = np.flatnonzero(batch.counts)
        np.maximum.at(self._peaks, batch.blocks[some], peaks[some])
        if "massive_ratio" not in self.metrics:
            return
        # What likely leads comes first, so that the others cost no more than a comparison.
        likely = {
            sequence: _guess(peaks[sequence], batch.entries(sequence)) for sequence in some.tolist()
        }
        for sequence in sorted(likely, key=lambda key: (-likely[key], key)):
            if self._zero_median:
                return
            self._compare(
                int(batch.blocks[sequence]), float(peaks[sequence]), batch.magnitudes_of(sequence)
            )

    def _compare(self, block: int, peak: float, values: NDArray[np.floating]) -> None:
        # A block's own ratio has to be beaten, and so have those of both leaders.
        beaten = self._leaders.get(block, 0.0)
        if len(self._leaders) == 2:
            beaten = max(beaten, min(self._leaders.values()))
        if beaten and _median_at_least(values, peak / beaten):
            return
        middle = median(values)
        if middle == 0.0:
            self._zero_median = True
            return
        self._lead(block, peak / middle)

    def _lead(self, block: int, ratio: float) -> None:
        self._leaders[block] = max(ratio, self._leaders.get(block, 0.0))
        if len(self._leaders) > 2:
            del self._leaders[min(self._leaders, key=lambda key: (self._leaders[key], key))]

    def merge(self, other: Self) -> None:
        """Take in everything ``other`` has seen."""
        np.maximum(self._peaks, other._peaks, out=self._peaks)
        self._zero_median |= other._zero_median
        for block, ratio in other._leaders.items():
            self._lead(block, ratio)

    def evaluate(self, blocks: NDArray[np.int64]) -> Mapping[str, Evaluated]:
        """The metrics over everything and without each block."""
        result = {}
        if "massive" in self.metrics:
            result["massive"] = _maximum(self._peaks[blocks])
        if "massive_ratio" in self.metrics:
            if self._zero_median:
                result["massive_ratio"] = undefined(
                    "at least one sequence has a median |x| of zero: most of its entries are zero"
                )
            else:
                # The blocks that do not lead are below both leaders, wherever exactly.
                ratios = [self._leaders.get(block, -np.inf) for block in blocks.tolist()]
                result["massive_ratio"] = _maximum(np.array(ratios))
        return result


def _maximum(values: NDArray[np.float64]) -> Evaluated:
    first = int(values.argmax())
    without = np.full(len(values), values[first])
    rest = np.delete(values, first)
    without[first] = rest.max() if rest.size else np.nan
    return Evaluated(float(values[first]), without)


def massive(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """Largest absolute entry.

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> massive(torch.tensor([[[1.0, -9.0, 2.0]]]))
    9.0
    """
    return value_of("massive", x, units, mask)


def massive_ratio(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """Largest over sequences of max|x| / median|x| within the sequence.

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> massive_ratio(torch.tensor([[[1.0, -9.0, 2.0]]]))
    4.5
    """
    return value_of("massive_ratio", x, units, mask)
