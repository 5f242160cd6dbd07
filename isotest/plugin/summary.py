"""From the run's records to what the reports are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.gate.verdict import Outcome
from isotest.report.entry import CheckSummary, EntrySummary, Result

if TYPE_CHECKING:
    from isotest.plugin.ledger import CheckRecord, EntryRecord


def summarise(entry: EntryRecord) -> EntrySummary:
    """One entry as the reports see it."""
    skipped = [check.skipped for check in entry.checks if check.skipped is not None]
    return EntrySummary(
        suite=entry.suite_path,
        model=entry.model,
        profile=entry.measured(),
        baseline=entry.accepted(),
        checks=tuple(_check(check) for check in entry.checks),
        cached=entry.cached,
        seconds=entry.seconds,
        skipped=skipped[0] if skipped else None,
        recorded=entry.recorded,
    )


def _check(check: CheckRecord) -> CheckSummary:
    result: Result
    if check.skipped is not None:
        result = "skipped"
    elif check.outcome == Outcome.INCONCLUSIVE.value:
        result = "inconclusive"
    else:
        result = "passed" if check.passed else "failed"
    return CheckSummary(
        name=check.check,
        result=result,
        green=check.passed or check.skipped is not None,
        headline=check.headline,
        message=check.message,
        properties=check.properties,
    )
