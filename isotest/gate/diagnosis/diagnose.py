"""The diagnosis of one metric at one layer: causes with their shares, and where each starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isotest.gate.diagnosis import centered, heads, similarity, spectra
from isotest.gate.diagnosis.causes import EVIDENCE, ROGUE
from isotest.gate.diagnosis.movement import moved
from isotest.gate.diagnosis.reading import measured, shown
from isotest.statistics.registry import METRICS

if TYPE_CHECKING:
    from isotest.gate.diagnosis.attribution import Attribution
    from isotest.gate.diagnosis.heads import Head
    from isotest.profile import LayerProfile, Profile

EXPLAINS = 0.5
"""The share from which on a cause is said to explain a change."""

_COSINES = ("anisotropy", "intra_similarity")

_STAND_FOR = {
    "dimension_share": _COSINES,
    "rogue_share": _COSINES,
    "rogue_dimensions": _COSINES,
    "massive": _COSINES,
    "massive_ratio": _COSINES,
    "duplicate_share": _COSINES,
    "duplicate_pairs": _COSINES,
    "duplicate_pairs_within": _COSINES,
    "partition_isotropy": _COSINES,
    "rank_residual_composite": ("rank_residual",),
    "alpha_req": ("effective_rank", "anisotropy"),
    "twonn": ("effective_rank", "anisotropy"),
}
"""Metrics that are no level with parts; the first of these that moved is explained instead."""

_TINY = 1e-12


@dataclass(frozen=True)
class Cause:
    """A cause, and what it has to do with the change.

    Attributes:
        name: in words, with how many dimensions where it is a matter of these.
        share: of the change; causes that offset each other have shares below 0 and above 1.
        amount: the same in the unit of what is explained.
        evidence: the numbers by which it is seen, before and after.
        metric: the first of these that was measured; ``None`` if none was.
        start: the first layer at which ``metric`` moved beyond error bar and floor, if one did.
    """

    name: str
    share: float
    amount: float
    evidence: str
    metric: str | None
    start: str | None


@dataclass(frozen=True)
class Diagnosis:
    """Why a metric changed at a layer, or without a baseline why it has its level.

    Attributes:
        metric: what was asked for; ``layer``: where.
        explained: the quantity that is shared out: the metric, or one that stands for it.
        before, after: its values; of a level, ``before`` is where that is counted from. ``None``
            where nothing can be shared out.
        still: metrics that would be explained in the place of ``metric``, but did not move.
        is_change: whether there is a baseline.
        causes: by share, the largest first; only those that could be looked for.
        unexplained: the share that they leave.
        unmeasured: by cause that could not be looked for, the metric that would show it.
        heads: attention heads that saturate, here or at an earlier layer.
        started: the layers, in order, at which the metric moved beyond error bar and floor.
        earlier: those of them before ``layer``.
    """

    metric: str
    layer: str
    explained: str
    before: float | None
    after: float | None
    still: tuple[str, ...]
    is_change: bool
    causes: tuple[Cause, ...]
    unexplained: float
    unmeasured: dict[str, str]
    heads: tuple[Head, ...]
    started: tuple[str, ...]
    earlier: tuple[str, ...]

    @property
    def leading(self) -> tuple[Cause, ...]:
        """The causes that explain the change: half of it at least."""
        return tuple(cause for cause in self.causes if cause.share >= EXPLAINS)


def diagnose(
    metric: str, profile: Profile, baseline: Profile | None, layer: str
) -> Diagnosis | None:
    """Why ``metric`` changed at ``layer``; without a baseline, why it has its level there.

    Args:
        metric: the metric that failed.
        profile: what was measured.
        baseline: what it is compared with, of the same layers.
        layer: the layer to explain.

    Returns:
        ``None`` where there is nothing to explain: lengths, which have no cause that a profile
        shows; the difference of two layers; a change of nothing; a side without a value.
    """
    if metric not in METRICS:
        return None
    now = _layer(profile, layer)
    base = None if baseline is None else _layer(baseline, layer)
    if now is None or (baseline is not None and base is None):
        return None
    if not measured(metric, now, *([] if base is None else [base])):
        return None
    chosen, still = _chosen(metric, profile, baseline, layer)
    sequences = sum(profile.block_sequences)
    found = None if chosen is None else _attribution(chosen, now, base, sequences)
    attention = "attention_" in metric
    sharp = heads.saturated(profile, baseline, layer) if attention or baseline is not None else ()
    if found is None and not still and not (attention and sharp):
        return None
    started = () if baseline is None else moved(metric, profile, baseline)
    order = [each.name for each in profile.layers]
    return Diagnosis(
        metric=metric,
        layer=layer,
        explained=metric if found is None else found.level or found.metric,
        before=None if found is None else found.before,
        after=None if found is None else found.after,
        still=still,
        is_change=baseline is not None,
        causes=() if found is None else _causes(found, profile, baseline, now, base),
        unexplained=0.0 if found is None else found.remainder / found.change,
        unmeasured={} if found is None else dict(found.unmeasured),
        heads=sharp,
        started=started,
        earlier=tuple(name for name in started if order.index(name) < order.index(layer)),
    )


def _chosen(
    metric: str, profile: Profile, baseline: Profile | None, layer: str
) -> tuple[str | None, tuple[str, ...]]:
    """The metric to explain, and those that would have stood for it but did not move."""
    if metric not in _STAND_FOR:
        return metric, ()
    sides = [profile] if baseline is None else [profile, baseline]
    known = [
        name
        for name in _STAND_FOR[metric]
        if all(measured(name, each) for side in sides for each in side.layers)
    ]
    if baseline is None:
        return (known[0] if known else None), ()
    for name in known:
        if layer in moved(name, profile, baseline):
            return name, ()
    return None, tuple(known)


def _layer(profile: Profile, name: str) -> LayerProfile | None:
    return next((layer for layer in profile.layers if layer.name == name), None)


def _attribution(
    metric: str, now: LayerProfile, base: LayerProfile | None, sequences: int
) -> Attribution | None:
    found: Attribution | None = None
    if metric in similarity.COSINES or metric in similarity.LENGTHS:
        found = similarity.attribute(metric, now, base)
    elif metric in spectra.SPECTRAL:
        found = spectra.attribute(metric, now, base, sequences)
    elif metric == "centered_anisotropy":
        found = centered.attribute(now, base)
    elif "attention_" in metric and base is not None:
        found = heads.attribute(metric, now, base)
    return found if found is not None and abs(found.change) > _TINY else None


def _causes(
    found: Attribution,
    profile: Profile,
    baseline: Profile | None,
    now: LayerProfile,
    base: LayerProfile | None,
) -> tuple[Cause, ...]:
    sides = [now] if base is None else [now, base]
    causes = []
    for name, amount in found.amounts.items():
        metrics = [metric for metric in EVIDENCE[name] if measured(metric, *sides)]
        if name in found.unmeasured and abs(amount) <= _TINY * abs(found.change):
            continue
        start = moved(metrics[0], profile, baseline) if metrics and baseline is not None else ()
        causes.append(
            Cause(
                name=_counted(found.rogue) if name == ROGUE else name,
                share=amount / found.change,
                amount=amount,
                evidence=", ".join(shown(metric, now, base) for metric in metrics),
                metric=metrics[0] if metrics else None,
                start=start[0] if start else None,
            )
        )
    return tuple(sorted(causes, key=lambda cause: -cause.share))


def _counted(dimensions: int) -> str:
    if dimensions == 0:
        return ROGUE
    return f"{dimensions} rogue dimension{'' if dimensions == 1 else 's'}"
