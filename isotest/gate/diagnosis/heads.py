"""Attention heads that saturate: nearly all weight on one key, whatever the query.

A head's entropy, as a share of what its queries could have, is near 0 then; its scores have grown
until the softmax is a maximum (entropy collapse: Zhai et al. 2023). A head counts as saturated from
``SATURATED`` down. Some trained heads are as sharp by design, so as a change it is named where the
entropy came down from above, to half of what it was at most.

What a head does to mean cosines cannot be read from a profile: it is no share of them. Its own
numbers stand beside the shares. Of ``attention_entropy`` and ``attention_row_max``, which are means
over heads, each head's share is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isotest.gate.diagnosis.attribution import Attribution
from isotest.gate.diagnosis.causes import HEADS
from isotest.gate.diagnosis.reading import value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.attention_heads import AttentionHeads, AttentionKind
    from isotest.profile import LayerProfile, Profile

SATURATED = 0.1
"""Entropy, as a share of the possible, from which down a head is saturated."""


@dataclass(frozen=True)
class Head:
    """One saturated head.

    Attributes:
        layer: where, and of which ``kind`` of attention: ``"self"`` or ``"cross"``.
        number: which, from 0, through the layer's attention modules.
        entropy: its mean normalised entropy now; ``before``: in the baseline, if there is one.
        row_max: the mean of its rows' largest weights now; ``row_max_before``: in the baseline.
    """

    layer: str
    kind: AttentionKind
    number: int
    entropy: float
    before: float | None
    row_max: float
    row_max_before: float | None


def saturated(profile: Profile, baseline: Profile | None, until: str) -> tuple[Head, ...]:
    """The heads of layers up to ``until`` that saturate, in order of depth.

    Args:
        profile: what was measured.
        baseline: what it is compared with; without one the layer's own heads are looked at alone.
        until: a layer's name.
    """
    names = [layer.name for layer in profile.layers]
    layers = profile.layers[: names.index(until) + 1]
    if baseline is None:
        return tuple(_of_layer(layers[-1], None))
    bases = {layer.name: layer for layer in baseline.layers}
    return tuple(
        head
        for layer in layers
        if layer.name in bases
        for head in _of_layer(layer, bases[layer.name])
    )


def _of_layer(now: LayerProfile, base: LayerProfile | None) -> list[Head]:
    found = []
    for kind, heads in now.attention.items():
        before = None if base is None else base.attention.get(kind)
        if base is not None and (before is None or len(before.entropy) != len(heads.entropy)):
            continue
        for number, entropy in enumerate(heads.entropy):
            was = None if before is None else before.entropy[number]
            if entropy is None or entropy > SATURATED or (before is not None and was is None):
                continue
            if was is not None and (was <= SATURATED or entropy > was / 2):
                continue
            row_max_before = None if before is None else before.row_max[number]
            row_max = heads.row_max[number]
            found.append(Head(now.name, kind, number, entropy, was, row_max, row_max_before))
    return found


def attribute(metric: str, now: LayerProfile, base: LayerProfile) -> Attribution | None:
    """Share out the change of a mean over heads: saturated ones, and all others."""
    kind: AttentionKind = "cross" if metric.startswith("cross_") else "self"
    after, before = value(now, metric), value(base, metric)
    heads, others = now.attention.get(kind), base.attention.get(kind)
    if after is None or before is None or heads is None or others is None:
        return None
    ours, theirs = _of_heads(metric, heads), _of_heads(metric, others)
    if ours is None or theirs is None or len(ours) != len(theirs):
        return None
    numbers = {head.number for head in _of_layer(now, base) if head.kind == kind}
    counted = [
        (number, our - their)
        for number, (our, their) in enumerate(zip(ours, theirs, strict=True))
        if our is not None and their is not None
    ]
    if not counted:
        return None
    amount = sum(change for number, change in counted if number in numbers) / len(counted)
    return Attribution(metric, before, after, {HEADS: amount})


def _of_heads(metric: str, heads: AttentionHeads) -> Sequence[float | None] | None:
    name = metric.removeprefix("cross_")
    return {"attention_entropy": heads.entropy, "attention_row_max": heads.row_max}.get(name)
