"""Replicates of an experiment: each is a block of the profile, so that error bars are over them."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from isotest.estimate import Estimate
from isotest.statistics.jackknife import standard_error

if TYPE_CHECKING:
    from collections.abc import Sequence


def mean_of(estimates: Sequence[Estimate]) -> Estimate:
    """The mean over replicates, each a block of its own; undefined where any of them is.

    >>> mean_of([Estimate(1.0), Estimate(3.0)])  # sd / √2 = √2 / √2
    ... # doctest: +NORMALIZE_WHITESPACE
    Estimate(value=2.0, se=1.0, blocks=(1.0, 3.0), undefined=None, vacuous=False, isotropic=None,
             basis=None, dropped=None)
    """
    missing = [
        (number, estimate) for number, estimate in enumerate(estimates) if estimate.value is None
    ]
    if missing:
        number, first = missing[0]
        everywhere = len(missing) == len(estimates)
        return Estimate(
            None,
            undefined=first.undefined if everywhere else f"replicate {number}: {first.undefined}",
            vacuous=all(estimate.vacuous for _, estimate in missing),
        )
    values = tuple(estimate.value for estimate in estimates if estimate.value is not None)
    isotropic = [each.isotropic for each in estimates if each.isotropic is not None]
    dropped = [each.dropped for each in estimates if each.dropped is not None]
    several = len(values) > 1
    return Estimate(
        fmean(values),
        standard_error(values, [1.0] * len(values)),
        values if several else (),
        isotropic=fmean(isotropic) if len(isotropic) == len(values) else None,
        basis=estimates[0].basis,
        dropped=sum(dropped) if dropped else None,
    )
