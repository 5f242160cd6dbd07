"""Do two profiles have the same layers, in the same order, with the same metrics?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.gate.layers import describe_layers
from isotest.gate.part import Part, failed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.profile import Profile


def mismatch(profile: Profile, baseline: Profile, metrics: Sequence[str]) -> Part | None:
    """The failure for layers or metrics that one side lacks; ``None`` if both have all.

    Order counts: a curve is read by position.
    """
    ours = [layer.name for layer in profile.layers]
    theirs = [layer.name for layer in baseline.layers]
    for names, others, who in ((theirs, ours, "measured model"), (ours, theirs, "baseline")):
        lacking = [name for name in names if name not in others]
        if lacking:
            return failed(f"the {who} lacks layer {describe_layers(lacking)}", *lacking)
    if ours != theirs:
        return failed(
            f"the layers are in another order: {describe_layers(ours)}; in the baseline "
            f"{describe_layers(theirs)}",
            *(mine for mine, other in zip(ours, theirs, strict=False) if mine != other),
        )
    for metric in metrics:
        for side, what in ((profile, "was not measured"), (baseline, "is not in the baseline")):
            lacking = [layer.name for layer in side.layers if metric not in layer.estimates]
            if lacking:
                return failed(f"{metric} {what} at layer {describe_layers(lacking)}", *lacking)
    return None
