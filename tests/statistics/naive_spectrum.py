"""Spectra and what is made of them, from the definitions: SVD of whole matrices, loops over sums.

Shares no code with isotest.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable

Array = NDArray[np.float64]


def _singular(rows: Array) -> list[float]:
    found = np.linalg.svd(rows, compute_uv=False)
    return [float(value) for value in found if value > 1e-9 * found[0]]


def _about_mean(rows: Array) -> Array:
    away = rows - rows[0]
    centred: Array = away - np.array([math.fsum(column) / len(away) for column in away.T])
    return centred


def eigenvalues(rows: Array) -> list[float]:
    return [value**2 / len(rows) for value in _singular(_about_mean(rows))]


def _entropy_rank(singular: list[float]) -> float:
    total = math.fsum(singular)
    return math.exp(-math.fsum(s / total * math.log(s / total) for s in singular))


def effective_rank(rows: Array) -> float:
    return _entropy_rank(_singular(_about_mean(rows)))


def effective_rank_uncentered(rows: Array) -> float:
    return _entropy_rank(_singular(rows))


def participation_ratio(rows: Array) -> float:
    values = eigenvalues(rows)
    return math.fsum(values) ** 2 / math.fsum(value**2 for value in values)


def nesum(rows: Array) -> float:
    values = eigenvalues(rows)
    return math.fsum(value / max(values) for value in values)


def spectral_anisotropy(rows: Array) -> float:
    values = eigenvalues(rows)
    return max(values) / math.fsum(values)


def isoscore_of(covariance: Array) -> float:
    """The steps of Rudman et al. 2022, section 3, one by one."""
    width = len(covariance)
    values = np.linalg.svd(covariance, compute_uv=False)
    normalised = values / math.sqrt(math.fsum(values**2)) * math.sqrt(width)
    distance = math.sqrt(math.fsum((normalised - 1) ** 2))
    defect = distance / math.sqrt(2 * (width - math.sqrt(width)))
    share = (width - defect**2 * (width - math.sqrt(width))) ** 2 / width**2
    return (width * share - 1) / (width - 1)


def isoscore(rows: Array) -> float:
    return isoscore_of(np.cov(_about_mean(rows).T))


def isoscore_star(rows: Array) -> float:
    """With the covariance shrunk as a matrix, by the intensity of Chen et al. 2010, Eq. 23."""
    covariance = np.cov(_about_mean(rows).T, bias=True)
    n, p = rows.shape
    square = float(np.trace(covariance @ covariance))
    trace = float(np.trace(covariance))
    above = (1 - 2 / p) * square + trace**2
    below = (n + 1 - 2 / p) * (square - trace**2 / p)
    zeta = min(1.0, above / below) if below > 0 else 1.0
    return isoscore_of((1 - zeta) * covariance + zeta * trace / p * np.eye(p))


def alpha_req(rows: Array) -> float:
    """By numpy's fit of a straight line, whose weights are on residuals, not on their squares."""
    values = eigenvalues(rows)
    last = min(50, max(3, 3 * len(values) // 4))
    ranks = np.arange(1 + last // 5, last + 1)
    logs = np.log([values[rank - 1] for rank in ranks])
    return -float(np.polyfit(np.log(ranks), logs, 1, w=1 / np.sqrt(ranks))[0])


STATISTICS: dict[str, Callable[[Array], float]] = {
    function.__name__: function
    for function in (
        effective_rank,
        effective_rank_uncentered,
        participation_ratio,
        nesum,
        spectral_anisotropy,
        isoscore,
        isoscore_star,
        alpha_req,
    )
}
