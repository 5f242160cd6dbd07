"""The definitions of SCIENCE.md as loops over pairs and sequences, sharing no code with isotest."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

Array = NDArray[np.float64]


@dataclass
class Sample:
    """Sequences (n_s, D) of valid representations and the unit of each."""

    sequences: list[Array]
    units: list[int]

    def without_block(self, block: int, blocks: int = 64) -> Sample:
        kept = [i for i, unit in enumerate(self.units) if unit % blocks != block]
        return Sample([self.sequences[i] for i in kept], [self.units[i] for i in kept])


def _rows(sample: Sample) -> list[tuple[Array, int, int]]:
    """(row, sequence, unit) of every representation that has a direction."""
    found = []
    for number, (sequence, unit) in enumerate(zip(sample.sequences, sample.units, strict=True)):
        for row in sequence:
            peak = np.abs(row).max()
            if peak > 0:
                scaled = row / peak
                found.append((scaled / math.sqrt(math.fsum(scaled**2)), number, unit))
    return found


def _mean_cosine(pairs: list[tuple[Array, Array]]) -> float | None:
    if not pairs:
        return None
    return math.fsum(math.fsum(a * b) for a, b in pairs) / len(pairs)


def anisotropy(sample: Sample) -> float | None:
    pairs = itertools.combinations(_rows(sample), 2)
    return _mean_cosine([(a, b) for (a, _, g), (b, _, h) in pairs if g != h])


def anisotropy_all(sample: Sample) -> float | None:
    return _mean_cosine(
        [(a, b) for (a, _, _), (b, _, _) in itertools.combinations(_rows(sample), 2)]
    )


def intra_similarity(sample: Sample) -> float | None:
    pairs = itertools.combinations(_rows(sample), 2)
    return _mean_cosine([(a, b) for (a, s, _), (b, t, _) in pairs if s == t])


def dimension_share(sample: Sample) -> float | None:
    pairs = [(a, b) for (a, _, g), (b, _, h) in itertools.combinations(_rows(sample), 2) if g != h]
    if not pairs:
        return None
    products = np.array([a * b for a, b in pairs])
    shares = [math.fsum(column) for column in products.T]
    return max(share / math.fsum(shares) for share in shares)


def centered_anisotropy(sample: Sample) -> float | None:
    """Less the first row before the mean is taken: far from the origin a mean loses its digits."""
    rows = _all(sample) - sample.sequences[0][0]
    mean = np.array([math.fsum(column) / len(rows) for column in rows.T])
    centred = [(s - sample.sequences[0][0]) - mean for s in sample.sequences]
    return anisotropy(Sample(centred, sample.units))


def _all(sample: Sample) -> Array:
    return np.concatenate(sample.sequences)


def _norms(sample: Sample) -> list[float]:
    return [math.hypot(*row) for row in _all(sample)]


def mean_norm(sample: Sample) -> float:
    norms = _norms(sample)
    return math.fsum(norms) / len(norms)


def norm_std(sample: Sample) -> float:
    mean = mean_norm(sample)
    norms = _norms(sample)
    return math.sqrt(math.fsum((norm - mean) ** 2 for norm in norms) / len(norms))


def drift_norm(sample: Sample) -> float:
    rows = _all(sample)
    return math.hypot(*(math.fsum(column) / len(rows) for column in rows.T))


def drift_share(sample: Sample) -> float:
    norms = _norms(sample)
    return drift_norm(sample) ** 2 / (math.fsum(norm**2 for norm in norms) / len(norms))


def massive(sample: Sample) -> float:
    return max(abs(float(entry)) for entry in _all(sample).ravel())


def massive_ratio(sample: Sample) -> float:
    return max(
        float(np.abs(sequence).max() / np.median(np.abs(sequence))) for sequence in sample.sequences
    )


def _residual(sequence: Array) -> tuple[Array, Array]:
    mean = np.array([math.fsum(column) / len(sequence) for column in sequence.T])
    return sequence - mean, sequence


def _residuals(sample: Sample) -> list[float]:
    ratios = []
    for sequence in sample.sequences:
        if len(sequence) > 1:
            a, b = (math.hypot(*matrix.ravel()) for matrix in _residual(sequence))
            ratios.append(a / b)
    return ratios


def rank_residual(sample: Sample) -> float | None:
    ratios = _residuals(sample)
    return math.fsum(ratios) / len(ratios) if ratios else None


def rank_residual_std(sample: Sample) -> float | None:
    ratios = _residuals(sample)
    if not ratios:
        return None
    mean = math.fsum(ratios) / len(ratios)
    return math.sqrt(math.fsum((ratio - mean) ** 2 for ratio in ratios) / len(ratios))


def rank_residual_composite(sample: Sample) -> float | None:
    def norm(matrix: Array) -> float:
        one = max(math.fsum(np.abs(column)) for column in matrix.T)
        infinity = max(math.fsum(np.abs(row)) for row in matrix)
        return math.sqrt(one * infinity)

    ratios = []
    for sequence in sample.sequences:
        if len(sequence) > 1:
            a, b = (norm(matrix) for matrix in _residual(sequence))
            ratios.append(a / b)
    return math.fsum(ratios) / len(ratios) if ratios else None


def duplicate_share(sample: Sample) -> float:
    rows = _all(sample)
    return 1 - len({row.tobytes() for row in rows}) / len(rows)


STATISTICS = {
    function.__name__: function
    for function in (
        anisotropy,
        anisotropy_all,
        intra_similarity,
        centered_anisotropy,
        mean_norm,
        norm_std,
        drift_norm,
        drift_share,
        dimension_share,
        massive,
        massive_ratio,
        rank_residual,
        rank_residual_std,
        rank_residual_composite,
        duplicate_share,
    )
}


def standard_error(value: float, without: Sequence[float], sizes: Sequence[float]) -> float:
    """Busing, Meijer and van der Leeden 1999, as printed: through the jackknife estimate itself."""
    groups = len(sizes)
    n = sum(sizes)
    estimate = groups * value - sum((1 - m / n) * w for m, w in zip(sizes, without, strict=True))
    variance = 0.0
    for m, w in zip(sizes, without, strict=True):
        h = n / m
        variance += (h * value - (h - 1) * w - estimate) ** 2 / (h - 1)
    return math.sqrt(variance / groups)
