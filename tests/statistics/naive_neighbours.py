"""Neighbours and directions as loops over pairs, sharing no code with isotest."""

from __future__ import annotations

import itertools
import math
import sys
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tests.statistics.naive import Sample

Array = NDArray[np.float64]


def _all(sample: Sample) -> list[Array]:
    return [row for sequence in sample.sequences for row in sequence]


def uniformity(sample: Sample) -> float | None:
    rows = [row / np.abs(row).max() for row in _all(sample) if row.any()]
    units = [row / math.sqrt(math.fsum(row**2)) for row in rows]
    kernel = [math.exp(-2 * math.fsum((a - b) ** 2)) for a, b in itertools.combinations(units, 2)]
    return math.log(math.fsum(kernel) / len(kernel)) if kernel else None


def twonn(sample: Sample) -> float | None:
    rows = [np.array(row) for row in {tuple(row) for row in _all(sample)}]
    if len(rows) < 5:
        return None
    logs = []
    for row in rows:
        squares = sorted(math.fsum((row - other) ** 2) for other in rows if other is not row)
        logs.append(math.log(squares[1] / squares[0]) / 2)
    logs.sort()
    fitted = int(0.9 * len(rows))
    heights = [-math.log(1 - i / len(rows)) for i in range(1, fitted + 1)]
    over = math.fsum(x * y for x, y in zip(logs, heights, strict=False))
    under = math.fsum(x**2 for x in logs[:fitted])
    return over / under if under else None


def eigenvectors(sample: Sample) -> list[Array]:
    """Those of XᵀX, each with both signs."""
    rows = np.stack(_all(sample))
    _, vectors = np.linalg.eigh(rows.T @ rows)
    return [sign * vectors[:, k] for k in range(rows.shape[1]) for sign in (1, -1)]


def _log_sum_exp(values: list[float]) -> float:
    largest = max(values)
    return largest + math.log(math.fsum(math.exp(value - largest) for value in values))


def partition_isotropy(sample: Sample, directions: list[Array] | None = None) -> float | None:
    directions = eigenvectors(sample) if directions is None else directions
    rows = _all(sample)
    if not rows:
        return None
    logs = [_log_sum_exp([math.fsum(row * c) for row in rows]) for c in directions]
    smallest = min(logs) - max(logs)
    return math.exp(smallest) if smallest > math.log(sys.float_info.min) else None


STATISTICS = {"uniformity": uniformity, "twonn": twonn}
"""By name, those whose error bars leave a block out of everything."""
