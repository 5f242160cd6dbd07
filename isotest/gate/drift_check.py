"""The evaluator of ``drift_correlation``: the finding that is expected, or the baseline's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.gate.curve import non_finite
from isotest.gate.drift import (
    CURVES,
    DriftCorrelation,
    changed_beyond_chance,
    drift_correlation,
    jackknife_interval,
)
from isotest.gate.message import verdict_of
from isotest.gate.numerals import number, p_value
from isotest.gate.pairing import mismatch
from isotest.gate.part import Case, Part, failed, nothing_compared, require_baseline
from isotest.gate.verdict import Outcome

if TYPE_CHECKING:
    from isotest.gate.checks import DriftCorrelationCheck
    from isotest.gate.correlation import Correlation, Statistic
    from isotest.gate.verdict import Verdict
    from isotest.profile import Profile

_UNIDENTIFIABLE = "not identifiable"


def evaluate_drift_correlation(case: Case, check: DriftCorrelationCheck) -> Verdict:
    """Judge whether drift explains anisotropy as the check demands."""
    parts = []
    found = correlate_profile(case.profile, check.statistic, check.alpha)
    if isinstance(found, Part):
        return verdict_of(case, [found], inconclusive=check.inconclusive)
    if check.expect is not None:
        parts.append(_expected(case, check, found, check.expect))
    if check.baseline is not None:
        baseline = require_baseline(case)
        parts.append(
            baseline if isinstance(baseline, Part) else _same(case, check, found, baseline)
        )
    if not parts:
        parts.append(nothing_compared("demands nothing; give the check 'expect' or 'baseline'"))
    return verdict_of(case, parts, inconclusive=check.inconclusive)


def correlate_profile(
    profile: Profile, statistic: Statistic, alpha: float, *, where: str = ""
) -> DriftCorrelation | Part:
    """The drift correlation of a profile, or the failure that stands in its way.

    Args:
        profile: with all of :data:`isotest.gate.drift.CURVES` at every layer.
        statistic: which correlation decides.
        alpha: its significance level.
        where: added to texts, to say that it is the baseline's.
    """
    curves: dict[str, list[float]] = {metric: [] for metric in CURVES}
    for layer in profile.layers:
        for metric, curve in curves.items():
            estimate = layer.estimates.get(metric)
            if estimate is None:
                return failed(f"{metric} was not measured at layer {layer.name}{where}", layer.name)
            fault = non_finite(estimate)
            if fault is not None:
                return failed(
                    f"{metric} at layer {layer.name} is not finite{where}: {fault}", layer.name
                )
            if estimate.value is None:
                return failed(
                    f"{metric} is undefined at layer {layer.name}{where}: {estimate.undefined}",
                    layer.name,
                )
            curve.append(estimate.value)
    if not profile.layers:
        return nothing_compared(f"there is nothing to compare: no layers{where}")
    return drift_correlation(*curves.values(), statistic=statistic, alpha=alpha)


def _expected(
    case: Case, check: DriftCorrelationCheck, found: DriftCorrelation, expected: str
) -> Part:
    same = found.finding == expected
    undecided = not same and found.finding == _UNIDENTIFIABLE
    outcome = Outcome.PASSED if same else Outcome.INCONCLUSIVE if undecided else Outcome.FAILED
    return Part(
        outcome,
        _clause(found) + ("" if same else f"; expected: {expected}"),
        details=_details(case.profile, check.statistic, found),
        compared=found.layers,
        properties=_properties(found),
        undecided=undecided,
    )


def _same(
    case: Case, check: DriftCorrelationCheck, found: DriftCorrelation, baseline: Profile
) -> Part:
    fault = mismatch(case.profile, baseline, CURVES)
    if fault is not None:
        return fault
    before = correlate_profile(baseline, check.statistic, check.alpha, where=" in the baseline")
    if isinstance(before, Part):
        return before
    same = found.finding == before.finding
    undecided = not same and not _really_changed(case, check, found, before, baseline)
    outcome = Outcome.PASSED if same else Outcome.INCONCLUSIVE if undecided else Outcome.FAILED
    reason = (
        f"{found.finding}, as in the baseline"
        if same
        else f"{_clause(found)}; baseline: {before.finding}"
    )
    details = _details(case.profile, check.statistic, found)
    if not same:
        details += (
            ("baseline", _correlation_text(check.statistic, before.correlation(check.statistic))),
        )
    if undecided:
        details += (("how sure", "the change may be chance: more sequences would tell"),)
    return Part(
        outcome,
        reason,
        details=details,
        compared=found.layers,
        properties={**_properties(found), "baseline_finding": before.finding},
        undecided=undecided,
        accept=not same,
    )


def _really_changed(
    case: Case,
    check: DriftCorrelationCheck,
    found: DriftCorrelation,
    before: DriftCorrelation,
    baseline: Profile,
) -> bool:
    """Whether another finding is more than a p-value that hopped over its threshold."""
    ours, theirs = found.correlation(check.statistic), before.correlation(check.statistic)
    if _UNIDENTIFIABLE in (found.finding, before.finding) or ours is None or theirs is None:
        # The curves themselves became, or ceased to be, something that can be correlated.
        return before.finding == _UNIDENTIFIABLE
    changed = changed_beyond_chance(
        case.profile, baseline, check.statistic, ours.value - theirs.value, check.alpha
    )
    return bool(changed)


def _clause(found: DriftCorrelation) -> str:
    if found.finding == _UNIDENTIFIABLE:
        return f"whether drift explains anisotropy is not identifiable: {found.reason}"
    return f"anisotropy is {found.finding} by drift"


def _correlation_text(
    statistic: Statistic, found: Correlation | None, interval: tuple[float, float] | None = None
) -> str:
    name = statistic.capitalize()
    if found is None:
        return f"{name} undefined: a curve is constant"
    text = f"{name} {found.value:.2f}, {p_value(found.p_value)}"
    if found.p_value != found.p_student:
        text += f" over all orders (by Student's t {found.p_student:.2g})"
    if interval is not None:
        text += f", 95% interval {interval[0]:.2f} to {interval[1]:.2f}"
    return text


def _details(
    profile: Profile, statistic: Statistic, found: DriftCorrelation
) -> tuple[tuple[str, str], ...]:
    order: tuple[Statistic, Statistic] = (
        ("spearman", "pearson") if statistic == "spearman" else ("pearson", "spearman")
    )
    lines = []
    for name in order:
        correlation = found.correlation(name)
        interval = (
            None if correlation is None else jackknife_interval(profile, name, correlation.value)
        )
        lines.append(("correlation", _correlation_text(name, correlation, interval)))
    shares = [
        estimate.value
        for layer in profile.layers
        if (estimate := layer.estimates.get("drift_share")) and estimate.value is not None
    ]
    share = f"drift_share {number(min(shares))} to {number(max(shares))}; " if shares else ""
    lines.append(
        ("drift", f"{share}norms vary by {found.norm_variation:.0%} over {found.layers} layers")
    )
    return tuple(lines)


def _properties(found: DriftCorrelation) -> dict[str, str | float]:
    properties: dict[str, str | float] = {
        "finding": found.finding,
        "norm_variation": found.norm_variation,
    }
    for name, correlation in (("spearman", found.spearman), ("pearson", found.pearson)):
        if correlation is not None:
            properties[name] = correlation.value
            properties[f"{name}_p"] = correlation.p_value
    return properties
