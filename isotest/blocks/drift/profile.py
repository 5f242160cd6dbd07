"""From replicates to a profile: means over replicates, with error bars over replicates."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from isotest.attention_heads import AttentionHeads
from isotest.blocks.replicates import mean_of
from isotest.profile import LayerProfile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.blocks.drift.replicate import Side


def layer_profile(
    name: str, norm: float, replicates: Sequence[Side], *, module: str, width: int
) -> LayerProfile:
    """One side of the block at one norm, over all replicates.

    Args:
        name: ``"input.k"`` or ``"output.k"``.
        norm: N.
        replicates: what each showed.
        module: path of the block.
        width: D.
    """
    metrics = replicates[0].estimates
    kinds = [
        kind for kind in replicates[0].attention if all(kind in r.attention for r in replicates)
    ]
    return LayerProfile(
        name=name,
        module=module,
        width=width,
        representations=sum(replicate.representations for replicate in replicates),
        zero_length=sum(replicate.zero_length for replicate in replicates),
        block_representations=tuple(replicate.representations for replicate in replicates),
        estimates={
            metric: mean_of([replicate.estimates[metric] for replicate in replicates])
            for metric in metrics
        },
        attention={
            kind: _heads([replicate.attention[kind] for replicate in replicates]) for kind in kinds
        },
        at=norm,
    )


def _heads(replicates: Sequence[AttentionHeads]) -> AttentionHeads:
    """Each head's mean over replicates, and all their scores in one histogram."""
    first = replicates[0]
    entropy = zip(*(replicate.entropy for replicate in replicates), strict=True)
    row_max = zip(*(replicate.row_max for replicate in replicates), strict=True)
    histogram = zip(*(replicate.histogram for replicate in replicates), strict=True)
    return AttentionHeads(
        modules=first.modules,
        entropy=tuple(
            None
            if any(value is None for value in head)
            else fmean(v for v in head if v is not None)
            for head in entropy
        ),
        row_max=tuple(fmean(head) for head in row_max),
        histogram=tuple(sum(count) for count in histogram),
    )
