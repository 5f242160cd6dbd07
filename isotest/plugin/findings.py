"""Suite-level findings: what no single check can say, as testcases of their own.

They are judged by the controlling process when all checks have been reported, and enter pytest as
ordinary reports, so that the exit code, the terminal and JUnit count them alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from isotest.gate import multiplicity
from isotest.report.entry import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.plugin.ledger import EntryRecord

FAMILY_ALPHA = 0.01


def evaluated(suite_path: str, entries: Sequence[EntryRecord]) -> Finding:
    """A suite in which nothing was compared is red, however green its items look."""
    nodeid = f"{suite_path}::(suite)::evaluated"
    checks = [check for entry in entries for check in entry.checks if check.check != "finite"]
    if any(check.compared for check in checks) or not checks:
        return Finding(nodeid, None)
    skipped = sorted({c.skipped for entry in entries for c in entry.checks if c.skipped})
    why = "".join(f"\n  skipped: {reason}" for reason in skipped)
    advice = (
        "Bring what is missing, or do not run this suite here."
        if skipped
        else "The failures of its checks say why."
    )
    return Finding(
        nodeid,
        f"{suite_path}: no check compared anything: expected at least one measured value to be "
        f"judged, found none in {len(checks)} check(s) of {len(entries)} model(s).{why}\n"
        f"  {advice}",
    )


def family_wise(suite_path: str, entries: Sequence[EntryRecord]) -> Finding | None:
    """Are the failures of many checks more than chance? Holm over all regressions of the suite."""
    nodeid = f"{suite_path}::(suite)::family-wise"
    p_values = {
        f"{entry.model} · {check.check}": check.p_value
        for entry in entries
        for check in entry.checks
        if check.p_value is not None
    }
    if not p_values:
        return None
    family = multiplicity.family_wise(p_values, FAMILY_ALPHA)
    if not family.rejected:
        return Finding(nodeid, None)
    lines = "".join(f"\n  {name}: p = {family.adjusted[name]:.2g}" for name in family.rejected)
    return Finding(
        nodeid,
        f"{suite_path}: {len(family.rejected)} of {len(p_values)} regression checks lie beyond "
        f"their margin even after correction over the whole suite (Holm, {FAMILY_ALPHA:.0%}), so "
        f"this is not the chance of many comparisons:{lines}",
    )


def unclaimed(suite_path: str, files: Sequence[str], prune: str) -> Finding:
    """Baselines that no entry claims are red: they gate nothing and look as if they did."""
    nodeid = f"{suite_path}::(suite)::baselines"
    if not files:
        return Finding(nodeid, None)
    listing = "".join(f"\n  {file}" for file in files)
    return Finding(
        nodeid,
        f"{suite_path}: {len(files)} baseline file(s) that no gated entry claims (renamed or "
        f"removed entries?):{listing}\n  Remove them with: {prune}",
    )


def emit(config: pytest.Config, finding: Finding) -> None:
    """Enter a finding into pytest as the report of a testcase."""
    location = (finding.nodeid.partition("::")[0], None, finding.nodeid.rpartition("::")[2])
    config.hook.pytest_runtest_logstart(nodeid=finding.nodeid, location=location)
    outcome: Literal["passed", "failed"] = "passed" if finding.problem is None else "failed"
    whens: tuple[Literal["setup", "call", "teardown"], ...] = ("setup", "call", "teardown")
    for when in whens:
        report = pytest.TestReport(
            nodeid=finding.nodeid,
            location=location,
            keywords={},
            outcome=outcome if when == "call" else "passed",
            longrepr=finding.problem if when == "call" else None,
            when=when,
        )
        config.hook.pytest_runtest_logreport(report=report)
    config.hook.pytest_runtest_logfinish(nodeid=finding.nodeid, location=location)
