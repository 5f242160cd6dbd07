"""Why a similarity moved: which of the causes that a profile can show explain it, and by how much.

Every share is arithmetic on measured numbers, at one layer. Write A for ``anisotropy``, A* for
``anisotropy_all``, I for ``intra_similarity``, D for ``drift_share``, k for ``dimension_share``,
r for ``rank_residual``, q for ``duplicate_share``, and Δ for "now minus baseline" (without a
baseline: now).
The level L whose change is explained is A, A*, I or 1 − r²: all are shares of energy in a direction
that representations have in common, over all pairs or within a sequence.

===================== ============= ============================================================
cause                 share         reading
===================== ============= ============================================================
drift                 ΔD / ΔL       ‖x̄‖² of the mean squared length: what mean cosine would
                                    be if all lengths were equal
one dimension         Δ(k·A) / ΔL   what the single largest dimension adds to A, which A* and I
                                    contain (and 1 − r² too, if all lengths are equal)
within the sequence   Δ(L − C) / ΔL the part of L that sequences do not share with each other;
                                    C = A for I and A*, D for 1 − r² (none for A, which compares
                                    different sequences only)
duplicated rows       Δq            share of the rows, not of ΔL
===================== ============= ============================================================

Shares are cut to 0…1. They overlap and so do not add up to one: a rogue dimension with a constant
offset *is* a drift, along one axis. Drift and within-the-sequence nearly partition I and 1 − r².
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isotest.gate.numerals import number, percent

if TYPE_CHECKING:
    from isotest.profile import LayerProfile

_MENTIONED = 0.01
EXPLAINS = 0.5
"""The share from which on a cause is said to explain a change."""


@dataclass(frozen=True)
class Cause:
    """A cause that the profile can show.

    Attributes:
        name: in words.
        share: 0…1, by the formula in this module's head.
        evidence: the numbers that it comes from.
    """

    name: str
    share: float
    evidence: str


def causes(metric: str, now: LayerProfile, base: LayerProfile | None) -> tuple[Cause, ...] | None:
    """The causes measured at a layer, most specific first, each with its share.

    Args:
        metric: the metric that failed.
        now: the layer as measured.
        base: the same layer of the baseline; without one the level itself is explained, not its
            change.

    Returns:
        ``None`` where the metric is no similarity, or did not move: there is nothing to explain.
    """
    level, previous = _level(metric, now), _level(metric, base)
    if level is None or previous is None or not abs(level - previous) > 1e-12:
        return None
    moved = level - previous
    found = []
    found.append(_dimension(now, base, moved))
    found.append(_within(metric, now, base, moved))
    found.append(_drift(now, base, moved))
    found.append(_duplicates(now, base))
    return tuple(cause for cause in found if cause is not None)


def cause_line(metric: str, now: LayerProfile, base: LayerProfile | None) -> str | None:
    """The causes as one line of a message; ``None`` where there is nothing to explain."""
    found = causes(metric, now, base)
    if found is None:
        return None
    what = "level" if base is None else "change"
    explaining = [cause for cause in found if cause.share >= EXPLAINS]
    others = [cause for cause in found if _MENTIONED <= cause.share < EXPLAINS]
    rest = ", ".join(f"{cause.name} {percent(cause.share)}" for cause in others)
    if not explaining:
        return f"none of those measured explains the {what}" + (f" ({rest})" if rest else "")
    text = "; ".join(
        f"{cause.name} {percent(cause.share)} ({cause.evidence})" for cause in explaining
    )
    return f"{text}; {rest}" if rest else text


def _value(layer: LayerProfile | None, metric: str) -> float | None:
    """A metric's finite value; without a layer 0, the level that everything is measured from."""
    if layer is None:
        return 0.0
    estimate = layer.estimates.get(metric)
    if estimate is None or estimate.value is None or not math.isfinite(estimate.value):
        return None
    return estimate.value


def _level(metric: str, layer: LayerProfile | None) -> float | None:
    if metric in ("anisotropy", "anisotropy_all", "intra_similarity"):
        return _value(layer, metric)
    if metric == "rank_residual":
        residual = 1.0 if layer is None else _value(layer, metric)
        return None if residual is None else 1.0 - residual**2
    return None


def _cut(share: float) -> float:
    return min(1.0, max(0.0, share))


def _pair(name: str, now: LayerProfile, base: LayerProfile | None) -> str:
    value = _value(now, name)
    text = "undefined" if value is None else number(value)
    if base is None:
        return f"{name} {text}"
    previous = _value(base, name)
    return f"{name} {'undefined' if previous is None else number(previous)} -> {text}"


def _drift(now: LayerProfile, base: LayerProfile | None, moved: float) -> Cause | None:
    share, previous = _value(now, "drift_share"), _value(base, "drift_share")
    if share is None or previous is None:
        return None
    evidence = _pair("drift_share", now, base)
    if base is not None and _value(now, "drift_norm") is not None:
        evidence += f", {_pair('drift_norm', now, base)}"
    return Cause("drift", _cut((share - previous) / moved), evidence)


def _contribution(layer: LayerProfile | None) -> float | None:
    """What the largest dimension adds to the anisotropy: its share times the whole."""
    if layer is None:
        return 0.0
    estimate = layer.estimates.get("dimension_share")
    if estimate is not None and estimate.value is None and estimate.vacuous:
        return 0.0  # no anisotropy to have a share of
    share, whole = _value(layer, "dimension_share"), _value(layer, "anisotropy")
    return None if share is None or whole is None else share * whole


def _dimension(now: LayerProfile, base: LayerProfile | None, moved: float) -> Cause | None:
    adds, added = _contribution(now), _contribution(base)
    if adds is None or added is None:
        return None
    evidence = _pair("dimension_share", now, base)
    if _value(now, "massive_ratio") is not None:
        evidence += f", {_pair('massive_ratio', now, base)}"
    return Cause("one dimension", _cut((adds - added) / moved), evidence)


def _within(
    metric: str, now: LayerProfile, base: LayerProfile | None, moved: float
) -> Cause | None:
    if metric == "anisotropy":
        return None
    shared = "drift_share" if metric == "rank_residual" else "anisotropy"
    common, previous = _value(now, shared), _value(base, shared)
    if common is None or previous is None:
        return None
    own = moved - (common - previous)
    evidence = f"{_pair(metric, now, base)}, {_pair(shared, now, base)}"
    return Cause("collapse within the sequence", _cut(own / moved), evidence)


def _duplicates(now: LayerProfile, base: LayerProfile | None) -> Cause | None:
    share, previous = _value(now, "duplicate_share"), _value(base, "duplicate_share")
    if share is None or previous is None:
        return None
    return Cause("duplicated rows", _cut(share - previous), _pair("duplicate_share", now, base))
