"""From a spectrum to a measured value: what all metrics of eigenvalues have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.statistics.accumulator import Evaluated, undefined
from isotest.statistics.isotropic import isotropic
from isotest.statistics.spectrum import centred, uncentred

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from isotest.statistics.sample import Sample
    from isotest.statistics.spectrum import Spectrum


def of_spectrum(
    sample: Sample,
    metric: Callable[[Spectrum], NDArray[np.float64]],
    *,
    about_mean: bool = True,
    note: str | None = None,
) -> Evaluated:
    """A function of the spectrum over everything, without each block, and on isotropic data.

    Args:
        sample: the representations.
        metric: from a spectrum of R rows to (R,) values, NaN where a row has only zeros.
        about_mean: of the covariance; if not, of the second moments.
        note: what else belongs to the basis of the value.
    """
    spectrum = sample.once(centred if about_mean else uncentred)
    if not spectrum.rank:
        return undefined(_why_nothing(int(spectrum.counts[0]), about_mean=about_mean))
    values = metric(spectrum)
    reference = isotropic(int(spectrum.counts[0]), spectrum.width, about_mean=about_mean)
    return Evaluated(
        float(values[0]),
        values[1:],
        isotropic=float(metric(reference).mean()),
        basis=f"{spectrum.basis}; {note}" if note else spectrum.basis,
    )


def _why_nothing(count: int, *, about_mean: bool) -> str:
    if not about_mean:
        return f"all {count} representations have zero length"
    if count == 1:
        return "there is one representation: nothing varies"
    return f"all {count} representations are the same, up to the rounding of their dtype"
