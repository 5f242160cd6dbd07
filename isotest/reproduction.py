"""Two measurements of one entry, value by value: did it reproduce, what does an update change."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isotest.comparability import comparable, recorded_differences
from isotest.statistics import registry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isotest.estimate import Estimate
    from isotest.profile import Profile

_SHOWN_CHANGES = 5


def reproduces(first: Profile, second: Profile) -> list[str]:
    """How two measurements of the same entry disagree; empty where the second repeats the first.

    A value repeats where it moved by no more than its metric's floor; of a metric that the
    registry does not know it must be the very same.

    Args:
        first: one measurement.
        second: the other, of the same source, data and protocol.

    Returns:
        one line a disagreement, ``"anisotropy at layer 7: first 0.113, then 0.621"``.
    """
    disagreements = _told(comparable(second, first), "the first", "the second")
    for pair in _pairs(first, second):
        if not pair.within_floor:
            disagreements.append(f"{pair.where}: first {pair.before}, then {pair.after}")
    return disagreements


def changes(new: Profile, old: Profile) -> list[str]:
    """What changes when ``new`` takes the place of ``old``: the largest first, then how many.

    The largest change of each metric is told, by size in units of its own error bar (never less
    than the metric's floor); of changes below the floors, only that there are some.

    Args:
        new: the profile to be recorded.
        old: the baseline until now.

    Returns:
        lines for the log, such as ``"anisotropy at layer 7: 0.113 → 0.621"``; empty where every
        value and condition stays as it is.
    """
    conditions = [*comparable(new, old), *recorded_differences(new, old)]
    lines = _told(conditions, "the old baseline", "the new one")
    pairs = list(_pairs(old, new))
    moved = [pair for pair in pairs if pair.moved]
    beyond = sorted((pair for pair in moved if not pair.within_floor), key=lambda pair: -pair.size)
    largest = {pair.metric: pair for pair in reversed(beyond)}
    shown = [pair for pair in beyond if largest[pair.metric] is pair][:_SHOWN_CHANGES]
    lines += [f"{pair.where}: {pair.before} → {pair.after}" for pair in shown]
    if moved:
        lines.append(
            f"{len(moved)} of {len(pairs)} values change, {len(beyond)} of them by more than "
            f"rounding, in {len(largest)} metrics"
        )
    return lines


def _told(differences: list[str], base: str, new: str) -> list[str]:
    """Differences from a baseline in words for another occasion."""
    return [line.replace("the baseline", base).replace("this run", new) for line in differences]


@dataclass(frozen=True)
class _Pair:
    """One metric at one layer, in two profiles; ``None`` where a profile lacks it."""

    metric: str
    layer: str
    old: Estimate | None
    new: Estimate | None
    estimates: Mapping[str, Estimate]

    @property
    def where(self) -> str:
        return f"{self.metric} at layer {self.layer}"

    @property
    def before(self) -> str:
        return _shown(self.old, self.new)

    @property
    def after(self) -> str:
        return _shown(self.new, self.old)

    @property
    def moved(self) -> bool:
        return self.old != self.new

    @property
    def within_floor(self) -> bool:
        old, new = self.old, self.new
        if old is None or new is None:
            return False
        if old.value is None or new.value is None:
            # Both without a value, for the same kind of reason; the words may hold numbers.
            return old.value is new.value and old.vacuous == new.vacuous
        # A NaN is within nothing, and an infinity must not be its own floor.
        floor = self._floor
        return math.isfinite(floor) and abs(new.value - old.value) <= floor

    @property
    def size(self) -> float:
        """The change in error bars; infinite where a value appears or disappears."""
        if self.old is None or self.new is None:
            return math.inf
        if self.old.value is None or self.new.value is None:
            return 0.0 if self.old.value is self.new.value else math.inf
        bar = max(self.old.se or 0.0, self.new.se or 0.0, self._floor)
        change = abs(self.new.value - self.old.value)
        return change / bar if bar > 0 else math.inf if change > 0 else 0.0

    @property
    def _floor(self) -> float:
        metric = registry.METRICS.get(self.metric)
        return 0.0 if metric is None else metric.floor_at(self.estimates)


def _pairs(old: Profile, new: Profile) -> Iterator[_Pair]:
    """Every metric at every layer that either profile has, in the order of the layers."""
    before = {layer.name: layer.estimates for layer in old.layers}
    after = {layer.name: layer.estimates for layer in new.layers}
    for name in dict.fromkeys([*before, *after]):
        ours, theirs = before.get(name, {}), after.get(name, {})
        for metric in dict.fromkeys([*ours, *theirs]):
            yield _Pair(metric, name, ours.get(metric), theirs.get(metric), ours)


def _shown(estimate: Estimate | None, other: Estimate | None) -> str:
    if estimate is None:
        return "not measured"
    if estimate.value is None:
        return f"undefined ({estimate.undefined})"
    short = f"{estimate.value:.4g}"
    if other is not None and other.value is not None and f"{other.value:.4g}" == short:
        return repr(float(estimate.value))
    return short
