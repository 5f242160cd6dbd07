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
    from collections.abc import Iterable, Sequence

    from isotest.plugin.ledger import EntryRecord

FAMILY_ALPHA = 0.01


def compared(entries: Iterable[EntryRecord]) -> bool:
    """Whether any check of these entries, ``finite`` apart, judged a value."""
    return any(
        check.compared for entry in entries for check in entry.checks if check.check != "finite"
    )


def evaluated(
    suite_path: str, entries: Sequence[EntryRecord], *, all_optional: bool, elsewhere: bool
) -> Finding:
    """A suite in which nothing was compared is red, however green its items look.

    With one exception: where every entry of the suite is optional and every check was skipped, the
    suite is skipped, as it promises nothing that a machine without the weights could keep. Only
    beside other suites, in which something was compared: a run that compared nothing is red.

    Args:
        suite_path: the suite.
        entries: those of its entries that were run.
        all_optional: whether every entry of the suite, run or not, is optional.
        elsewhere: whether another suite of the run compared something.
    """
    nodeid = f"{suite_path}::(suite)::evaluated"
    checks = [check for entry in entries for check in entry.checks if check.check != "finite"]
    if compared(entries) or not checks:
        return Finding(nodeid, None)
    every = all(check.skipped for entry in entries for check in entry.checks)
    if all_optional and every and elsewhere:
        return Finding(
            nodeid,
            None,
            skipped=f"nothing in it was evaluated: every one of its {len(entries)} model(s) that "
            "were run is optional and was skipped, as the skip of each says",
        )
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
    outcome: Literal["passed", "failed", "skipped"] = (
        "failed" if finding.problem is not None else "skipped" if finding.skipped else "passed"
    )
    # pytest takes the reason of a skip with its place.
    reason = finding.problem or (
        finding.skipped and (location[0], 1, f"Skipped: {finding.skipped}")
    )
    whens: tuple[Literal["setup", "call", "teardown"], ...] = ("setup", "call", "teardown")
    for when in whens:
        report = pytest.TestReport(
            nodeid=finding.nodeid,
            location=location,
            keywords={},
            outcome=outcome if when == "call" else "passed",
            longrepr=reason if when == "call" else None,
            when=when,
        )
        config.hook.pytest_runtest_logreport(report=report)
    config.hook.pytest_runtest_logfinish(nodeid=finding.nodeid, location=location)
