"""α-ReQ: how fast the spectrum decays.

Source: Agrawal, Mondal, Ghosh and Richards 2022: λ_k ∝ k^−α. α is minus the slope of log λ_k
against log k, fitted by least squares with weights 1/k (those of Stringer et al. 2019, whose fit
the authors use): each octave of ranks weighs the same.

**The window.** The first eigenvalues do not follow the law and the last are what few samples make
of them. The authors fit ranks 11 to 50; so does this where 67 eigenvalues or more are above
rounding. Of r < 67 the last rank is max(3, ⌊3r/4⌋) and the first 1 + ⌊last/5⌋. The window is that
of everything, also without a block and on isotropic data, and stands in the basis of the value.

Range 0 … ∞: isotropic data give a little more than 0, about 1 is what the authors find best, larger
means that few directions carry the variance. Undefined where fewer than three eigenvalues are above
rounding: rank one and two, constant rows, fewer than 4 representations. Copies weigh as often as
they occur.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotest.statistics.accumulator import undefined
from isotest.statistics.layer import value_of
from isotest.statistics.spectral import of_spectrum
from isotest.statistics.spectrum import centred

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.statistics.accumulator import Evaluated
    from isotest.statistics.sample import Sample
    from isotest.statistics.spectrum import Spectrum

    Array = NDArray[np.float64]

_LAST = 50
_FEWEST = 3


def evaluate(sample: Sample) -> Evaluated:
    """The metric over everything and without each block."""
    rank = sample.once(centred).rank
    if rank < _FEWEST:
        return undefined(
            f"a slope needs {_FEWEST} eigenvalues above rounding, there are {rank}",
            vacuous=sample.width < _FEWEST,
        )
    first, last = window(rank)
    return of_spectrum(
        sample,
        lambda spectrum: _decay(spectrum, first, last),
        note=f"ranks {first} to {last}",
    )


def window(rank: int) -> tuple[int, int]:
    """The first and the last rank that are fitted, of ``rank`` eigenvalues above rounding.

    >>> window(768), window(64), window(3)
    ((11, 50), (10, 48), (1, 3))
    """
    last = min(_LAST, max(_FEWEST, 3 * rank // 4))
    return 1 + last // 5, last


def _decay(spectrum: Spectrum, first: int, last: int) -> Array:
    ranks = np.arange(first, last + 1)
    weights = 1.0 / ranks
    weights /= weights.sum()
    position = np.log(ranks)
    position = position - weights @ position
    values = spectrum.values[:, first - 1 : last]
    # A rank that is lost without a block leaves nothing to fit there.
    logs = np.log(values, out=np.full_like(values, np.nan), where=values > 0)
    slopes: Array = logs @ (weights * position) / (weights @ position**2)
    return np.maximum(-slopes, 0.0)


def alpha_req(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """Minus the slope of log λ_k against log k of the eigenvalues of the covariance.

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> axes = torch.diag(torch.arange(1, 9) ** -0.75)  # λ_k ∝ k^−1.5
    >>> round(alpha_req(torch.stack([axes, -axes])), 4)
    1.5
    """
    return value_of("alpha_req", x, units, mask)
