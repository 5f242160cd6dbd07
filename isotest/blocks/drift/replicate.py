"""One replicate of the drift experiment: one block, one draw of sequences and bias, every norm."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from isotest.attention import heads_of
from isotest.blocks.drift.attention import BlockAttention, Expectations
from isotest.errors import MeasurementError, NonFiniteError
from isotest.estimate import Estimate
from isotest.statistics.attention.accumulator import SelfAttention
from isotest.statistics.blocks import BLOCKS
from isotest.statistics.layer import LayerStatistics
from isotest.statistics.registry import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.attention_heads import AttentionHeads, AttentionKind
    from isotest.blocks.drift.block import StudiedBlock
    from isotest.data.embeddings import Draw

    Array = NDArray[np.float64]

SCORES = ("score_offset", "score_sign")
"""Metrics of the experiment that follow from the mean score of each replicate."""

GAPS = ("query_expectation_gap", "key_expectation_gap")
"""Metrics of the experiment that follow from its mean queries and keys."""

_SCORE_MEAN = "attention_score_mean"
_ONE = np.zeros(1, np.int64)
"""Units of one sequence."""


@dataclass(frozen=True)
class Side:
    """The representations on one side of the block, at one norm, in one replicate.

    Attributes:
        representations: how many.
        zero_length: how many of them have zero length.
        estimates: metric to estimate; without error bars, which are over replicates.
        attention: each head by itself, behind the block.
    """

    representations: int
    zero_length: int
    estimates: Mapping[str, Estimate]
    attention: Mapping[AttentionKind, AttentionHeads]


def is_of_attention(metric: str) -> bool:
    """Whether a metric is about attention, which there is none of in front of a block.

    >>> is_of_attention("attention_row_max"), is_of_attention("mean_norm")
    (True, False)
    """
    found = METRICS[metric]
    return found.experiment is not None or found.accumulator.startswith("isotest.statistics.attent")


class Replicate:
    """One block with its draw.

    Args:
        block: in eval mode.
        draw: what it is fed.
        metrics: what is measured.
        batch_size: sequences per forward pass; the numbers do not depend on it.
        number: which replicate it is, for messages.
        name: of the entry, for messages.
        progress: called after each batch with the number of its sequences.
    """

    def __init__(
        self,
        block: StudiedBlock,
        draw: Draw,
        metrics: Sequence[str],
        *,
        batch_size: int,
        number: int,
        name: str,
        progress: Callable[[int], object],
    ) -> None:
        self._block = block
        self._draw = draw
        self._metrics = tuple(metrics)
        self._batch_size = batch_size
        self._number = number
        self._name = name
        self._progress = progress
        self._attention: BlockAttention | None = None
        # What it does wrong is to be said here, not in the midst of a look at its attention.
        self._run(self._placed(np.zeros((1, 2, block.width), np.float32)), _ONE, self._of("zeros"))
        if self._attends:
            self._attention = BlockAttention(block.loaded(), name)

    def at(self, norm: float) -> tuple[Side, Side]:
        """Input and output with a bias of this norm.

        Raises:
            NonFiniteError: NaN or an infinity in front of the block, in it or behind it.
            MeasurementError: the block fails, or its output has another shape.
        """
        biased = self._draw.biased(norm)
        before = LayerStatistics(self._geometry, grouped=False)
        after = LayerStatistics([*self._geometry, *self._of_attention], grouped=False)
        expectations = Expectations()
        part = after.part(SelfAttention)
        # Units of one block of the jackknife: error bars are over replicates, not over sequences.
        units = np.arange(len(biased)) * BLOCKS
        if self._attention is None:
            self._pass(biased, units, norm, before, after, part, expectations)
        else:
            with self._attention.hooked():
                self._pass(biased, units, norm, before, after, part, expectations)
        found = after.estimates()
        gaps = self._gaps(biased, norm, expectations)
        own = {**_scores(found.get(_SCORE_MEAN)), **gaps}
        nothing = Estimate(None, undefined="no attention in front of the block", vacuous=True)
        behind = {name: found[name] if name in found else own[name] for name in self._metrics}
        in_front = before.estimates() if self._geometry else {}
        return (
            _side(before, {name: in_front.get(name, nothing) for name in self._metrics}),
            _side(after, behind),
        )

    def _pass(
        self,
        biased: NDArray[np.float32],
        units: NDArray[np.int64],
        norm: float,
        before: LayerStatistics,
        after: LayerStatistics,
        part: SelfAttention | None,
        expectations: Expectations,
    ) -> None:
        for start in range(0, len(biased), self._batch_size):
            chosen = slice(start, start + self._batch_size)
            where = self._where(norm, start, min(start + self._batch_size, len(biased)))
            x = self._placed(biased[chosen])
            own = units[chosen]
            try:
                before.update(x, torch.from_numpy(own))
            except NonFiniteError as error:
                raise NonFiniteError(f"{self._name!r}, {where}: input: {error}") from None
            output = self._run(x, own, where, part=part, expectations=expectations)
            try:
                after.update(output, torch.from_numpy(own))
            except NonFiniteError as error:
                raise NonFiniteError(f"{self._name!r}, {where}: output: {error}") from None
            self._progress(len(own))

    def _run(
        self,
        x: Tensor,
        units: NDArray[np.int64],
        where: str,
        *,
        part: SelfAttention | None = None,
        expectations: Expectations | None = None,
    ) -> Tensor:
        if self._attention is not None:
            self._attention.expect(units, where, part=part, expectations=expectations)
        try:
            return self._block.run(x)
        except NonFiniteError:
            raise
        except MeasurementError as error:
            raise MeasurementError(f"{self._name!r}, {where}: {error}") from error

    def _gaps(
        self, biased: NDArray[np.float32], norm: float, seen: Expectations
    ) -> dict[str, Estimate]:
        """How far the mean query and key are from those of the mean input."""
        attention = self._attention
        if attention is None or not self._wants(GAPS):
            return {}
        if not seen.counts:
            if attention.refused is None:
                nothing = Estimate(None, undefined="no attention at this layer", vacuous=True)
            else:
                nothing = Estimate(None, undefined=f"not observable: {attention.refused}")
            return dict.fromkeys(GAPS, nothing)
        mean = biased.reshape(-1, biased.shape[2]).mean(axis=0, dtype=np.float64)
        constant = np.tile(mean.astype(np.float32), (1, biased.shape[1], 1))
        where = f"{self._where(norm)}, the mean input"
        of_mean = self._expected(self._placed(constant), where)
        if self._normalises:
            nothing = Estimate(
                None,
                undefined="queries and keys are no affine map of what enters the block: it "
                "normalises first",
                vacuous=True,
            )
            return dict.fromkeys(GAPS, nothing)
        return {
            GAPS[0]: _distance(seen.mean_query(), of_mean.mean_query()),
            GAPS[1]: _distance(seen.mean_key(), of_mean.mean_key()),
        }

    def _expected(self, x: Tensor, where: str) -> Expectations:
        assert self._attention is not None
        expectations = Expectations()
        with self._attention.hooked():
            self._run(x, _ONE, where, expectations=expectations)
        return expectations

    @cached_property
    def _normalises(self) -> bool:
        """Whether queries stay the same when the input is doubled."""
        where = self._of("a random input")
        generator = np.random.default_rng(0)
        probe = generator.standard_normal((1, 2, self._block.width), dtype=np.float32) * 4
        queries = [
            self._expected(self._placed(probe * factor), where).mean_query()
            for factor in (np.float32(1), np.float32(2))
        ]
        return bool(np.linalg.norm(queries[1] - queries[0]) < 0.01 * np.linalg.norm(queries[0]))

    @property
    def _geometry(self) -> tuple[str, ...]:
        return tuple(name for name in self._metrics if not is_of_attention(name))

    @property
    def _of_attention(self) -> tuple[str, ...]:
        names = [
            name
            for name in self._metrics
            if is_of_attention(name) and METRICS[name].experiment is None
        ]
        if self._wants(SCORES) and _SCORE_MEAN not in names:
            names.append(_SCORE_MEAN)
        return tuple(names)

    @property
    def _attends(self) -> bool:
        return any(is_of_attention(name) for name in self._metrics)

    def _wants(self, names: Sequence[str]) -> bool:
        return any(name in self._metrics for name in names)

    def _placed(self, x: NDArray[np.float32]) -> Tensor:
        return torch.from_numpy(x).to(device=self._block.device, dtype=self._block.dtype)

    def _where(self, norm: float, start: int | None = None, end: int | None = None) -> str:
        sequences = "" if start is None else f", sequences {start}–{(end or 1) - 1}"
        return self._of(f"N = {norm:g}{sequences}")

    def _of(self, what: str) -> str:
        return f"replicate {self._number}, {what}"


def _side(sums: LayerStatistics, estimates: Mapping[str, Estimate]) -> Side:
    return Side(sums.representations, sums.zero_length, estimates, heads_of(sums))


def _scores(mean: Estimate | None) -> dict[str, Estimate]:
    if mean is None or mean.value is None:
        return {} if mean is None else dict.fromkeys(SCORES, mean)
    return {
        "score_offset": Estimate(abs(mean.value)),
        "score_sign": Estimate(float(mean.value > 0)),
    }


def _distance(found: Array, expected: Array) -> Estimate:
    length = float(np.linalg.norm(found))
    if length == 0.0:
        return Estimate(None, undefined="the mean has zero length", vacuous=True)
    return Estimate(float(np.linalg.norm(found - expected)) / length)
