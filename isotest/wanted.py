"""Which metrics an entry is measured on: those it asks for, and those that its checks need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from isotest.gate.checks import (
    CollapseExponentCheck,
    DriftCorrelationCheck,
    FixedPointCheck,
    MetricCheck,
)
from isotest.gate.drift import CURVES
from isotest.statistics.registry import METRICS, ON_TASKS, all_metrics, default_metrics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isotest.gate.checks import Check

Choice = Literal["default", "all"]

_SHOWN_BESIDE_DRIFT = ("drift_share", "centered_anisotropy")


def wanted_metrics(
    choice: Choice | Sequence[str], checks: Mapping[str, Check], *, experiment: str | None = None
) -> tuple[str, ...]:
    """The metrics to measure, in the order of the registry.

    A check is never without its metric: what it judges is measured, whatever ``choice`` says, and
    so is the metric whose magnitude its floor is a share of.

    Args:
        choice: ``"default"``, ``"all"``, or names.
        checks: the entry's checks by name.
        experiment: whose own metrics ``"all"`` holds, too; those on tasks measure nothing else, and
            all of it by default.

    >>> wanted_metrics(["anisotropy"], {"norm_std": MetricCheck(max=3.0)})
    ('anisotropy', 'mean_norm', 'norm_std')
    """
    names: set[str] = set()
    if isinstance(choice, str) and experiment in ON_TASKS:
        names |= set(all_metrics(experiment))
    elif choice == "default":
        names |= set(default_metrics())
    elif choice == "all":
        names |= set(all_metrics(experiment))
    else:
        names |= set(choice)
    for name, check in checks.items():
        if isinstance(check, MetricCheck):
            names.add(check.metric or name)
        elif isinstance(check, FixedPointCheck | CollapseExponentCheck):
            names.add(check.metric)
        elif isinstance(check, DriftCorrelationCheck):
            names |= {*CURVES, *_SHOWN_BESIDE_DRIFT}
    scales = {METRICS[name].floor_scale for name in names}
    return tuple(name for name in METRICS if name in names or name in scales)
