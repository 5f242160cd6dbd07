"""What moves mean cosines and rank residuals: which pot of energy grew or shrank.

The level is ``anisotropy``, ``anisotropy_all``, ``intra_similarity``, ``drift_share``, or 1 − r²
for ``rank_residual``: a ratio of the pots of :mod:`.energy`, so only their proportions are known.
Where a sequence's positions all become its mean, everything that is shared takes a larger share,
though nothing of it grew. So one pot has to be the measure: of common, between and within it is the
one whose share changed in the middle, as a factor; that one is said to have stayed. (In a drift,
between and within shrink by one factor, and common is what grew. In a collapse within sequences,
common and between grow by one factor, and within is what shrank.) Of two pots, the third being as
good as empty (below 0.01, or three standard errors), it is the one that is not common.

Copies, rogue dimensions, drift and spectral concentration then get what their pots change, and
within-sequence collapse what between and within change, by their Shapley values: the change when
one cause alone goes from the baseline's pots to this run's, averaged over all orders of the causes.
They add up to the change of the ratio. What rounding at the edge (a mean cosine below zero) leaves
is not explained.

A rogue dimension counts from a threshold on. A dimension that is above it on one side only is
credited with the least change that this allows.

A level, without a baseline, needs no measure: each pot is a part of it.

``uniformity``, u = log mean exp(4(cos − 1)), is at least u₀, what it would be if all cosines
between units were A′, those within sequences I′, and those of copies 1:

    u₀ = log [f·(P_w + (1 − P_w)·e^(4(I′ − 1))) + (1 − f)·(P + (1 − P)·e^(4(A′ − 1)))],

with f the share of pairs within sequences. The change of u₀, a function of the pots, is shared out
like the others; that of u − u₀ ≥ 0, cosines that spread about their means because directions are
few, is spectral concentration.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from typing import TYPE_CHECKING

from isotest.gate.diagnosis.attribution import Attribution
from isotest.gate.diagnosis.causes import (
    CONCENTRATION,
    DRIFT,
    DUPLICATES,
    ROGUE,
    SHARED_ENERGY,
    WITHIN,
)
from isotest.gate.diagnosis.energy import Energy, centring_tells, of_cosines, of_lengths
from isotest.gate.diagnosis.reading import measured, rogue, value
from isotest.gate.diagnosis.shapley import shapley
from isotest.statistics.rogue_threshold import threshold

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from isotest.profile import LayerProfile

COSINES = ("anisotropy", "anisotropy_all", "intra_similarity", "uniformity")
LENGTHS = ("rank_residual", "drift_share")

_NOTHING = 0.01
"""A pot that is smaller on both sides is as good as empty: its changes are noise."""

_TINY = 1e-6
"""So that what was empty has grown by a factor, too."""


def attribute(metric: str, now: LayerProfile, base: LayerProfile | None) -> Attribution | None:
    """Share out the change of a similarity, or without ``base`` its level.

    Returns:
        ``None`` where the metric or what its pots need has no value on a side, and for the level
        of ``uniformity``, which is no sum of pots.
    """
    sides = [now] if base is None else [base, now]
    several = measured("rogue_share", *sides) and measured("rogue_dimensions", *sides)
    centred = all(centring_tells(layer) for layer in sides)
    pots = [
        of_lengths(layer, several=several)
        if metric in LENGTHS
        else of_cosines(layer, several=several, centred=centred)
        for layer in sides
    ]
    levels = [_level(metric, layer) for layer in sides]
    ratio = _ratio(metric, now, base)
    ours, after = pots[-1], levels[-1]
    if ours is None or after is None or (base is None and metric == "uniformity"):
        return None
    unmeasured = _unmeasured(metric, sides, several=several)
    level = SHARED_ENERGY if metric == "rank_residual" else ""
    count = rogue(now, several=several)[0]
    if base is None:
        amounts = _parts(ours, ratio)
        return Attribution(metric, 0.0, after, amounts, unmeasured, count, level)
    theirs, before = pots[0], levels[0]
    if theirs is None or before is None:
        return None
    ours = _measured_alike(ours, theirs)
    ours, theirs = _same_number_rogue(ours, theirs, now, base, several=several)
    if ours.rogue < theirs.rogue:
        count = rogue(base, several=several)[0]

    def worth(who: Collection[str]) -> float:
        return ratio(_mixed(theirs, ours, who))

    amounts = shapley((DUPLICATES, ROGUE, DRIFT, WITHIN, CONCENTRATION), worth)
    if metric == "uniformity":
        amounts[CONCENTRATION] += after - before - sum(amounts.values())
    return Attribution(metric, before, after, amounts, unmeasured, count, level)


def _level(metric: str, layer: LayerProfile) -> float | None:
    found = value(layer, metric)
    if metric == "rank_residual":
        return None if found is None else 1.0 - found**2
    return found


def _ratio(metric: str, now: LayerProfile, base: LayerProfile | None) -> Callable[[Energy], float]:
    """The level as a function of the pots."""
    if metric in ("anisotropy", "drift_share"):
        return lambda pots: pots.alike
    if metric in ("intra_similarity", "rank_residual"):
        return lambda pots: pots.alike_within
    own = [_own_pairs(layer) for layer in (now, base) if layer is not None]
    share = sum(own) / len(own)
    if metric == "uniformity":
        return lambda pots: _even_cosines(pots, share)
    return lambda pots: share * pots.alike_within + (1.0 - share) * pots.alike


def _even_cosines(pots: Energy, share: float) -> float:
    """u₀: log mean exp(4 (cos − 1)), if cosines did not spread (see the head).

    Args:
        pots: of the cosines.
        share: of the pairs, that are within sequences.
    """
    own = (pots.common + pots.between) / pots.all
    within = pots.copied + (1.0 - pots.copied) * math.exp(4.0 * (own - 1.0))
    others = pots.alike - pots.copies / pots.all
    copies = pots.copies / pots.all / (1.0 - others) if others < 1.0 else 0.0
    between = copies + (1.0 - copies) * math.exp(4.0 * (others - 1.0))
    return math.log(share * within + (1.0 - share) * between)


def _own_pairs(layer: LayerProfile) -> float:
    """Share of the pairs of ``anisotropy_all`` that ``intra_similarity`` is the mean of."""
    every, between, within = (
        value(layer, name) for name in ("anisotropy_all", "anisotropy", "intra_similarity")
    )
    if every is None or between is None or within is None or abs(within - between) < 1e-9:
        return 0.0
    return min(1.0, max(0.0, (every - between) / (within - between)))


def _parts(pots: Energy, ratio: Callable[[Energy], float]) -> dict[str, float]:
    """What each pot is of a level."""
    alike = {
        DUPLICATES: pots.copies / pots.all,
        ROGUE: pots.rogue / pots.all,
        DRIFT: pots.drift / pots.all,
        CONCENTRATION: pots.concentration / pots.all,
    }
    own = ratio(pots) - pots.alike
    total = pots.between + pots.copied * pots.within
    copied = own * pots.copied * pots.within / total if total > 0 else 0.0
    alike[DUPLICATES] += copied
    alike[WITHIN] = own - copied
    return alike


def _measured_alike(ours: Energy, theirs: Energy) -> Energy:
    """Our pots in the unit in which the pot whose share changed in the middle did not change.

    Where there are only two, the one that is not common is the measure.
    """
    pots = (
        (ours.common, theirs.common),
        (ours.between, theirs.between),
        (ours.within, theirs.within),
    )
    empty = max(_NOTHING, ours.noise, theirs.noise)
    changes = [
        math.log(max(our, _TINY) / max(their, _TINY))
        for our, their in pots
        if max(our, their) > empty
    ]
    if max(ours.common, theirs.common) <= empty:
        return ours  # between and within are one cause: whatever the unit
    if len(changes) < len(pots):
        changes = changes[-1:]
    factor = math.exp(-statistics.median(changes))
    return replace(
        ours,
        copies=ours.copies * factor,
        rogue=ours.rogue * factor,
        drift=ours.drift * factor,
        concentration=ours.concentration * factor,
        between=ours.between * factor,
        within=ours.within * factor,
    )


def _same_number_rogue(
    ours: Energy, theirs: Energy, now: LayerProfile, base: LayerProfile, *, several: bool
) -> tuple[Energy, Energy]:
    """Pots of as many rogue dimensions on both sides."""
    our_count, their_count = rogue(now, several=several)[0], rogue(base, several=several)[0]
    limit = threshold(now.width)
    if our_count < their_count:
        most = limit * (their_count - our_count) * ours.common
        ours = _with_rogue(ours, min(max(theirs.rogue, ours.rogue), ours.rogue + most))
    elif their_count < our_count:
        most = limit * (our_count - their_count) * theirs.common
        theirs = _with_rogue(theirs, min(max(ours.rogue, theirs.rogue), theirs.rogue + most))
    return ours, theirs


def _with_rogue(pots: Energy, rogue_pot: float) -> Energy:
    """The same pots with so much of drift and concentration counted as rogue."""
    rest = pots.drift + pots.concentration
    moved = min(rest, rogue_pot - pots.rogue)
    kept = 1.0 - moved / rest if rest > 0 else 0.0
    return replace(
        pots,
        rogue=pots.rogue + moved,
        drift=pots.drift * kept,
        concentration=pots.concentration * kept,
    )


def _mixed(theirs: Energy, ours: Energy, who: Collection[str]) -> Energy:
    """The baseline's pots, with ours of the causes that are in."""

    def of(cause: str) -> Energy:
        return ours if cause in who else theirs

    return Energy(
        copies=of(DUPLICATES).copies,
        rogue=of(ROGUE).rogue,
        drift=of(DRIFT).drift,
        concentration=of(CONCENTRATION).concentration,
        between=of(WITHIN).between,
        within=of(WITHIN).within,
        copied=of(DUPLICATES).copied,
    )


def _unmeasured(metric: str, sides: list[LayerProfile], *, several: bool) -> dict[str, str]:
    needed = {DUPLICATES: "duplicate_pairs"}
    if metric not in LENGTHS:
        needed[CONCENTRATION] = "centered_anisotropy"
        needed[WITHIN] = "intra_similarity"
    if metric == "drift_share":
        needed[WITHIN] = "rank_residual"
    lacking = {cause: name for cause, name in needed.items() if not measured(name, *sides)}
    if metric not in LENGTHS and not all(centring_tells(layer) for layer in sides):
        lacking.setdefault(
            CONCENTRATION, "centered_anisotropy, whose mean few representations make"
        )
    if not several:
        lacking[ROGUE] = "rogue_share and rogue_dimensions"
    if any(value(layer, "intra_similarity") is not None for layer in sides) and not measured(
        "duplicate_pairs_within", *sides
    ):
        lacking.setdefault(DUPLICATES, "duplicate_pairs_within")
    return lacking
