"""How much of the variance the largest direction has: ``spectral_anisotropy``, ``nesum``.

``spectral_anisotropy`` is λ_max / Σ λ of the eigenvalues of the covariance (Razzhigaev et al.
2023), ``nesum`` its inverse, Σ λ / λ_max (He and Ozay 2022, whose λ_1 is the largest).
Both are blind to a common direction, by design: it is subtracted.

Range of ``spectral_anisotropy`` 1/min(N − 1, D) … 1, of ``nesum`` 1 … min(N − 1, D). Isotropic data
give λ_max ≈ (1 + √(D/N))² of the mean eigenvalue, not 1. Undefined where all representations are
the same. Copies weigh as often as they occur; width 1 gives 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.statistics.accumulator import divide
from isotest.statistics.layer import value_of
from isotest.statistics.spectral import of_spectrum

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.statistics.accumulator import Evaluated
    from isotest.statistics.sample import Sample
    from isotest.statistics.spectrum import Spectrum

    Array = NDArray[np.float64]


def evaluate_spectral_anisotropy(sample: Sample) -> Evaluated:
    """``spectral_anisotropy`` over everything and without each block."""
    return of_spectrum(sample, _largest_share)


def evaluate_nesum(sample: Sample) -> Evaluated:
    """``nesum`` over everything and without each block."""
    return of_spectrum(sample, _sum_by_largest)


def _largest_share(spectrum: Spectrum) -> Array:
    return divide(spectrum.values.max(axis=1), spectrum.trace)


def _sum_by_largest(spectrum: Spectrum) -> Array:
    return divide(spectrum.trace, spectrum.values.max(axis=1))


def spectral_anisotropy(
    x: Tensor, units: Tensor | None = None, mask: Tensor | None = None
) -> float:
    """λ_max / Σ λ of the eigenvalues of the covariance.

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> x = torch.tensor([[[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]])
    >>> round(spectral_anisotropy(x), 6)
    0.9
    """
    return value_of("spectral_anisotropy", x, units, mask)


def nesum(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """Σ λ / λ_max of the eigenvalues of the covariance.

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> x = torch.tensor([[[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]])
    >>> round(nesum(x), 6)
    1.111111
    """
    return value_of("nesum", x, units, mask)
