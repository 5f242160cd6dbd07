"""What moves the anisotropy about the mean: copies, and directions that are few.

With P ``duplicate_pairs``, the pairs that are no copies have the mean (C − P)/(1 − P); copies add
the difference, but no more than C: the mean is pulled towards them, so that they come to lie
opposite to all others. The rest is neither drift nor a rogue dimension's constant value, which
subtracting the mean takes out: centred directions lie on one side, as they can only where a few of
them, with long representations opposite, make up the cloud.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.gate.diagnosis.attribution import Attribution
from isotest.gate.diagnosis.causes import CONCENTRATION, DUPLICATES
from isotest.gate.diagnosis.energy import without_copies
from isotest.gate.diagnosis.reading import measured, share, value

if TYPE_CHECKING:
    from isotest.profile import LayerProfile


def attribute(now: LayerProfile, base: LayerProfile | None) -> Attribution | None:
    """Share out the change of ``centered_anisotropy``, or without ``base`` its level."""
    sides = [now] if base is None else [base, now]
    values = [value(layer, "centered_anisotropy") for layer in sides]
    after, before = values[-1], 0.0 if base is None else values[0]
    if after is None or before is None:
        return None
    others = [
        max(without_copies(found, share(layer, "duplicate_pairs")), min(found, 0.0))
        for layer, found in zip(sides, values, strict=True)
        if found is not None
    ]
    concentration = others[-1] - (0.0 if base is None else others[0])
    amounts = {DUPLICATES: after - before - concentration, CONCENTRATION: concentration}
    unmeasured = {} if measured("duplicate_pairs", *sides) else {DUPLICATES: "duplicate_pairs"}
    return Attribution("centered_anisotropy", before, after, amounts, unmeasured)
