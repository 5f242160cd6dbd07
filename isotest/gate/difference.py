"""Differences: a metric at a layer, less the same metric at the same number of another part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isotest.estimate import Estimate
from isotest.gate.curve import block_sizes, leave_one_out, non_finite
from isotest.gate.layers import describe_layers, part_of
from isotest.gate.numerals import decimals_for, number, signed
from isotest.gate.part import Part, failed, nothing_compared
from isotest.source import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.profile import LayerProfile, Profile
    from isotest.statistics.metric import Metric


@dataclass(frozen=True)
class Difference:
    """The curve of a metric in one part of a model, less that in another.

    To limits, trends and regressions it is a curve as any other: ``profile`` holds it under the
    name of ``metric``.

    Attributes:
        profile: the profile, of the judged layers only, each with the difference as an estimate.
        metric: the difference as a metric: with the direction, the weights and the floor of the
            metric that is subtracted.
        of: the metric that is subtracted.
        sides: by judged layer, itself as it was measured, and the layer that is subtracted.
    """

    profile: Profile
    metric: Metric
    of: Metric
    sides: dict[str, tuple[LayerProfile, LayerProfile]]

    def text(self, name: str, where: str = "") -> str | None:
        """Both sides and the difference at a layer; ``None`` where there is none."""
        derived = next((layer for layer in self.profile.layers if layer.name == name), None)
        if derived is None:
            return None
        layer, partner = self.sides[name]
        ours, theirs = layer.estimates[self.of.name], partner.estimates[self.of.name]
        found = derived.estimates[self.metric.name]
        if ours.value is None or theirs.value is None or found.value is None:
            return None
        decimals = decimals_for(found.se, ours.value, theirs.value)
        error = "no error bar" if found.se is None else f"± {number(found.se, decimals)}"
        return (
            f"{number(ours.value, decimals)} at layer {layer.label}, "
            f"{number(theirs.value, decimals)} at {partner.name}{where}: "
            f"{signed(found.value, decimals)} {error}"
        )


def difference_of(
    profile: Profile, metric: Metric, minus: str, selected: Sequence[str], where: str = ""
) -> Difference | Part:
    """The difference of ``metric`` at the selected layers, or the part that says why there is none.

    Both sides were measured on the same sequences. Leaving a block out leaves it out of both, so
    the blocks of the difference are the differences of the pseudo-values, and what makes some
    sequences harder than others cancels.

    Args:
        profile: what was measured.
        metric: what is subtracted from itself.
        minus: the part of the model that is subtracted.
        selected: names of the layers that count, none of them in ``minus``; at least one.
        where: added to texts, to say that it is the baseline's.
    """
    by_name = {layer.name: layer for layer in profile.layers}
    unpaired = _unpaired(list(by_name), minus, selected, where)
    if unpaired is not None:
        return unpaired
    derived = replace(metric, name=f"{metric.name} minus {minus}")
    layers: list[LayerProfile] = []
    sides: dict[str, tuple[LayerProfile, LayerProfile]] = {}
    for name in selected:
        layer, partner = by_name[name], by_name[_partner(name, minus)]
        found = _estimate(profile, metric, layer, partner, where)
        if isinstance(found, Part):
            return found
        estimates = {**layer.estimates, derived.name: found}
        if metric.floor_scale is not None and (scale := _scale(metric.floor_scale, layer, partner)):
            estimates[metric.floor_scale] = scale
        layers.append(replace(layer, estimates=estimates))
        sides[name] = (layer, partner)
    return Difference(replace(profile, layers=tuple(layers)), derived, metric, sides)


def _partner(name: str, minus: str) -> str:
    return f"{minus}.{name.rpartition('.')[2]}"


def _unpaired(names: Sequence[str], minus: str, selected: Sequence[str], where: str) -> Part | None:
    """What is wrong where two parts do not have the same layers, whatever of them is selected."""
    parts = list(dict.fromkeys(part_of(name) for name in names))
    if minus not in parts:
        named = [part for part in parts if part]
        hint = did_you_mean(minus, named) if named else ""
        return nothing_compared(
            f"there is nothing to subtract{where}: minus = {minus!r} is no part of the model"
            f"{hint}; it has layers {describe_layers(names)}"
        )
    for part in dict.fromkeys(part_of(name) for name in selected):
        ours = [name for name in names if part_of(name) == part]
        theirs = [name for name in names if part_of(name) == minus]
        alone = [name for name in ours if _partner(name, minus) not in theirs]
        shorts = {name.rpartition(".")[2] for name in ours}
        left = [name for name in theirs if name.rpartition(".")[2] not in shorts]
        if alone or left:
            lonely = alone or left
            other = minus if alone else part or "the rest of the model"
            return failed(
                f"layer {describe_layers(lonely)} has no partner in {other}{where}: to be "
                "subtracted, the two parts need the same layers",
                *lonely,
            )
    return None


def _estimate(
    profile: Profile, metric: Metric, layer: LayerProfile, partner: LayerProfile, where: str
) -> Estimate | Part:
    """The difference at one layer."""
    from isotest.statistics.jackknife import jackknife

    if layer.at != partner.at:
        return failed(
            f"layer {layer.label} and layer {partner.label} do not stand at the same place{where}",
            layer.name,
        )
    for side in (layer, partner):
        estimate = side.estimates.get(metric.name)
        if estimate is None:
            return failed(
                f"{metric.name} was not measured at layer {side.label}{where}", layer.name
            )
        fault = non_finite(estimate)
        if fault is not None:
            return failed(
                f"{metric.name} at layer {side.label} is not finite{where}: {fault}", layer.name
            )
    ours, theirs = layer.estimates[metric.name], partner.estimates[metric.name]
    if ours.value is None or theirs.value is None:
        return _undefined(metric, (layer, ours), (partner, theirs), where)
    if len(ours.blocks) != len(theirs.blocks):
        return failed(
            f"{metric.name} has {len(ours.blocks)} blocks at layer {layer.label} and "
            f"{len(theirs.blocks)} at {partner.name}{where}: they cannot be paired",
            layer.name,
        )
    if ours.basis != theirs.basis:
        return nothing_compared(
            f"not comparable: {metric.name} was measured from {ours.basis or 'everything'} at "
            f"layer {layer.label}, from {theirs.basis or 'everything'} at {partner.name}{where}"
        )
    value = ours.value - theirs.value
    without = [leave_one_out(side, metric, profile.block_sequences) for side in (layer, partner)]
    if without[0] is None or without[1] is None or len(without[0]) != len(without[1]):
        return Estimate(value, basis=ours.basis)
    found = jackknife(
        value,
        [own - other for own, other in zip(*without, strict=True)],
        block_sizes(layer, metric, profile.block_sequences),
    )
    return replace(found, basis=ours.basis)


def _undefined(
    metric: Metric,
    ours: tuple[LayerProfile, Estimate],
    theirs: tuple[LayerProfile, Estimate],
    where: str,
) -> Estimate | Part:
    """Where there is nothing to measure on both sides there is nothing to subtract; else a fault.

    On one side only, a missing value hides what the other may be: it is never passed over.
    """
    if all(estimate.value is None and estimate.vacuous for _, estimate in (ours, theirs)):
        return Estimate(None, undefined=ours[1].undefined, vacuous=True)
    layer, estimate = ours if ours[1].value is None else theirs
    other = theirs if layer is ours[0] else ours
    beside = (
        f"undefined, too: {other[1].undefined}"
        if other[1].value is None
        else number(other[1].value)
    )
    return failed(
        f"{metric.name} is undefined at layer {layer.label}{where}: {estimate.undefined}; at "
        f"{other[0].name} it is {beside}",
        ours[0].name,
    )


def _scale(name: str, layer: LayerProfile, partner: LayerProfile) -> Estimate | None:
    """What the floor is a share of: the larger side, for the difference itself may be nothing."""
    sides = [side.estimates[name] for side in (layer, partner) if name in side.estimates]
    return max(
        (side for side in sides if side.value is not None),
        key=lambda side: abs(side.value or 0.0),
        default=None,
    )
