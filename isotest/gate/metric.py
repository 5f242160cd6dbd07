"""The evaluator of a metric's check: its limits, trend and regression, each a part."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isotest.errors import IsotestError
from isotest.gate.checks import NO_RELATIVE_MARGIN, subtracted_from_itself
from isotest.gate.difference import Difference, difference_of
from isotest.gate.layers import describe_layers, parse_selectors, part_of, select_layers
from isotest.gate.limits import judge_limit, judge_reach
from isotest.gate.message import verdict_of
from isotest.gate.pairing import mismatch
from isotest.gate.part import Case, Part, nothing_compared, require_baseline
from isotest.gate.regression_part import judge_regression
from isotest.gate.trend import judge_trend
from isotest.source import did_you_mean
from isotest.statistics.registry import METRICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.gate.checks import MetricCheck
    from isotest.gate.verdict import Verdict
    from isotest.profile import LayerProfile, Profile
    from isotest.statistics.metric import Metric


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
    return verdict_of(case, _parts(case, check, METRICS[name]), inconclusive=check.inconclusive)


def _parts(case: Case, check: MetricCheck, metric: Metric) -> Sequence[Part]:
    names = [layer.name for layer in case.profile.layers]
    selected = select_layers(names, check.layers)
    if not selected:
        has = f"has layers {describe_layers(names)}" if names else "has no layers at all"
        return [nothing_compared(f"layers = {check.layers!r} matches nothing: the model {has}")]
    baseline = None if check.baseline is None else require_baseline(case)
    if check.minus is None:
        return _demands(case, check, metric, selected, baseline)
    return _of_difference(case, check, check.minus, metric, selected, baseline)


def _demands(
    case: Case,
    check: MetricCheck,
    metric: Metric,
    selected: Sequence[str],
    baseline: Profile | Part | None,
) -> Sequence[Part]:
    """Everything that the check demands of one curve, judged."""
    layers: list[LayerProfile] = [layer for layer in case.profile.layers if layer.name in selected]
    parts = []
    if check.max is not None or check.min is not None:
        parts.append(judge_limit(case, metric.name, layers, maximum=check.max, minimum=check.min))
    if check.reach is not None:
        parts.append(judge_reach(case, metric.name, layers, check.reach))
    if check.trend is not None:
        parts.append(judge_trend(case, metric, check.trend, layers))
    if check.baseline is not None and baseline is not None:
        parts.append(
            baseline
            if isinstance(baseline, Part)
            else judge_regression(case, metric, check.baseline, selected, baseline)
        )
    if not parts:
        return [
            nothing_compared(
                "demands nothing; give the check 'max', 'min', 'reach', 'trend' or 'baseline'"
            )
        ]
    return parts


def _of_difference(
    case: Case,
    check: MetricCheck,
    minus: str,
    metric: Metric,
    selected: Sequence[str],
    baseline: Profile | Part | None,
) -> Sequence[Part]:
    """The same demands, of the metric less what it is in another part of the model."""
    if any(selector.stack == minus for selector in parse_selectors(check.layers)):
        return [nothing_compared(subtracted_from_itself(check.layers, minus))]
    if check.baseline is not None and check.baseline.margin_relative is not None:
        return [nothing_compared(NO_RELATIVE_MARGIN)]
    judged = [name for name in selected if part_of(name) != minus]
    if not judged:
        return [
            nothing_compared(
                f"there is nothing to compare: the model has no layers but those of {minus!r}, "
                "which is to be subtracted"
            )
        ]
    now = difference_of(case.profile, metric, minus, judged)
    if isinstance(now, Part):
        return [now]
    before = None
    if baseline is not None and not isinstance(baseline, Part):
        # Of the whole profiles: the difference has only the judged layers, of one side.
        before = mismatch(case.profile, baseline, (metric.name,)) or difference_of(
            baseline, metric, minus, judged, " in the baseline"
        )
        baseline = before if isinstance(before, Part) else before.profile
    parts = _demands(replace(case, profile=now.profile), check, now.metric, judged, baseline)
    return [_with_sides(part, now, before) for part in parts]


def _with_sides(part: Part, now: Difference, before: Difference | Part | None) -> Part:
    """A red part with both sides of the difference at the first layer that is the reason."""
    if not part.layers:
        return part
    texts = [now.text(part.layers[0])]
    if part.accept and isinstance(before, Difference):
        texts.append(before.text(part.layers[0], " in the baseline"))
    details = (("sides", text) for text in texts if text is not None)
    return replace(part, details=(*details, *part.details))
