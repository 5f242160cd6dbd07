"""What the controlling process knows of a run: the records that travel on pytest's own reports.

Under pytest-xdist the checks run in workers. Each report carries plain values (strings, numbers,
lists), the same without xdist, so there is one path: item ─► report ─► ledger. Riding on the
reports means that a worker that dies loses only what it had not reported yet.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from isotest.gate.verdict import Outcome
from isotest.profile_json import dump_profile, load_profile

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from isotest.plugin.collection import CheckItem
    from isotest.profile import Profile

ATTRIBUTE = "isotest"


@dataclass(frozen=True)
class CheckRecord:
    """One check as it ended, in plain values."""

    suite_path: str
    suite: str
    model: str
    check: str
    nodeid: str
    outcome: str
    headline: str
    message: str
    compared: int
    properties: dict[str, str | float]
    p_value: float | None = None
    skipped: str | None = None
    passed: bool = False


@dataclass
class EntryRecord:
    """One entry as it was measured; the profiles travel as JSON text.

    ``record`` is the wish to record it, ``recorded`` whether the controller has.
    """

    suite_path: str
    suite: str
    model: str
    profile: str | None = None
    baseline: str | None = None
    cached: bool = False
    seconds: float = 0.0
    record: bool = False
    recorded: bool = False
    checks: list[CheckRecord] = field(default_factory=list)

    def measured(self) -> Profile | None:
        """The measured profile."""
        return None if self.profile is None else load_profile(self.profile.encode())

    def accepted(self) -> Profile | None:
        """The baseline that it was compared with."""
        return None if self.baseline is None else load_profile(self.baseline.encode())


class Ledger:
    """All records of a run, entries in the order in which they were first reported."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], EntryRecord] = {}

    def add(self, report: pytest.TestReport) -> CheckRecord | None:
        """Take the record off a report, if it carries one."""
        payload: dict[str, Any] | None = getattr(report, ATTRIBUTE, None)
        if payload is None:
            return None
        check = CheckRecord(**payload["check"])
        entry = self._entries.setdefault(
            (check.suite, check.model), EntryRecord(check.suite_path, check.suite, check.model)
        )
        entry.checks.append(check)
        for key, value in payload.get("entry", {}).items():
            setattr(entry, key, value)
        return check

    def __iter__(self) -> Iterator[EntryRecord]:
        return iter(self._entries.values())

    def by_suite(self) -> dict[str, list[EntryRecord]]:
        """Entries grouped by the path of their suite."""
        suites: dict[str, list[EntryRecord]] = {}
        for entry in self:
            suites.setdefault(entry.suite_path, []).append(entry)
        return suites


class Reporter:
    """Puts the records of the items of this process onto their reports."""

    def __init__(self) -> None:
        self._sent: set[tuple[str, str]] = set()

    def attach(self, item: CheckItem, report: pytest.TestReport) -> None:
        """Attach the check's record, and once per entry what was measured."""
        entry = item.entry
        suite_path = item.nodeid.partition("::")[0]
        verdict = item.verdict
        skipped = report.skipped and isinstance(report.longrepr, tuple)
        check = CheckRecord(
            suite_path=suite_path,
            suite=entry.suite.id,
            model=entry.spec.name,
            check=item.name,
            nodeid=item.nodeid,
            outcome=Outcome.FAILED.value if verdict is None else verdict.outcome.value,
            headline=_first_line(report) if verdict is None else verdict.headline,
            message=report.longreprtext if verdict is None else verdict.message,
            compared=0 if verdict is None else verdict.compared,
            properties={} if verdict is None else dict(verdict.properties),
            p_value=None if verdict is None else verdict.p_value,
            skipped=str(report.longrepr[2]).removeprefix("Skipped: ")  # type: ignore[index]
            if skipped
            else None,
            passed=report.passed,
        )
        payload: dict[str, Any] = {"check": asdict(check)}
        key = (entry.suite.id, entry.spec.name)
        if verdict is not None and key not in self._sent:
            self._sent.add(key)
            measurement = entry.measurement()
            baseline = None if entry.records else entry.baseline_if_readable()
            payload["entry"] = {
                "profile": dump_profile(measurement.profile, entry.spec.name).decode(),
                "baseline": None
                if baseline is None
                else dump_profile(baseline, entry.spec.name).decode(),
                "cached": measurement.cached,
                "seconds": measurement.seconds,
                "record": entry.records,
            }
        setattr(report, ATTRIBUTE, payload)


def _first_line(report: pytest.TestReport) -> str:
    return report.longreprtext.strip().splitlines()[0] if report.longreprtext.strip() else ""
