"""What moves a spectrum: copies, collapse within sequences, and concentration in few directions.

A centred spectrum does not see drift. What it can be at best depends on how the variance is
distributed: a share ω within sequences, which can fill k = min(N − 1, D) dimensions, the rest
between S sequences, which fill m = min(S − 1, D) of them, no more evenly than S − 1 random vectors
do; and a share e in the one direction in which copies of one representation, a share p of all,
differ from the others: e = p/(1 + p), with p² the share of pairs that are copies. With M the
metric's value for the eigenvalues

    λ = (1 − e)·[ω/k in each of k dimensions, and (1 − ω)·q/m more in m of them], and e in one,

q the quantiles of the law of Marchenko and Pastur (1967) with the ratio m / max(S − 1, D), the
metric V is g(V) = g(M) + c, and c is how concentrated the spectrum is beyond that. g is the scale
on which such parts add: log V of an effective rank; λ_max/Σλ itself, and 1/V of its inverse,
``nesum``; and Σλ²/(Σλ)², which is 1/V of the participation ratio and 1/(1 + (D − 1)·V) of the
isoscores. Between baseline and now, copies change e, and where they are within sequences ω, by a
factor 1 − √P_w; within-sequence collapse changes the rest of ω. The uncentred effective rank has
one more direction, with the share D of the energy, which rogue dimensions and drift change. The
change of g(M) is shared out among them by Shapley values; that of c is spectral concentration.

P and P_w are those of :mod:`.energy`; ω without copies is within/(between + within), its pots of
lengths. A level, without a baseline, is explained as the change from isotropic data of the same
number and width, for which e = 0 and ω = 1. A rogue dimension that varies is a direction of the
spectrum like any other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from isotest.gate.diagnosis.attribution import Attribution
from isotest.gate.diagnosis.causes import CONCENTRATION, DRIFT, DUPLICATES, ROGUE, WITHIN
from isotest.gate.diagnosis.energy import copied_within, of_lengths
from isotest.gate.diagnosis.reading import measured, rogue, share, value
from isotest.gate.diagnosis.shapley import shapley

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from isotest.profile import LayerProfile

    Array = NDArray[np.float64]

SPECTRAL = (
    "effective_rank",
    "effective_rank_uncentered",
    "participation_ratio",
    "nesum",
    "spectral_anisotropy",
    "isoscore",
    "isoscore_star",
)
_UNCENTRED = "effective_rank_uncentered"


@dataclass(frozen=True)
class Shape:
    """How the energy is distributed.

    Attributes:
        copies: e, the share of the variance between copies of one representation and all others.
        within: ω, the share within sequences, as it would be without copies in them.
        copied: the share of ω that such copies take away.
        rogue, drift: shares of the energy that the mean has along rogue dimensions, and otherwise;
            0 for centred spectra.
    """

    copies: float = 0.0
    within: float = 1.0
    copied: float = 0.0
    rogue: float = 0.0
    drift: float = 0.0


EVEN = Shape()
"""Of isotropic data."""


def attribute(
    metric: str, now: LayerProfile, base: LayerProfile | None, sequences: int
) -> Attribution | None:
    """Share out the change of a spectral metric, or without ``base`` what isotropic data lack.

    Args:
        metric: one of ``SPECTRAL``.
        now: the layer as measured.
        base: the same layer of the baseline.
        sequences: S.

    Returns:
        ``None`` where the metric has no value on a side.
    """
    after = value(now, metric)
    before = now.estimates[metric].isotropic if base is None else value(base, metric)
    if after is None or before is None:
        return None
    sides = [now] if base is None else [base, now]
    several = measured("rogue_share", *sides) and measured("rogue_dimensions", *sides)
    uncentred = metric == _UNCENTRED
    ours = _shape(now, several=several, uncentred=uncentred)
    theirs = EVEN if base is None else _shape(base, several=several, uncentred=uncentred)

    @cache
    def model(shape: Shape) -> float:
        return _of_spectrum(metric, _spectrum(shape, now, sequences))

    def worth(who: Collection[str]) -> float:
        def of(cause: str) -> Shape:
            return ours if cause in who else theirs

        return model(
            Shape(
                copies=of(DUPLICATES).copies,
                within=of(WITHIN).within,
                copied=of(DUPLICATES).copied,
                rogue=of(ROGUE).rogue,
                drift=of(DRIFT).drift,
            )
        )

    players = [DUPLICATES, *([ROGUE, DRIFT] if uncentred else []), WITHIN]
    parts = shapley(players, worth)
    whole = _of_value(metric, after, now.width) - _of_value(metric, before, now.width)
    parts[CONCENTRATION] = whole - sum(parts.values())
    unit = (after - before) / whole if whole else 0.0
    amounts = {cause: unit * part for cause, part in parts.items()}
    counts = [rogue(layer, several=several)[0] for layer in sides]
    return Attribution(
        metric,
        before,
        after,
        amounts,
        _unmeasured(sides, uncentred=uncentred, several=several),
        max(counts),
    )


def _shape(layer: LayerProfile, *, several: bool, uncentred: bool) -> Shape:
    repeated = math.sqrt(share(layer, "duplicate_pairs"))
    pots = of_lengths(layer, several=several)
    within, rogue_part, drift = 1.0, 0.0, 0.0
    if pots is not None:
        apart = pots.between + pots.within
        if value(layer, "rank_residual") is not None and apart > 0:
            within = pots.within / apart
        if uncentred:
            rogue_part, drift = pots.rogue / pots.all, (pots.common - pots.rogue) / pots.all
    return Shape(
        copies=repeated / (1.0 + repeated),
        within=within,
        copied=math.sqrt(copied_within(layer)),
        rogue=rogue_part,
        drift=drift,
    )


def _spectrum(shape: Shape, layer: LayerProfile, sequences: int) -> Array:
    """The eigenvalues of the model, those above zero."""
    most = max(1, min(layer.representations - 1, layer.width))
    between = max(1, min(sequences - 1, most))
    within = shape.within * (1.0 - shape.copied)
    values = np.full(most, within / most)
    ratio = between / max(sequences - 1, layer.width)
    values[:between] += (1.0 - within) / between * _marchenko_pastur(between, ratio)
    mean = min(1.0, shape.rogue + shape.drift)
    values = np.append(values * (1.0 - shape.copies), shape.copies) * (1.0 - mean)
    values = np.append(values, mean)
    return values[values > 0]


def _marchenko_pastur(count: int, ratio: float) -> Array:
    """(count,) eigenvalues, the largest first, of the covariance of random vectors; mean 1.

    Args:
        count: of those above zero.
        ratio: the smaller over the larger of the number of vectors and their dimension.
    """
    root = math.sqrt(min(1.0, ratio))
    angle = np.linspace(0.0, np.pi, 2001)
    at = 1.0 + root**2 + 2.0 * root * np.cos(angle)  # from the largest to the smallest
    density = np.divide(np.sin(angle) ** 2, at, out=np.zeros_like(at), where=at > 0)
    below = np.append(0.0, np.cumsum((density[1:] + density[:-1]) / 2))
    if not below[-1] > 0:
        return np.ones(count)
    found = np.interp((np.arange(count) + 0.5) / count, below / below[-1], at)
    result: Array = found / found.mean()
    return result


def _of_spectrum(metric: str, spectrum: Array) -> float:
    """g(M): the metric of these eigenvalues, on the scale on which parts add."""
    total = float(spectrum.sum())
    if metric.startswith("effective_rank"):
        shares = np.sqrt(spectrum) / np.sqrt(spectrum).sum()
        return -float((shares * np.log(shares)).sum())
    if metric in ("nesum", "spectral_anisotropy"):
        return float(spectrum.max()) / total
    return float((spectrum**2).sum()) / total**2


def _of_value(metric: str, found: float, width: int) -> float:
    """g(V)."""
    if metric.startswith("effective_rank"):
        return math.log(found)
    if metric == "spectral_anisotropy":
        return found
    if metric.startswith("isoscore"):
        return 1.0 / (1.0 + (width - 1) * found)
    return 1.0 / found


def _unmeasured(sides: Sequence[LayerProfile], *, uncentred: bool, several: bool) -> dict[str, str]:
    needed = {DUPLICATES: "duplicate_pairs", WITHIN: "rank_residual"}
    if uncentred:
        needed[DRIFT] = "drift_share"
    lacking = {cause: name for cause, name in needed.items() if not measured(name, *sides)}
    if not measured("drift_share", *sides):
        lacking.setdefault(WITHIN, "drift_share")
    if uncentred and not several:
        lacking[ROGUE] = "rogue_share and rogue_dimensions"
    return lacking
