"""The gate's front door: a profile, a baseline and checks in, verdicts out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.gate.checks import FiniteCheck, MetricCheck, Regression
from isotest.gate.message import MessageContext
from isotest.gate.part import Case
from isotest.gate.registry import evaluator_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isotest.gate.checks import Check
    from isotest.gate.verdict import Verdict
    from isotest.profile import Profile


def evaluate(
    profile: Profile,
    baseline: Profile | None,
    name: str,
    check: Check,
    *,
    differences: Sequence[str] = (),
    context: MessageContext,
) -> Verdict:
    """Judge one check.

    Args:
        profile: what was measured.
        baseline: what the check's comparison is with; ``None`` fails a check that compares.
        name: the check's name in the suite.
        check: the check.
        differences: conditions in which profile and baseline differ that forbid a comparison.
        context: what the message needs to name.

    Returns:
        A verdict, also where nothing could be compared: nothing here is skipped.

    Raises:
        IsotestError: the check names a metric or layers that do not exist anywhere.
    """
    case = Case(profile, baseline, name, tuple(differences), context)
    return evaluator_of(check)(case, check)


def compare(
    profile: Profile, baseline: Profile | None, checks: Mapping[str, Check] | None = None
) -> list[Verdict]:
    """Judge a profile against a baseline outside pytest.

    Args:
        profile: what was measured.
        baseline: an accepted profile of the same data and protocol; may be ``None`` where
            ``checks`` hold limits only.
        checks: by name, as in a suite. By default ``finite``, and a regression at its floor for
            every metric of the baseline: the strictest question, "has anything moved?".

    Returns:
        One verdict a check, in the order of ``checks``.

    Raises:
        IsotestError: a check names a metric or layers that do not exist anywhere.
    """
    from isotest.comparability import comparable

    if checks is None:
        checks = {
            "finite": FiniteCheck(),
            **_regressions(profile if baseline is None else baseline),
        }
    differences = [] if baseline is None else comparable(profile, baseline)
    context = MessageContext.for_library(profile.suite, profile.model)
    return [
        evaluate(profile, baseline, name, check, differences=differences, context=context)
        for name, check in checks.items()
    ]


def _regressions(profile: Profile) -> dict[str, Check]:
    names = dict.fromkeys(name for layer in profile.layers for name in layer.estimates)
    return {name: MetricCheck(baseline=Regression()) for name in names}
