"""Reading a curve out of a profile: what is defined and finite, how it is written down."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from isotest.gate.part import Part, failed, nothing_compared

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from isotest.estimate import Estimate
    from isotest.profile import LayerProfile
    from isotest.statistics.metric import Metric


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


def defined_points(
    metric: str, layers: Sequence[LayerProfile]
) -> list[tuple[LayerProfile, float]] | Part:
    """The layers at which ``metric`` has a value, with it, or the part that says why not.

    A value that is NaN or infinite fails before anything is compared; a value that is vacuously
    undefined does not count; any other undefined value fails.

    Args:
        metric: the metric's name.
        layers: the selected layers; at least one.
    """
    points: list[tuple[LayerProfile, float]] = []
    for layer in layers:
        estimate = layer.estimates.get(metric)
        if estimate is None:
            return failed(f"{metric} was not measured at layer {layer.label}", layer.name)
        fault = non_finite(estimate)
        if fault is not None:
            return failed(f"{metric} at layer {layer.label} is not finite: {fault}", layer.name)
        if estimate.value is not None:
            points.append((layer, estimate.value))
        elif not estimate.vacuous:
            return failed(
                f"{metric} is undefined at layer {layer.label}: {estimate.undefined}", layer.name
            )
    if not points:
        why = layers[0].estimates[metric].undefined
        return nothing_compared(
            f"there is nothing to compare: {metric} is undefined at every selected layer ({why})"
        )
    return points


def leave_one_out(
    layer: LayerProfile, metric: Metric, block_sequences: Sequence[int]
) -> list[float] | None:
    """A layer's value without each block in turn, recovered from its pseudo-values.

    With h_b = N/n_b, block b's share of the weight inverted, the pseudo-value is
    τ_b = h_b·θ − (h_b − 1)·θ₍₋b₎; hence θ₍₋b₎ = (h_b·θ − τ_b)/(h_b − 1) = θ − (τ_b − θ)/(h_b − 1),
    of which the last form is exact where leaving a block out changes nothing.

    Returns:
        One value per block; ``None`` where there are fewer than two blocks, or an empty one.
    """
    estimate = layer.estimates[metric.name]
    sizes = block_sizes(layer, metric, block_sequences)
    if estimate.value is None or len(estimate.blocks) != len(sizes) or len(sizes) < 2:
        return None
    if min(sizes) <= 0:
        return None
    total = sum(sizes)
    return [
        estimate.value - (pseudo - estimate.value) / (total / size - 1)
        for size, pseudo in zip(sizes, estimate.blocks, strict=True)
    ]


def block_sizes(
    layer: LayerProfile, metric: Metric, block_sequences: Sequence[int]
) -> Sequence[int]:
    """What each block weighs in the jackknife of ``metric`` at a layer."""
    return layer.block_representations if metric.weight == "representations" else block_sequences


def curve_text(points: Iterable[tuple[LayerProfile, float]]) -> str:
    """A curve as one line: ``0:0.05612 1:0.134 …``."""
    return " ".join(f"{layer.name}:{value:.4g}" for layer, value in points)
