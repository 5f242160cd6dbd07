"""At which layers did a metric move: beyond its floor, for all that its error bars can tell?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from isotest.gate.curve import non_finite
from isotest.gate.regressions import LayerChange, judge_changes
from isotest.statistics.jackknife import paired_change
from isotest.statistics.registry import METRICS

if TYPE_CHECKING:
    from isotest.profile import LayerProfile, Profile

ALPHA = 0.01
"""Family-wise error over the layers."""


def paired(before: Profile, after: Profile) -> bool:
    """Whether both saw the same samples in the same blocks, so that blocks can be subtracted."""
    return (
        before.provenance.data == after.provenance.data
        and before.block_sequences == after.block_sequences
    )


def layer_change(
    metric: str, profile: Profile, baseline: Profile, now: LayerProfile, base: LayerProfile
) -> LayerChange | None:
    """The change at a layer with its error bar, against the metric's floor.

    Error bars are those of the block-wise differences where the profiles are :func:`paired`; else
    both sides' errors count in full, with the fewer degrees of freedom.

    Returns:
        ``None`` where a side has no finite value.
    """
    new, old = now.estimates.get(metric), base.estimates.get(metric)
    if new is None or old is None or new.value is None or old.value is None:
        return None
    if non_finite(new) or non_finite(old):
        return None
    per_sequence = metric in METRICS and METRICS[metric].weight == "sequences"
    sizes = profile.block_sequences if per_sequence else base.block_representations
    together = (
        paired(baseline, profile)
        and base.block_representations == now.block_representations
        and len(new.blocks) == len(old.blocks) == len(sizes)
    )
    se: float | None
    if together and new.blocks:
        change, se, df = paired_change(new, old, sizes)
    else:
        change = new.value - old.value
        se = None if new.se is None or old.se is None else math.hypot(new.se, old.se)
        df = min(len(new.blocks), len(old.blocks)) - 1
    floor = METRICS[metric].floor_at(base.estimates) if metric in METRICS else 0.0
    return LayerChange(
        layer=now.name,
        base=old.value,
        new=new.value,
        change=change,
        se=math.nan if se is None else se,
        df=df,
        margin=floor,
        floor=floor,
    )


def moved(metric: str, profile: Profile, baseline: Profile) -> tuple[str, ...]:
    """The layers, in order, at which ``metric`` changed beyond its floor (Holm over the layers)."""
    bases = {layer.name: layer for layer in baseline.layers}
    changes = [
        change
        for layer in profile.layers
        if layer.name in bases
        for change in [layer_change(metric, profile, baseline, layer, bases[layer.name])]
        if change is not None and math.isfinite(change.se) and change.df > 0
    ]
    if not changes:
        return ()
    return tuple(change.layer for change in judge_changes(changes, "both", ALPHA).at("beyond"))
