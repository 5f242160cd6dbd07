"""Metrics that other installed packages bring, by entry point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from isotest.errors import IsotestError, one_line
from isotest.statistics.metric import Metric

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "isotest.metrics"


class Registry(Mapping[str, Metric]):
    """Metrics by name: those given, then those of installed packages, by name.

    Packages are looked through when the registry is first read, not when it is imported.

    Attributes:
        own: those given, whatever is installed.

    Raises:
        IsotestError: on reading, where a package's entry point cannot be imported, is no metric,
            has a name that is taken, or a floor that is a share of nothing.
    """

    def __init__(self, own: tuple[Metric, ...]) -> None:
        self.own: Mapping[str, Metric] = {metric.name: metric for metric in own}

    def __getitem__(self, name: str) -> Metric:
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @cached_property
    def _all(self) -> Mapping[str, Metric]:
        found = dict(self.own)
        for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
            metric = _load(point)
            if metric.name in found:
                raise IsotestError(
                    f"{_where(point)}: there is already a metric {metric.name!r}; give it another "
                    "name"
                )
            if metric.floor_scale not in (None, metric.name, *found):
                raise IsotestError(
                    f"{_where(point)}: its floor is a share of {metric.floor_scale!r}, which is no "
                    "metric that comes before it"
                )
            found[metric.name] = metric
        return found


def _load(point: EntryPoint) -> Metric:
    try:
        metric = point.load()
    except (Exception, SystemExit) as error:
        raise IsotestError(
            f"{_where(point)}: cannot be imported: {one_line(error)}; repair or uninstall the "
            "package"
        ) from error
    if not isinstance(metric, Metric):
        raise IsotestError(
            f"{_where(point)}: expected an isotest.statistics.metric.Metric, found "
            f"{type(metric).__name__}"
        )
    if metric.name != point.name:
        raise IsotestError(
            f"{_where(point)}: expected the metric {point.name!r}, found {metric.name!r}; name the "
            "entry point like its metric"
        )
    return metric


def _where(point: EntryPoint) -> str:
    package = "an unknown package" if point.dist is None else f"package {point.dist.name}"
    return f"{package}, entry point {point.name} = {point.value!r} of {GROUP}"
