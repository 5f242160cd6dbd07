"""IsoScore and IsoScore*: how evenly the variance fills the space.

**IsoScore** (Rudman, Gillman, Rayne and Eickhoff 2022). The authors normalise the eigenvalues λ of
the covariance to length √D, take their distance from (1, …, 1) as the isotropy defect,
δ = ‖λ̂ − 1‖ / √(2(D − √D)), and rescale it to ((D − δ²(D − √D))² − D) / (D(D − 1)). Put together,
with the participation ratio PR = (Σ λ)²/Σ λ²,

    IsoScore = (PR − 1) / (D − 1).

**IsoScore*** (Rudman and Eickhoff 2023) is the same of a shrunk covariance, (1 − ζ) C + ζ C₀. The
authors pass C₀, the covariance of a bigger sample or the identity, and ζ. Here there is no bigger
sample and nothing is to be chosen: C₀ = (tr C / D) I, the identity in the unit of the data, and ζ
is the oracle approximating shrinkage intensity (Chen, Wiesel, Eldar and Hero 2010, Eq. 23),

    ζ = min(1, ((1 − 2/D) Σλ² + (Σλ)²) / ((N + 1 − 2/D) (Σλ² − (Σλ)²/D))),

which makes the mean squared error small for N independent Gaussian representations. Shrinking does
not change the trace, so the score follows from Σ λ, Σ λ² and ζ alone:

    Σ λ*² = (1 − ζ)² Σ λ² + (1 − (1 − ζ)²) (Σ λ)²/D.

Representations of one sequence depend on each other, so ζ is somewhat too small, and the score
between IsoScore and what independent representations would give.

Range 0 … 1: 0 on a line, 1 of a covariance that is a multiple of I. IsoScore of isotropic data is
below 1 unless N ≫ D (N = D: 0.5, 2 D: 0.67, 10 D: 0.91), IsoScore* near 1. Undefined where all
representations are the same, and in width 1, where no direction can be preferred. Copies weigh as
often as they occur.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotest.statistics.accumulator import divide, undefined
from isotest.statistics.layer import value_of
from isotest.statistics.participation_ratio import ratios
from isotest.statistics.spectral import of_spectrum

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.statistics.accumulator import Evaluated
    from isotest.statistics.sample import Sample
    from isotest.statistics.spectrum import Spectrum

    Array = NDArray[np.float64]

_ONE_DIMENSION = "in one dimension no direction can be preferred"


def evaluate(sample: Sample) -> Evaluated:
    """``isoscore`` over everything and without each block, both exact."""
    if sample.width == 1:
        return undefined(_ONE_DIMENSION, vacuous=True)
    return of_spectrum(sample, _score)


def evaluate_star(sample: Sample) -> Evaluated:
    """``isoscore_star`` over everything and without each block, both exact."""
    if sample.width == 1:
        return undefined(_ONE_DIMENSION, vacuous=True)
    return of_spectrum(sample, lambda spectrum: shrunk_score(spectrum, intensity(spectrum)))


def _score(spectrum: Spectrum) -> Array:
    scores: Array = (ratios(spectrum) - 1) / (spectrum.width - 1)
    return scores


def intensity(spectrum: Spectrum) -> Array:
    """(R,) how far towards a multiple of the identity each covariance is shrunk, ζ."""
    width, energy = spectrum.width, spectrum.trace**2
    uneven = spectrum.squares - energy / width
    estimated = (1 - 2 / width) * spectrum.squares + energy
    by = (spectrum.counts + 1 - 2 / width) * uneven
    # Nothing uneven, nothing to shrink: any intensity gives the same.
    zeta: Array = np.where(estimated < by, np.divide(estimated, by, where=by > 0, out=0 * by), 1.0)
    return zeta


def shrunk_score(spectrum: Spectrum, zeta: Array) -> Array:
    """(R,) IsoScore of each covariance shrunk by ``zeta`` towards (tr C / D) I."""
    kept = (1 - zeta) ** 2
    even = spectrum.trace**2 / spectrum.width
    squares = kept * spectrum.squares + (1 - kept) * even
    ratio = np.clip(divide(spectrum.trace**2, squares), 1.0, spectrum.width)
    scores: Array = (ratio - 1) / (spectrum.width - 1)
    return scores


def isoscore(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """((Σ λ)²/Σ λ² − 1) / (D − 1) of the eigenvalues of the covariance.

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> x = torch.tensor([[[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]])
    >>> round(isoscore(x), 6)
    0.219512
    """
    return value_of("isoscore", x, units, mask)


def isoscore_star(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """IsoScore of the covariance, shrunk towards a multiple of the identity.

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> x = torch.tensor([[[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]])
    >>> round(isoscore_star(x), 6)  # ζ = 10²/(4 · (82 − 10²/2)) = 0.78125
    0.94057
    """
    return value_of("isoscore_star", x, units, mask)
