"""Attention of one layer: scores, softmax rows, queries and keys, from any number of batches.

Every metric is a mean over sequences and then over heads of what one head shows of one sequence
(:mod:`isotest.statistics.attention.maps`), all heads of all attention modules of the layer counting
alike; a module that runs several times for a layer shows the sequence several times. Scores are
``scale · q·kᵀ`` with what is added as bias; they and their softmax run over the keys that a query
may see, n of them. Tokens that a tokenizer or a model adds are seen, so they count; padding does
not. With s a score, p its softmax, r a query's row:

===================== =================================================================
score_mean            mean s of the head
score_std             √ of the mean over heads and sequences of (s − score_mean)²
score_q05, _median,   quantile of the head's s, interpolated between order statistics
_q95
row_max, _median,     mean over rows of the largest, median, smallest p of the row
_min
sequence_max, _min    largest, smallest p of the head
entropy               mean over rows with n > 1 of −Σ p log p ÷ log n, 0 … 1
entropy_lowest        the mean entropy of the head that has the lowest one
query_norm, key_norm  mean length
query_cosine,         (‖Σu‖² − m) / (m (m − 1)) of the m unit vectors u of the head: the
key_cosine            mean cosine over pairs within the sequence, −1 … 1
===================== =================================================================

Scores and rows are those of at most ``ROWS`` queries of a sequence. A row that sees one key has p
= 1; it is left out of the entropy and counts everywhere else. Constant scores give entropy 1, all p
= 1/n and score_std 0. Keys count for key_norm and key_cosine if some query sees them; vectors of
zero length have no direction, and sequences with fewer than two directions have no cosine.
``isotropic`` holds what uniform attention gives: entropy 1, p = 1/n, and 0 for mean scores and
cosines.

Source: Godey, de la Clergerie and Sagot 2023 (scores, rows, queries and keys); Zhai et al. 2023
(entropy collapse).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from isotest.attention_heads import AttentionHeads
from isotest.statistics.accumulator import Evaluated, divide, totals, undefined
from isotest.statistics.attention.histogram import BINS
from isotest.statistics.attention.maps import ROWS
from isotest.statistics.attention.rows import QUANTILES
from isotest.statistics.blocks import BLOCKS, block_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from isotest.statistics.attention.maps import Maps
    from isotest.statistics.batch import Batch

    Array = NDArray[np.float64]

UNIFORM: Mapping[str, float | str] = {
    "entropy": 1.0,
    "entropy_lowest": 1.0,
    "score_mean": 0.0,
    "query_cosine": 0.0,
    "key_cosine": 0.0,
    "row_max": "uniform",
    "row_median": "uniform",
    "row_min": "uniform",
    "sequence_max": "uniform_max",
    "sequence_min": "uniform_min",
}
"""What uniform attention gives: a number, or the name of what says so."""


@dataclass
class _Means:
    """Means over sequences by block and head, and the spread around them, which merge exactly."""

    heads: int
    counts: Array = field(init=False)
    means: Array = field(init=False)
    spread: Array = field(init=False)

    def __post_init__(self) -> None:
        self.counts = np.zeros((BLOCKS, self.heads))
        self.means = np.zeros((BLOCKS, self.heads))
        self.spread = np.zeros((BLOCKS, self.heads))

    def add(self, block: int, values: Array) -> None:
        """Add (H,) values of one sequence; NaN: none."""
        here = ~np.isnan(values)
        self._combine(block, here.astype(float), np.where(here, values, 0), np.zeros(self.heads))

    def merge(self, other: Self) -> None:
        """Add everything ``other`` has seen."""
        self._combine(slice(None), other.counts, other.means, other.spread)

    def _combine(self, block: int | slice, counts: Array, means: Array, spread: Array) -> None:
        total = self.counts[block] + counts
        share = np.divide(counts, total, out=np.zeros_like(total), where=total > 0)
        difference = means - self.means[block]
        self.spread[block] += spread + difference**2 * self.counts[block] * share
        self.means[block] += difference * share
        self.counts[block] = total


@dataclass
class _Module:
    """One attention module's heads."""

    means: dict[str, _Means]
    histogram: NDArray[np.int64]

    @classmethod
    def empty(cls, heads: Mapping[str, int]) -> _Module:
        """Without data; ``heads``: of each of its numbers, how many heads have one."""
        return cls({name: _Means(count) for name, count in heads.items()}, np.zeros(BINS, np.int64))


