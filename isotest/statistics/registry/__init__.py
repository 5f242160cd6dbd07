"""The metrics isotest knows: its own, and those that installed packages bring.

Importing this costs nothing (no torch): the gate reads it to judge profiles that were measured
earlier. Another package adds a metric by an entry point of the group ``isotest.metrics`` whose
object is a :class:`isotest.statistics.metric.Metric`.
"""

from __future__ import annotations

from isotest.statistics.metric import Metric
from isotest.statistics.registry.attention import ATTENTION
from isotest.statistics.registry.drift import DRIFT
from isotest.statistics.registry.installed import Registry
from isotest.statistics.registry.kept import OF_KEPT
from isotest.statistics.registry.spectra import SPECTRA
from isotest.statistics.registry.sums import SUMS
from isotest.statistics.registry.tasks import TASKS

__all__ = ["METRICS", "ON_TASKS", "Metric", "all_metrics", "default_metrics"]

METRICS = Registry((*SUMS, *OF_KEPT, *SPECTRA, *ATTENTION, *DRIFT, *TASKS))
"""Every metric by its name, in the order of reports."""

ON_TASKS: frozenset[str | None] = frozenset(metric.experiment for metric in TASKS)
"""The experiments that measure nothing but their own metrics, as they observe no layers."""


def default_metrics() -> tuple[str, ...]:
    """The names of those that are measured unless a suite says otherwise.

    >>> "anisotropy" in default_metrics()
    True
    """
    return tuple(name for name, metric in METRICS.items() if metric.default)


def all_metrics(experiment: str | None = None) -> tuple[str, ...]:
    """The names of those that can be measured of any representations, and an experiment's own.

    Of the network of a task only its experiment's own metrics are measured.

    >>> "score_sign" in all_metrics(), "score_sign" in all_metrics("drift")
    (False, True)
    >>> all_metrics("recurrence")
    ('pair_distance', 'pair_distance_share')
    """
    kinds = (experiment,) if experiment in ON_TASKS else (None, experiment)
    return tuple(name for name, metric in METRICS.items() if metric.experiment in kinds)
