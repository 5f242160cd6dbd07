"""Everything measured of one layer: batches in, estimates with error bars out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np
import torch

from isotest.errors import IsotestError, MeasurementError
from isotest.estimate import Estimate
from isotest.source import did_you_mean
from isotest.statistics.batch import WIDE, Batch
from isotest.statistics.blocks import BLOCKS
from isotest.statistics.computing import computing
from isotest.statistics.jackknife import jackknife
from isotest.statistics.registry import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.statistics.accumulator import Accumulator, Evaluated

Part = TypeVar("Part", bound="Accumulator")

_ENTRIES = {"cpu": 1 << 21}
_ENTRIES_ELSEWHERE = 1 << 26
"""Entries of a batch: on the CPU few enough for the caches, elsewhere enough to fill the device."""


class LayerStatistics:
    """The wanted metrics of one layer, from any number of batches.

    Args:
        metrics: names from ``METRICS``.
        grouped: whether several sequences may be of one independent unit. If not, every sequence
            is its own unit, and memory does not depend on how many there are.

    Raises:
        IsotestError: a metric that is not in ``METRICS``, or that only an experiment measures.

    >>> layer = LayerStatistics(["anisotropy", "mean_norm"], grouped=False)
    >>> layer.update(torch.tensor([[[1.0, 0.0]], [[0.0, 2.0]], [[0.0, 3.0]]]), torch.arange(3))
    >>> {name: round(estimate.value, 6) for name, estimate in layer.estimates().items()}
    {'anisotropy': 0.333333, 'mean_norm': 2.0}
    """

    def __init__(self, metrics: Sequence[str], *, grouped: bool) -> None:
        for name in metrics:
            if name not in METRICS:
                raise IsotestError(f"unknown metric {name!r}{did_you_mean(name, METRICS)}")
            if (experiment := METRICS[name].experiment) is not None:
                raise IsotestError(
                    f"metric {name!r} is measured by the {experiment} experiment alone, not of "
                    "representations"
                )
        self.metrics = tuple(dict.fromkeys(metrics))
        self.grouped = grouped
        self._width: int | None = None
        self._zero_length = 0
        self._representations = np.zeros(BLOCKS, np.int64)
        self._sequences = np.zeros(BLOCKS, np.int64)
        self._units: set[int] = set()
        wanted: dict[str, list[str]] = {}
        for name in self.metrics:
            wanted.setdefault(METRICS[name].accumulator, []).append(name)
        self._accumulators: dict[str, Accumulator] = {
            reference: computing(names[0], reference)(names, grouped=grouped)
            for reference, names in wanted.items()
        }

    def update(self, x: Tensor, units: Tensor, mask: Tensor | None = None) -> None:
        """Take in sequences, each exactly once.

        Args:
            x: (B, L, D) representations, any floating dtype; L may differ from call to call.
            units: (B,) number of each sequence's independent unit, ≥ 0.
            mask: (B, L) bool, true where valid; all are valid without one. What stands at masked
                positions has no influence, NaN included.

        Raises:
            NonFiniteError: a valid entry is NaN or infinite. The statistics are then incomplete.
            MeasurementError: shapes or dtypes that do not fit together or to earlier calls.
        """
        x = x.detach()
        if x.device.type == "mps":  # it has no float64
            x = x.cpu()
        numbers = units.detach().cpu().numpy()
        valid = np.ones(x.shape[:2], bool) if mask is None else mask.detach().cpu().numpy()
        self._check(x, numbers, valid)
        some = valid.any(axis=1)
        if not some.all():
            # A sequence without a valid position does not exist.
            x, numbers, valid = x[torch.from_numpy(some).to(x.device)], numbers[some], valid[some]
        for batch in _batches(x, valid, numbers):
            self._count(batch)
            for accumulator in self._accumulators.values():
                accumulator.update(batch)

    def merge(self, other: Self) -> None:
        """Take in everything that ``other`` has seen: other sequences of the same layer.

        Raises:
            MeasurementError: ``other`` measures something else.
        """
        if (other.metrics, other.grouped) != (self.metrics, self.grouped):
            raise MeasurementError("statistics of different metrics cannot be merged")
        if other._width is not None:
            self._require_width(other._width)
        self._zero_length += other._zero_length
        self._representations += other._representations
        self._sequences += other._sequences
        self._units |= other._units
        for reference, accumulator in self._accumulators.items():
            accumulator.merge(other._accumulators[reference])

    def estimates(self) -> dict[str, Estimate]:
        """The metrics with their error bars, in the order asked for.

        Raises:
            MeasurementError: nothing was measured.
        """
        blocks = self._blocks
        if not len(blocks):
            raise MeasurementError("expected representations to measure, found none")
        evaluated: dict[str, Evaluated] = {}
        for accumulator in self._accumulators.values():
            evaluated |= accumulator.evaluate(blocks)
        return {name: self._estimate(name, evaluated[name]) for name in self.metrics}

    def part(self, kind: type[Part]) -> Part | None:
        """The state behind the wanted metrics of one kind; ``None`` where none is wanted."""
        return next((part for part in self._accumulators.values() if isinstance(part, kind)), None)

    @property
    def width(self) -> int:
        """D, the length of one representation; 0 before the first batch."""
        return self._width or 0

    @property
    def representations(self) -> int:
        """Valid representations seen."""
        return int(self._representations.sum())

    @property
    def zero_length(self) -> int:
        """How many of them have zero length and thus no direction."""
        return self._zero_length

    @property
    def sequences(self) -> int:
        """Sequences with at least one valid representation."""
        return int(self._sequences.sum())

    @property
    def units(self) -> int:
        """Independent units among them."""
        return len(self._units) if self.grouped else self.sequences

    @property
    def block_representations(self) -> tuple[int, ...]:
        """Valid representations in each block, in block order, blocks without any left out."""
        return tuple(self._representations[self._blocks].tolist())

    @property
    def block_sequences(self) -> tuple[int, ...]:
        """Sequences in each block, in block order, blocks without any left out."""
        return tuple(self._sequences[self._blocks].tolist())

    @property
    def _blocks(self) -> NDArray[np.int64]:
        return np.flatnonzero(self._representations)

    def _estimate(self, name: str, evaluated: Evaluated) -> Estimate:
        if evaluated.value is None:
            reason, vacuous = evaluated.undefined, evaluated.vacuous
            return Estimate(None, undefined=reason, vacuous=vacuous)
        if not np.isfinite(evaluated.value):
            return Estimate(None, undefined="the value is beyond the range of float64")
        if not np.isfinite(evaluated.without).all():
            # Without some block there is nothing left to measure: no error bar.
            return _beside(Estimate(evaluated.value), evaluated)
        per_sequence = METRICS[name].weight == "sequences"
        sizes = self.block_sequences if per_sequence else self.block_representations
        estimate = jackknife(evaluated.value, evaluated.without.tolist(), sizes)
        return _beside(estimate, evaluated)

    def _count(self, batch: Batch) -> None:
        directed = batch.directed  # refuses what is not finite before anything is counted
        self._zero_length += int(batch.counts.sum() - directed.sum())
        np.add.at(self._representations, batch.blocks, batch.counts)
        np.add.at(self._sequences, batch.blocks, 1)
        if self.grouped:
            self._units.update(batch.units.tolist())

    def _check(self, x: Tensor, units: NDArray[np.int64], valid: NDArray[np.bool_]) -> None:
        if x.dim() != 3 or not x.is_floating_point() or x.element_size() > 8:
            raise MeasurementError(
                f"expected real representations of shape (batch, length, width), found shape "
                f"{tuple(x.shape)} of {x.dtype}"
            )
        if units.shape != (len(x),) or units.dtype.kind != "i" or (units < 0).any():
            raise MeasurementError(
                f"expected one unit number ≥ 0 for each of {len(x)} sequences, found {units!r}"
            )
        if valid.shape != x.shape[:2] or valid.dtype != np.bool_:
            raise MeasurementError(
                f"expected a boolean mask of shape {tuple(x.shape[:2])}, found shape "
                f"{valid.shape} of {valid.dtype}"
            )
        self._require_width(x.shape[2])

    def _require_width(self, width: int) -> None:
        if width < 1 or self._width not in (None, width):
            expected = self._width or "at least 1"
            raise MeasurementError(f"expected representations of width {expected}, found {width}")
        self._width = width


def _beside(estimate: Estimate, evaluated: Evaluated) -> Estimate:
    return replace(
        estimate,
        isotropic=evaluated.isotropic,
        basis=evaluated.basis,
        dropped=evaluated.dropped,
    )


def value_of(
    metric: str, x: Tensor, units: Tensor | None = None, mask: Tensor | None = None
) -> float:
    """One metric of one tensor, without an error bar.

    Args:
        metric: a name from ``METRICS``.
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: the metric is undefined on these data; the text says why.
    """
    layer = LayerStatistics([metric], grouped=units is not None)
    layer.update(x, torch.arange(len(x)) if units is None else units, mask)
    estimate = layer.estimates()[metric]
    if estimate.value is None:
        raise MeasurementError(f"{metric} is undefined: {estimate.undefined}")
    return estimate.value


def _batches(x: Tensor, valid: NDArray[np.bool_], units: NDArray[np.int64]) -> Iterator[Batch]:
    count, length, width = x.shape
    if length == 1 and width >= WIDE:
        if count:
            yield Batch(x, valid, units, wide=True)
        return
    entries = _ENTRIES.get(x.device.type, _ENTRIES_ELSEWHERE)
    step = max(1, entries // max(1, length * width))
    for start in range(0, count, step):
        part = slice(start, start + step)
        yield Batch(x[part], valid[part], units[part], wide=False)
