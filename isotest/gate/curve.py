"""Reading a curve out of a profile: what is finite, what is not, how it is written down."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isotest.estimate import Estimate
    from isotest.profile import LayerProfile


def non_finite(estimate: Estimate) -> str | None:
    """What in an estimate is NaN or infinite, in words; ``None`` if everything is finite.

    >>> from isotest.estimate import Estimate
    >>> non_finite(Estimate(float("nan")))
    'its value is nan'
    >>> non_finite(Estimate(0.5, 0.1, (0.4, 0.6)))
    """
    if estimate.value is not None and not math.isfinite(estimate.value):
        return f"its value is {estimate.value}"
    if estimate.se is not None and not math.isfinite(estimate.se):
        return f"its standard error is {estimate.se}"
    for number, block in enumerate(estimate.blocks):
        if not math.isfinite(block):
            return f"its value for block {number} is {block}"
    return None


def curve_text(points: Iterable[tuple[LayerProfile, float]]) -> str:
    """A curve as one line: ``0:0.05612 1:0.134 …``."""
    return " ".join(f"{layer.name}:{value:.4g}" for layer, value in points)
