"""The evaluator of ``fixed_point``: what enters a block and what leaves it meet at one place."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from isotest.errors import IsotestError
from isotest.gate.crossing import Crossing, crossing
from isotest.gate.curve import curve_text
from isotest.gate.difference import Difference, difference_of
from isotest.gate.layers import describe_layers, part_of
from isotest.gate.message import verdict_of
from isotest.gate.numerals import decimals_for, number
from isotest.gate.part import Case, Part, failed, nothing_compared
from isotest.gate.quantiles import half_width
from isotest.gate.verdict import Outcome
from isotest.source import did_you_mean
from isotest.statistics.registry import METRICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.gate.checks import FixedPointCheck
    from isotest.gate.verdict import Verdict

_COVERAGE = 0.95


def evaluate_fixed_point(case: Case, check: FixedPointCheck) -> Verdict:
    """Judge where the metric of one part of a profile meets that of another.

    Raises:
        IsotestError: the metric is unknown.
    """
    if check.metric not in METRICS:
        raise IsotestError(
            f"check {case.name!r}: unknown metric {check.metric!r}"
            f"{did_you_mean(check.metric, METRICS)}"
        )
    return verdict_of(case, [_judge(case, check)])


@dataclass(frozen=True)
class _Place:
    """A fixed point with its error bar over the blocks."""

    crossing: Crossing
    se: float
    half: float
    blocks: int

    @property
    def text(self) -> str:
        """The place with its interval."""
        at = self.crossing.at
        decimals = decimals_for(self.se, at)
        low, high = number(at - self.half, decimals), number(at + self.half, decimals)
        return (
            f"N = {number(at, decimals)} ({_COVERAGE:.0%} interval {low} to {high} over "
            f"{self.blocks} blocks)"
        )


def _judge(case: Case, check: FixedPointCheck) -> Part:
    if check.of == check.minus:
        return nothing_compared(
            f"of and minus are both {check.of!r}: a curve meets itself everywhere"
        )
    names = [layer.name for layer in case.profile.layers]
    selected = [name for name in names if part_of(name) == check.of]
    if not selected:
        named = [part for part in dict.fromkeys(map(part_of, names)) if part]
        hint = did_you_mean(check.of, named) if named else ""
        return nothing_compared(
            f"of = {check.of!r} is no part of the model{hint}; it has layers "
            f"{describe_layers(names)}"
        )
    found = difference_of(case.profile, METRICS[check.metric], check.minus, selected)
    if isinstance(found, Part):
        return found
    axis = _axis(found)
    if isinstance(axis, Part):
        return axis
    place = _place(found, axis)
    if isinstance(place, Part):
        return place
    return _describe(check, found, place)


def _axis(found: Difference) -> list[float] | Part:
    """Where the layers stand, in strictly increasing order."""
    layers = found.profile.layers
    nowhere = [layer.name for layer in layers if layer.at is None or not math.isfinite(layer.at)]
    if nowhere:
        return failed(
            f"layer {describe_layers(nowhere)} has no place on an axis (N): a fixed point is one "
            "of an experiment that moves along one",
            *nowhere,
        )
    axis = [layer.at for layer in layers if layer.at is not None]
    for (before, here), (after, there) in pairwise(zip(layers, axis, strict=True)):
        if there <= here:
            return failed(
                f"N does not increase from layer {before.label} to {after.label}",
                before.name,
                after.name,
            )
    return axis


def _place(found: Difference, axis: Sequence[float]) -> _Place | Part:
    from isotest.statistics.jackknife import standard_error

    name, profile = found.metric.name, found.profile
    estimates = [layer.estimates[name] for layer in profile.layers]
    for layer, estimate in zip(profile.layers, estimates, strict=True):
        if estimate.value is None:
            return failed(
                f"{name} is undefined at layer {layer.label}: {estimate.undefined}", layer.name
            )
    curve = [estimate.value for estimate in estimates if estimate.value is not None]
    if len(curve) < 2:
        return nothing_compared(
            f"there is nothing to compare: {name} has one point, and a curve meets another between "
            "two"
        )
    floors = [found.metric.floor_at(layer.estimates) for layer in profile.layers]
    overall = crossing(axis, curve, floors)
    if isinstance(overall, str):
        return Part(
            Outcome.FAILED,
            f"there is no one fixed point: {name} {overall}",
            details=(("curve", _curve(found)),),
            layers=tuple(layer.name for layer in profile.layers),
            compared=len(curve),
        )
    blocks = min(len(estimate.blocks) for estimate in estimates)
    if blocks < 2:
        return nothing_compared(
            f"there is no error bar for the fixed point, N = {number(overall.at)}: it takes two "
            "blocks of independent sequences, and a value of each of them at every layer"
        )
    places: list[float] = []
    lacking: dict[int, str] = {}
    for block in range(blocks):
        own = crossing(axis, [estimate.blocks[block] for estimate in estimates], floors)
        if isinstance(own, str):
            lacking[block] = own
        elif own.falls != overall.falls:
            lacking[block] = "crosses zero the other way"
        else:
            places.append(own.at)
    if lacking:
        block, why = next(iter(lacking.items()))
        numbers = ", ".join(map(str, lacking))
        return Part(
            Outcome.FAILED,
            f"the fixed point N = {number(overall.at)} is not one of every block: in "
            f"{len(lacking)} of {blocks} there is none; in block {block}, {name} {why}",
            details=(
                ("blocks", f"without one: {numbers} of 0-{blocks - 1}"),
                ("curve", _curve(found)),
            ),
            compared=len(curve),
        )
    se = standard_error(places, profile.block_sequences)
    if se is None or not math.isfinite(se):
        return failed(f"the fixed point N = {number(overall.at)} has no finite error bar: {se}")
    half = half_width(se, blocks - 1, _COVERAGE)
    return _Place(overall, se, half, blocks)


def _describe(check: FixedPointCheck, found: Difference, place: _Place) -> Part:
    layers, at = found.profile.layers, place.crossing.at
    before, after = layers[place.crossing.before], layers[place.crossing.after]
    meets = f"{check.metric} of {check.of} meets that of {check.minus} at {place.text}"
    way = "falls below" if place.crossing.falls else "rises above"
    details = [
        ("how", f"with N, {check.metric} of {check.of} {way} that of {check.minus}"),
        *(("sides", text) for layer in (before, after) if (text := found.text(layer.name))),
        ("curve", _curve(found)),
    ]
    properties: dict[str, str | float] = {
        "fixed_point": at,
        "se": place.se,
        "low": at - place.half,
        "high": at + place.half,
        "direction": "falls" if place.crossing.falls else "rises",
        "values": _curve(found),
    }
    bounds = {"min": (check.min, 1.0), "max": (check.max, -1.0)}
    for key, (limit, sign) in bounds.items():
        if limit is None:
            continue
        properties[key] = limit
        if sign * (at - limit) < 0:
            clears = "clears" if sign * (at - limit) < -place.half else "reaches back across"
            details.insert(0, ("how sure", f"the {_COVERAGE:.0%} interval {clears} the limit"))
            return Part(
                Outcome.FAILED,
                f"{meets}, {'below' if sign > 0 else 'above'} {key} = {limit:g}",
                details=tuple(details),
                layers=(before.name, after.name),
                compared=len(layers),
                properties=properties,
            )
    within = [f"{key} = {limit:g}" for key, (limit, _) in bounds.items() if limit is not None]
    return Part(
        Outcome.PASSED,
        meets + (f", within {' and '.join(within)}" if within else ""),
        details=tuple(details),
        compared=len(layers),
        properties=properties,
    )


def _curve(found: Difference) -> str:
    name = found.metric.name
    points = [(layer, layer.estimates[name].value) for layer in found.profile.layers]
    return curve_text((layer, value) for layer, value in points if value is not None)
