"""Numbers of a layer as the decompositions read them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from isotest.gate.numerals import number
from isotest.statistics.rogue_threshold import threshold

if TYPE_CHECKING:
    from isotest.profile import LayerProfile


def value(layer: LayerProfile, metric: str) -> float | None:
    """A metric's finite value at a layer; ``None`` where it is undefined or was not measured."""
    estimate = layer.estimates.get(metric)
    if estimate is None or estimate.value is None or not math.isfinite(estimate.value):
        return None
    return estimate.value


def measured(metric: str, *layers: LayerProfile) -> bool:
    """Whether it was looked for at every one of ``layers``, though it may be undefined there."""
    return all(metric in layer.estimates for layer in layers)


def share(layer: LayerProfile, metric: str) -> float:
    """A metric that is a share, in 0…1; 0 where there is nothing to have a share of."""
    found = value(layer, metric)
    return 0.0 if found is None else min(1.0, max(0.0, found))


def rogue(layer: LayerProfile, *, several: bool) -> tuple[int, float]:
    """How many dimensions are rogue, and their share of the anisotropy.

    Args:
        layer: where.
        several: whether they were counted; if not, the largest one is known alone.
    """
    if several:
        return round(value(layer, "rogue_dimensions") or 0), share(layer, "rogue_share")
    largest = share(layer, "dimension_share")
    return (1, largest) if largest > threshold(layer.width) else (0, 0.0)


def shown(metric: str, now: LayerProfile, base: LayerProfile | None) -> str:
    """``drift_share 0.1 -> 0.5``, without a baseline ``drift_share 0.5``; empty if not measured."""
    if not measured(metric, now, *([] if base is None else [base])):
        return ""
    texts = []
    for layer in (base, now):
        if layer is not None:
            found = value(layer, metric)
            texts.append("undefined" if found is None else number(found))
    return f"{metric} {' -> '.join(texts)}"
