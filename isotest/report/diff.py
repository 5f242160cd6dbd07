"""Two profiles, layer by layer: what changed, by how much in its own error bars, and why."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from isotest.comparability import comparable, recorded_differences
from isotest.gate.diagnosis import diagnose, diagnosis_document, diagnosis_lines
from isotest.gate.diagnosis.movement import layer_change, moved, paired
from isotest.gate.numerals import decimals_for, number, signed
from isotest.profile import labelled
from isotest.report.show import aligned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.gate.diagnosis import Diagnosis
    from isotest.profile import LayerProfile, Profile


@dataclass(frozen=True)
class Change:
    """One metric at one layer, before and after.

    Attributes:
        layer: its name.
        before: the value in the first profile; ``None`` where it is missing or undefined.
        after: the value in the second.
        change: ``after - before``.
        se: standard error of ``change``; ``None`` where the blocks are too few.
        at: where the layer stands on the axis of an experiment, if it does in both profiles.
    """

    layer: str
    before: float | None
    after: float | None
    change: float | None = None
    se: float | None = None
    at: float | None = None

    @property
    def error_bars(self) -> float | None:
        """The change in units of its standard error."""
        if self.change is None or self.se is None:
            return None
        if self.se == 0:
            return 0.0 if self.change == 0 else math.inf
        return abs(self.change) / self.se


def changes_of(before: Profile, after: Profile, metric: str) -> list[Change]:
    """The change of ``metric`` at every layer that either profile has, in order.

    Error bars are those of the block-wise differences where the profiles are paired; else both
    sides' errors count in full.
    """
    old = {layer.name: layer for layer in before.layers}
    new = {layer.name: layer for layer in after.layers}
    return [
        _change(name, before, after, old.get(name), new.get(name), metric)
        for name in dict.fromkeys([*old, *new])
    ]


def _change(
    name: str,
    before: Profile,
    after: Profile,
    old: LayerProfile | None,
    new: LayerProfile | None,
    metric: str,
) -> Change:
    base = None if old is None else old.estimates.get(metric)
    now = None if new is None else new.estimates.get(metric)
    sides = (
        None if base is None else base.value,
        None if now is None else now.value,
    )
    if old is None or new is None:
        return Change(name, *sides)
    at = new.at if new.at == old.at else None
    found = layer_change(metric, after, before, new, old)
    if found is None:
        return Change(name, *sides, at=at)
    return Change(name, *sides, found.change, None if math.isnan(found.se) else found.se, at)


def diagnosis_of(before: Profile, after: Profile, metric: str) -> Diagnosis | None:
    """Why ``metric`` changed, at the first layer where it did beyond error bar and floor."""
    layers = moved(metric, after, before)
    return diagnose(metric, after, before, layers[0]) if layers else None


def diff_document(before: Profile, after: Profile, metrics: Sequence[str]) -> dict[str, Any]:
    """The differences as plain values for JSON."""
    return {
        "format": "isotest-diff",
        "format_version": 2,
        "before": {"suite": before.suite, "model": before.model, **_source(before)},
        "after": {"suite": after.suite, "model": after.model, **_source(after)},
        "not_comparable": comparable(after, before),
        "differences": recorded_differences(after, before),
        "paired": paired(before, after),
        "changes": {
            metric: [asdict(change) for change in changes_of(before, after, metric)]
            for metric in metrics
        },
        "diagnoses": {
            metric: diagnosis_document(found)
            for metric in metrics
            for found in [diagnosis_of(before, after, metric)]
            if found is not None
        },
    }


def _source(profile: Profile) -> dict[str, str]:
    return {"source": profile.provenance.source, "weights": profile.provenance.weights}


def diff_lines(before: Profile, after: Profile, metrics: Sequence[str]) -> list[str]:
    """The differences as text: conditions first, then a table a metric."""
    lines: list[str] = []
    hindrances = comparable(after, before)
    if hindrances:
        lines.append("not comparable: a gate would refuse to judge one by the other:")
        lines += [f"  {_renamed(line)}" for line in hindrances]
    others = recorded_differences(after, before)
    if others:
        lines.append("other differences, which a gate compares across:")
        lines += [f"  {_renamed(line)}" for line in others]
    if not lines:
        lines.append("measured under the same conditions, on the same weights")
    if not paired(before, after):
        lines.append("other samples or blocks: error bars are those of unpaired profiles")
    for metric in metrics:
        lines += ["", *_table(metric, changes_of(before, after, metric))]
        lines += _why(diagnosis_of(before, after, metric))
    return lines


def _why(found: Diagnosis | None) -> list[str]:
    """The lines of a gate's message, and which layer they are about."""
    texts = diagnosis_lines(found)
    if found is None or not texts:
        return []
    labelled = [("why", f"at layer {found.layer}"), *texts]
    return [f"  {label:<8}{text}" for label, text in labelled]


def _renamed(line: str) -> str:
    """The same statement with the names that these two profiles have here."""
    return line.replace("the baseline", "the first").replace("this run", "the second")


def _table(metric: str, changes: list[Change]) -> list[str]:
    if all(change.before is not None and change.change == 0 for change in changes):
        return [f"{metric}: the same at all {len(changes)} layers"]
    columns: list[list[str]] = [
        [metric, *(f"  {labelled(change.layer, change.at)}" for change in changes)],
        ["before"],
        ["after"],
        ["change"],
        ["error bars"],
    ]
    for change in changes:
        for column, cell in zip(columns[1:], _cells(change), strict=True):
            column.append(cell)
    return aligned(columns)


def _cells(change: Change) -> list[str]:
    values = [value for value in (change.before, change.after) if value is not None]
    decimals = decimals_for(change.se, *values)
    sides = [
        "none" if value is None else number(value, decimals)
        for value in (change.before, change.after)
    ]
    if change.change is None:
        return [*sides, "", ""]
    error = "" if change.se is None else f" ± {number(change.se, decimals)}"
    bars = change.error_bars
    return [
        *sides,
        f"{signed(change.change, decimals)}{error}",
        "" if bars is None else f"{bars:.1f}",
    ]
