"""Limits: no selected layer above ``max`` or below ``min``, one at least at ``reach``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isotest.gate.curve import curve_text, defined_points
from isotest.gate.diagnosis import diagnose, diagnosis_lines
from isotest.gate.layers import describe_layers
from isotest.gate.numerals import decimals_for, number
from isotest.gate.part import Case, Part
from isotest.gate.quantiles import half_width
from isotest.gate.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.profile import LayerProfile

_COVERAGE = 0.95


@dataclass(frozen=True)
class _Bound:
    """One limit; ``sign`` is 1 for a maximum, -1 for a minimum."""

    limit: float
    sign: float

    def __str__(self) -> str:
        return f"{'max' if self.sign > 0 else 'min'} = {self.limit:g}"

    def excess(self, value: float) -> float:
        """How far ``value`` is outside; the limit itself is still inside."""
        return self.sign * (value - self.limit)


def judge_limit(
    case: Case,
    metric: str,
    layers: Sequence[LayerProfile],
    *,
    maximum: float | None = None,
    minimum: float | None = None,
) -> Part:
    """Judge the point values of ``metric`` at ``layers`` against the limits, both inclusive.

    A limit is a statement about what was measured, so the value decides and its error bar only
    informs. Values that do not count, and those that fail, are :func:`defined_points`'s.

    Args:
        case: what is judged.
        metric: the metric's name.
        layers: the selected layers; at least one.
        maximum: largest accepted value.
        minimum: smallest accepted value.

    Raises:
        ValueError: a limit is NaN or infinite.
    """
    bounds = [_Bound(maximum, 1.0)] if maximum is not None else []
    bounds += [_Bound(minimum, -1.0)] if minimum is not None else []
    for bound in bounds:
        if not math.isfinite(bound.limit):
            raise ValueError(f"a limit must be a finite number, found {bound}")
    counted = defined_points(metric, layers)
    if isinstance(counted, Part):
        return counted
    return _judge(case, metric, counted, bounds)


def _judge(
    case: Case,
    metric: str,
    counted: Sequence[tuple[LayerProfile, float]],
    bounds: Sequence[_Bound],
) -> Part:
    outside = {
        bound: [point for point in counted if bound.excess(point[1]) > 0] for bound in bounds
    }
    properties = _properties(counted, bounds)
    violated = [bound for bound in bounds if outside[bound]]
    if not violated:
        low, high = min(value for _, value in counted), max(value for _, value in counted)
        return Part(
            Outcome.PASSED,
            f"{metric} is {number(low)} to {number(high)} over {len(counted)} layers, within "
            f"{' and '.join(map(str, bounds))}",
            compared=len(counted),
            properties=properties,
        )
    bound = violated[0]
    points = outside[bound]
    layer, value = points[0]
    worst_layer, worst = max(points, key=lambda point: bound.excess(point[1]))
    decimals = decimals_for(layer.estimates[metric].se, value)
    names = describe_layers([point[0].name for point in points])
    details = [
        ("how sure", _how_sure(layer, metric, value, bound, decimals)),
        (
            "layers",
            (
                f"outside: {names} of {len(counted)} judged; worst is {worst_layer.label}: "
                f"{number(worst)}"
            ),
        ),
    ]
    details += diagnosis_lines(diagnose(metric, case.profile, None, layer.name))
    culprits = {point[0].name for bound in violated for point in outside[bound]}
    return Part(
        Outcome.FAILED,
        f"{metric} is {number(value, decimals)} at layer {layer.label}, "
        f"{'above' if bound.sign > 0 else 'below'} {bound}",
        details=tuple(details),
        layers=tuple(point[0].name for point in counted if point[0].name in culprits),
        compared=len(counted),
        properties={**properties, "worst_layer": worst_layer.name, "value": worst},
    )


def _how_sure(layer: LayerProfile, metric: str, value: float, bound: _Bound, decimals: int) -> str:
    estimate = layer.estimates[metric]
    if estimate.se is None or len(estimate.blocks) < 2:
        return "no error bar: fewer than two independent sequences"
    half = half_width(estimate.se, len(estimate.blocks) - 1, _COVERAGE)
    clears = "clears" if bound.excess(value) > half else "reaches back across"
    return (
        f"{number(value, decimals)} ± {number(estimate.se, decimals)}; the {_COVERAGE:.0%} "
        f"interval {clears} the limit"
    )


def _properties(
    counted: Sequence[tuple[LayerProfile, float]], bounds: Sequence[_Bound]
) -> dict[str, str | float]:
    properties: dict[str, str | float] = {"values": curve_text(counted)}
    for bound in bounds:
        layer, value = max(counted, key=lambda point: bound.excess(point[1]))
        kind = "max" if bound.sign > 0 else "min"
        properties[kind] = bound.limit
        properties[f"nearest_to_{kind}"] = value
        properties[f"nearest_to_{kind}_layer"] = layer.name
    return properties


def judge_reach(case: Case, metric: str, layers: Sequence[LayerProfile], reach: float) -> Part:
    """Judge whether the curve gets to ``reach`` at one of ``layers`` at least, ``reach`` included.

    As with the other limits the value decides and its error bar informs.

    Args:
        case: what is judged.
        metric: the metric's name.
        layers: the selected layers; at least one.
        reach: what the largest value must not be below.

    Raises:
        ValueError: ``reach`` is NaN or infinite.
    """
    if not math.isfinite(reach):
        raise ValueError(f"a limit must be a finite number, found reach = {reach}")
    counted = defined_points(metric, layers)
    if isinstance(counted, Part):
        return counted
    layer, value = max(counted, key=lambda point: point[1])
    properties: dict[str, str | float] = {
        "values": curve_text(counted),
        "reach": reach,
        "highest": value,
        "highest_layer": layer.name,
    }
    decimals = decimals_for(layer.estimates[metric].se, value)
    where = f"highest at layer {layer.label} of {len(counted)}, {number(value, decimals)}"
    if value >= reach:
        return Part(
            Outcome.PASSED,
            f"{metric} is {where}, which reaches {reach:g}",
            compared=len(counted),
            properties=properties,
        )
    bound = _Bound(reach, -1.0)
    return Part(
        Outcome.FAILED,
        f"{metric} is {where}, and no selected layer reaches {reach:g}",
        details=(
            ("how sure", _how_sure(layer, metric, value, bound, decimals)),
            ("curve", curve_text(counted)),
        ),
        layers=(layer.name,),
        compared=len(counted),
        properties=properties,
    )
