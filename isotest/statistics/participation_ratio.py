"""Participation ratio: how many directions carry the variance.

(Σ λ)² / Σ λ² with λ the eigenvalues of the covariance (Gao et al. 2017, "A theory of multineuronal
dimensionality, dynamics and measurement"). K equal eigenvalues among zeros give K.

Range 1 … min(N − 1, D). With few samples it is too small, 1/PR ≈ 1/PR_∞ + 1/N: isotropic data of
N = D give D/2. Undefined where all representations are the same. Copies weigh as often as they
occur; width 1 gives 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotest.statistics.accumulator import divide
from isotest.statistics.layer import value_of
from isotest.statistics.spectral import of_spectrum

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.statistics.accumulator import Evaluated
    from isotest.statistics.sample import Sample
    from isotest.statistics.spectrum import Spectrum


def evaluate(sample: Sample) -> Evaluated:
    """The metric over everything and without each block, both exact."""
    return of_spectrum(sample, ratios)


def ratios(spectrum: Spectrum) -> NDArray[np.float64]:
    """(R,) the participation ratio of each row, NaN of nothing but zeros."""
    return np.maximum(divide(spectrum.trace**2, spectrum.squares), 1.0)


def participation_ratio(
    x: Tensor, units: Tensor | None = None, mask: Tensor | None = None
) -> float:
    """(Σ λ)² / Σ λ² of the eigenvalues of the covariance.

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> x = torch.tensor([[[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]])
    >>> round(participation_ratio(x), 6)  # (9 + 1)² / (81 + 1)
    1.219512
    """
    return value_of("participation_ratio", x, units, mask)
