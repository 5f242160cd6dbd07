"""The spectra that isotropic data, N(0, I_D), of the same number and width give.

Few samples make any spectrum look uneven: with N = D the covariance of isotropic data has an
IsoScore of about one half. So what a metric gives on such data stands beside what it gives on a
layer's.

Singular values of a Gaussian n × D matrix are drawn without drawing the matrix: they have the
distribution of those of a bidiagonal one, whose entries are independent with the chi distributions
of max(n, D), max(n, D) − 1, … degrees of freedom on the diagonal and of min(n, D) − 1, …, 1 beside
it (Dumitriu and Edelman 2002, Theorem 3.1, β = 1). Subtracting the mean of N rows leaves as much as
n = N − 1 rows that are not centred.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from isotest.statistics.spectrum import Spectrum

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SEED = 20021
_EIGENVALUES = 4096
"""Drawn in all, for means of little spread: small matrices are drawn more often."""
_MOST, _LEAST = 64, 2


def isotropic(count: int, width: int, *, about_mean: bool) -> Spectrum:
    """Spectra of a few samples of N representations of N(0, I_D), one in each row; always the same.

    Args:
        count: N, at least 2 about the mean, else at least 1.
        width: D.
        about_mean: of the covariance; if not, of the second moments.

    >>> spectrum = isotropic(1000, 3, about_mean=True)
    >>> spectrum.values.mean().round(2)
    np.float64(1.0)
    """
    return _drawn(count - 1 if about_mean else count, count, width)


@lru_cache(maxsize=256)
def _drawn(freedom: int, count: int, width: int) -> Spectrum:
    smaller, larger = sorted((freedom, width))
    draws = min(_MOST, max(_LEAST, _EIGENVALUES // smaller))
    generator = np.random.default_rng((_SEED, freedom, width))
    values = np.array([_eigenvalues(smaller, larger, generator) for _ in range(draws)]) / count
    counts = np.full(draws, float(count))
    return Spectrum(values, (values**2).sum(axis=1), counts, width, basis="isotropic data")


def _eigenvalues(smaller: int, larger: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """(smaller,) squared singular values of a Gaussian matrix of this shape, largest first."""
    from scipy.linalg import eigvalsh_tridiagonal

    diagonal = generator.chisquare(larger - np.arange(smaller))
    beside = generator.chisquare(np.arange(smaller - 1, 0, -1))
    # BᵀB of the bidiagonal B is tridiagonal.
    squares = diagonal + np.append(0.0, beside)
    products = np.sqrt(diagonal[:-1] * beside)
    ascending = eigvalsh_tridiagonal(squares, products, lapack_driver="sterf")
    return np.maximum(ascending[::-1].astype(np.float64), 0.0)