class Attention:
    """The metrics of one kind of attention, self or cross, at one layer.

    Of the two ways in which it takes in data, :meth:`update` sees representations, which say
    nothing of attention; :meth:`observe` sees the calls.
    """

    prefix: ClassVar[str]
    kind: ClassVar[str]

    def __init__(self, metrics: Collection[str], *, grouped: bool) -> None:
        del grouped  # means over sequences, errors over blocks
        self._metrics = tuple(metrics)
        self._modules: dict[str, _Module] = {}
        self._thinned = False
        self._refused: str | None = None

    @property
    def wants_quantiles(self) -> bool:
        """Whether any wanted metric is a quantile of scores."""
        return any(name.removeprefix(self.prefix) in QUANTILES for name in self._metrics)

    def update(self, batch: Batch) -> None:
        """Nothing: representations say nothing of attention."""

    def observe(self, path: str, maps: Maps, units: NDArray[np.int64]) -> None:
        """Take in one call of the module at ``path``; ``units``: (N,) of its sequences."""
        module = self._modules.get(path)
        if module is None:
            heads = {name: values.shape[1] for name, values in maps.values.items()}
            module = self._modules[path] = _Module.empty(heads)
        blocks = block_of(units)
        for name, values in maps.values.items():
            means = module.means[name]
            for block, of_sequence in zip(blocks.tolist(), values, strict=True):
                means.add(block, of_sequence)
        module.histogram += maps.histogram.sum(axis=0)
        self._thinned |= maps.thinned

    def refuse(self, reason: str) -> None:
        """Some or all of the layer's attention cannot be observed."""
        self._refused = self._refused or reason

    def merge(self, other: Self) -> None:
        """Add everything ``other`` has seen."""
        for path, theirs in other._modules.items():
            module = self._modules.get(path)
            if module is None:
                heads = {name: means.heads for name, means in theirs.means.items()}
                module = self._modules[path] = _Module.empty(heads)
            for name, means in theirs.means.items():
                module.means[name].merge(means)
            module.histogram += theirs.histogram
        self._thinned |= other._thinned
        self._refused = self._refused or other._refused

    def evaluate(self, blocks: NDArray[np.int64]) -> Mapping[str, Evaluated]:
        """The wanted metrics over everything and without each block."""
        if self._refused is not None:
            reason = undefined(f"not observable: {self._refused}")
            return dict.fromkeys(self._metrics, reason)
        if not self._modules:
            nothing = undefined(f"no {self.kind} at this layer", vacuous=True)
            return dict.fromkeys(self._metrics, nothing)
        return {
            name: self._evaluate(name.removeprefix(self.prefix), blocks) for name in self._metrics
        }

    def heads(self) -> AttentionHeads | None:
        """Each head by itself; ``None`` where nothing was observed."""
        if self._refused is not None or not self._modules:
            return None
        everything = np.arange(BLOCKS)
        histogram = np.zeros(BINS, np.int64)
        for module in self._modules.values():
            histogram += module.histogram
        entropy = self._by_head("entropy", everything)[0]
        return AttentionHeads(
            modules=tuple(
                (path, module.means["entropy"].heads) for path, module in self._modules.items()
            ),
            entropy=tuple(None if np.isnan(value) else float(value) for value in entropy),
            row_max=tuple(self._by_head("row_max", everything)[0].tolist()),
            histogram=tuple(histogram.tolist()),
        )

    def _evaluate(self, name: str, blocks: NDArray[np.int64]) -> Evaluated:
        if name == "score_std":
            values = self._score_std(blocks)
        elif name == "entropy_lowest":
            values = np.fmin.reduce(self._by_head("entropy", blocks), axis=1)
        else:
            values = _over_heads(self._by_head(name, blocks))
        if np.isnan(values[0]):
            return self._nothing(name, blocks)
        thinned = self._thinned and not name.startswith(("query", "key"))
        return Evaluated(
            float(values[0]),
            values[1:],
            isotropic=self._uniform(name, blocks),
            basis=f"at most {ROWS} queries of each sequence, evenly spaced" if thinned else None,
        )

    def _nothing(self, name: str, blocks: NDArray[np.int64]) -> Evaluated:
        """Why a metric of attention that was observed has no value."""
        if name.startswith("entropy"):
            return undefined("no query may see more than one key", vacuous=True)
        vectors = {"query_cosine": "query", "key_cosine": "key"}.get(name)
        if vectors is None:
            return undefined("no query that counts may see a key")
        if not np.nan_to_num(self._by_head(f"{vectors}_norm", blocks)[0]).any():
            return undefined(f"every {vectors} has zero length")
        return undefined(f"no sequence has two of these: {vectors} with a direction", vacuous=True)

    def _uniform(self, name: str, blocks: NDArray[np.int64]) -> float | None:
        of = UNIFORM.get(name)
        if of is None or isinstance(of, float):
            return of
        return float(_over_heads(self._by_head(of, blocks))[0])

    def _by_head(self, name: str, blocks: NDArray[np.int64]) -> Array:
        """(1 + G, H) mean over sequences of each head: of all blocks, then without each."""
        parts = []
        for module in self._modules.values():
            means = module.means[name]
            counts = means.counts[blocks]
            total = totals(counts)
            parts.append(divide(totals(counts * means.means[blocks]), total))
        return np.concatenate(parts, axis=1)

    def _score_std(self, blocks: NDArray[np.int64]) -> Array:
        """(1 + G,) √ of the variance within heads' maps and between them."""
        within = self._by_head("score_variance", blocks)
        means = self._by_head("score_mean", blocks)
        between: list[Array] = []
        for module in self._modules.values():
            own = module.means["score_mean"]
            counts = own.counts[blocks]
            # About the mean over everything, from which no block's is far: no digits are lost.
            start = sum(part.shape[1] for part in between)
            offset = means[:1, start : start + own.heads]
            moved = own.means[blocks] - offset
            total = totals(counts)
            first = divide(totals(counts * moved), total)
            second = divide(totals(own.spread[blocks] + counts * moved**2), total)
            between.append(second - first**2)
        about = means - _over_heads(means)[:, None]
        variance = _over_heads(within + np.concatenate(between, axis=1) + about**2)
        result: Array = np.sqrt(np.maximum(variance, 0))
        return result


class SelfAttention(Attention):
    """Attention whose keys are of the queries' own sequence: metrics ``attention_…``."""

    prefix = "attention_"
    kind = "attention"


class CrossAttention(Attention):
    """Attention whose keys are of another sequence: metrics ``cross_attention_…``."""

    prefix = "cross_attention_"
    kind = "cross-attention"


def _over_heads(values: Array) -> Array:
    """(1 + G,) mean over the heads that have a value."""
    here = ~np.isnan(values)
    return divide(np.where(here, values, 0).sum(axis=1), here.sum(axis=1, dtype=np.float64))
