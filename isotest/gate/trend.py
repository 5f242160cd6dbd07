"""Trends: from one selected layer to the next a curve falls, or rises, beyond its error bar."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from isotest.gate.curve import curve_text, defined_points, leave_one_out
from isotest.gate.layers import part_of
from isotest.gate.numerals import decimals_of_change, number, p_value, signed
from isotest.gate.part import Case, Part, nothing_compared
from isotest.gate.regressions import LayerChange, judge_changes
from isotest.gate.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.gate.checks import Trend
    from isotest.gate.regressions import Judgement
    from isotest.profile import LayerProfile, Profile
    from isotest.statistics.metric import Metric


def judge_trend(case: Case, metric: Metric, demand: Trend, layers: Sequence[LayerProfile]) -> Part:
    """Judge every step of a curve from one selected layer to the next of the same part of a model.

    Both ends of a step were measured on the same sequences, so its error bar is the paired one of
    two profiles: leaving a block out leaves it out of both ends. A step of s·Δ, s the demanded
    direction, must be larger than m = max(``by``, floor): the regressions' two one-sided tests with
    the margin −m. Flat curves, known to be flat, fail; those that the error bar leaves open are
    inconclusive.

    Args:
        case: what is judged.
        metric: the metric, with its floor.
        demand: direction, smallest step and level.
        layers: the selected layers, in depth order; at least one.
    """
    points = defined_points(metric.name, layers)
    if isinstance(points, Part):
        return points
    steps = [
        (before, after)
        for before, after in pairwise(layer for layer, _ in points)
        if part_of(before.name) == part_of(after.name)
    ]
    if not steps:
        names = ", ".join(layer.name for layer, _ in points)
        return nothing_compared(
            "there is nothing to compare: a trend leads from one layer to the next of a part of "
            f"the model, and only {names} counts"
        )
    changes: list[LayerChange] = []
    for before, after in steps:
        change = _step(case.profile, metric, demand, before, after)
        if change is None:
            return nothing_compared(
                f"there is no error bar for the step from layer {before.label} to {after.label}: "
                "it takes two blocks of independent sequences, and representations of each block"
            )
        changes.append(change)
    judgement = judge_changes(
        changes, "up" if demand.direction == "falls" else "down", demand.alpha
    )
    return _describe(metric, demand, points, steps, judgement)


def _step(
    profile: Profile, metric: Metric, demand: Trend, before: LayerProfile, after: LayerProfile
) -> LayerChange | None:
    """The change over one step with its paired error bar; ``None`` without one."""
    from isotest.statistics.jackknife import jackknife

    base, new = before.estimates[metric.name].value, after.estimates[metric.name].value
    assert base is not None
    assert new is not None
    without = [leave_one_out(layer, metric, profile.block_sequences) for layer in (before, after)]
    if without[0] is None or without[1] is None or len(without[0]) != len(without[1]):
        return None
    changes = [end - start for start, end in zip(*without, strict=True)]
    se = jackknife(new - base, changes, profile.block_sequences).se
    if se is None or not math.isfinite(se):
        return None
    floor = max(metric.floor_at(before.estimates), metric.floor_at(after.estimates))
    return LayerChange(
        layer=after.name,
        base=base,
        new=new,
        change=new - base,
        se=se,
        df=len(changes) - 1,
        margin=-max(demand.by, floor),
        floor=floor,
        at=after.at,
    )


def _describe(
    metric: Metric,
    demand: Trend,
    points: Sequence[tuple[LayerProfile, float]],
    steps: Sequence[tuple[LayerProfile, LayerProfile]],
    judgement: Judgement,
) -> Part:
    properties: dict[str, str | float] = {
        "values": curve_text(points),
        "trend": demand.direction,
        "steps": float(len(steps)),
    }
    beyond, undecided = judgement.at("beyond"), judgement.at("undecided")
    if judgement.outcome is Outcome.PASSED:
        return Part(
            Outcome.PASSED,
            f"{metric.name} {demand.direction} at each of {len(steps)} steps{_by(demand)}: "
            f"{curve_text(points)}",
            compared=len(steps),
            properties=properties,
        )
    culprits = beyond or undecided
    index = judgement.changes.index(culprits[0])
    change, (before, after) = judgement.changes[index], steps[index]
    decimals = decimals_of_change(change.change, change.se, change.base, change.new)
    verb = demand.direction.removesuffix("s")
    reason = (
        f"{metric.name} does not {verb}{_by(demand)} from layer {before.label} to {after.label}: "
        if beyond
        else f"these data cannot tell whether {metric.name} {demand.direction}{_by(demand)} from "
        f"layer {before.label} to {after.label}: "
    )
    names = ", ".join(
        f"{steps[i][0].name} to {steps[i][1].name}"
        for i, step in enumerate(judgement.changes)
        if step in culprits
    )
    sure = (
        f"{p_value(judgement.adjusted[index])} if there were such a step"
        if beyond
        else "the error bar covers both; more sequences would tell"
    )
    return Part(
        judgement.outcome,
        f"{reason}{number(change.base, decimals)} to {number(change.new, decimals)}",
        details=(
            ("step", f"{signed(change.change, decimals)} ± {number(change.se, decimals)}; {sure}"),
            ("steps", f"{names}; {len(culprits)} of {len(steps)}"),
            ("curve", curve_text(points)),
        ),
        layers=tuple(step.layer for step in culprits),
        compared=len(steps),
        properties={**properties, "worst_step": f"{before.name} to {after.name}"},
        undecided=not beyond,
    )


def _by(demand: Trend) -> str:
    return f" by {demand.by:g} or more" if demand.by else ""
