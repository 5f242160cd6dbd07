"""Effective rank: over how many directions the singular values are spread.

Source: Roy and Vetterli 2007, exp(−Σ p_k log p_k) with p_k = σ_k / Σ σ and σ the singular values.
``effective_rank`` is of the centred representations; ``effective_rank_uncentered`` of the
representations as they are, as RankMe takes them (Garrido, Balestriero, Najman and LeCun 2023; they
add 1e-7 to each p_k, which is left out here). A common direction makes it smaller and is not seen
by the centred one.

Range 1 … min(N − 1, D), without centring min(N, D): 1 on a line. With N ≪ D isotropic data give
nearly N − 1, whatever D is. Undefined where all representations are the same (uncentred: zero).
Copies of a representation weigh as often as they occur; width 1 gives 1.
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

    Array = NDArray[np.float64]


def evaluate(sample: Sample) -> Evaluated:
    """``effective_rank`` over everything and without each block."""
    return of_spectrum(sample, _effective_rank)


def evaluate_uncentered(sample: Sample) -> Evaluated:
    """``effective_rank_uncentered`` over everything and without each block."""
    return of_spectrum(sample, _effective_rank, about_mean=False)


def _effective_rank(spectrum: Spectrum) -> Array:
    singular = np.sqrt(spectrum.values)
    shares = divide(singular, singular.sum(axis=1, keepdims=True))
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    ranks: Array = np.exp(-(shares * logs).sum(axis=1))
    return ranks


def effective_rank(x: Tensor, units: Tensor | None = None, mask: Tensor | None = None) -> float:
    """Effective rank of x_i − x̄: exp of the entropy of σ/Σσ.

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> round(effective_rank(torch.tensor([[[3.0, 1.0], [3.0, -1.0], [4.0, 0.0], [2.0, 0.0]]])), 6)
    2.0
    """
    return value_of("effective_rank", x, units, mask)


def effective_rank_uncentered(
    x: Tensor, units: Tensor | None = None, mask: Tensor | None = None
) -> float:
    """Effective rank of the x_i as they are: exp of the entropy of σ/Σσ.

    Args:
        x: (B, L, D) representations, any floating dtype.
        units: (B,) number of each sequence's independent unit; each sequence is its own without.
        mask: (B, L) bool, true where valid.

    Raises:
        MeasurementError: undefined on these data; the text says why.

    >>> import torch
    >>> round(effective_rank_uncentered(torch.tensor([[[3.0, 0.0], [0.0, 3.0]]])), 6)
    2.0
    """
    return value_of("effective_rank_uncentered", x, units, mask)
