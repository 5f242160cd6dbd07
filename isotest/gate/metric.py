"""The evaluator of a metric's check: its limits, trend and regression, each a part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.errors import IsotestError
from isotest.gate.layers import describe_layers, select_layers
from isotest.gate.limits import judge_limit, judge_reach
from isotest.gate.message import verdict_of
from isotest.gate.part import Case, Part, nothing_compared, require_baseline
from isotest.gate.regression_part import judge_regression
from isotest.gate.trend import judge_trend
from isotest.source import did_you_mean
from isotest.statistics.registry import METRICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.gate.checks import MetricCheck
    from isotest.gate.verdict import Verdict
    from isotest.profile import LayerProfile


def evaluate_metric(case: Case, check: MetricCheck) -> Verdict:
    """Judge limits, trend and regression of one metric.

    Raises:
        IsotestError: the metric is unknown, or ``layers`` cannot be understood.
    """
    name = check.metric or case.name
    if name not in METRICS:
        raise IsotestError(
            f"check {case.name!r}: unknown metric {name!r}{did_you_mean(name, METRICS)}"
        )
    return verdict_of(case, _parts(case, check, name), inconclusive=check.inconclusive)


def _parts(case: Case, check: MetricCheck, metric: str) -> Sequence[Part]:
    names = [layer.name for layer in case.profile.layers]
    selected = select_layers(names, check.layers)
    if not selected:
        has = f"has layers {describe_layers(names)}" if names else "has no layers at all"
        return [nothing_compared(f"layers = {check.layers!r} matches nothing: the model {has}")]
    layers: list[LayerProfile] = [layer for layer in case.profile.layers if layer.name in selected]
    parts = []
    if check.max is not None or check.min is not None:
        parts.append(judge_limit(case, metric, layers, maximum=check.max, minimum=check.min))
    if check.reach is not None:
        parts.append(judge_reach(case, metric, layers, check.reach))
    if check.trend is not None:
        parts.append(judge_trend(case, METRICS[metric], check.trend, layers))
    if check.baseline is not None:
        baseline = require_baseline(case)
        parts.append(
            baseline
            if isinstance(baseline, Part)
            else judge_regression(case, METRICS[metric], check.baseline, selected, baseline)
        )
    if not parts:
        return [
            nothing_compared(
                "demands nothing; give the check 'max', 'min', 'reach', 'trend' or 'baseline'"
            )
        ]
    return parts
