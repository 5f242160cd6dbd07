"""The controlling process: suite-level findings, recording, pruning, summary and report files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from isotest.errors import IsotestError
from isotest.gate.checks import compares
from isotest.plugin import collection
from isotest.plugin.collection import NOT_SUITES
from isotest.plugin.findings import compared, emit, evaluated, family_wise, unclaimed
from isotest.plugin.ledger import Ledger
from isotest.plugin.representation import VerdictRepr
from isotest.plugin.summary import summarise
from isotest.profile_json import read_profile
from isotest.report.entry import Finding
from isotest.reproduction import changes

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from isotest.plugin.ledger import EntryRecord
    from isotest.plugin.run import Run
    from isotest.report.entry import Result
    from isotest.suite import Suite


_PRUNE = "pytest --isotest --isotest-prune"


class Controller:
    """Only one process has it; only it writes baselines and reports."""

    def __init__(self, config: pytest.Config, run: Run) -> None:
        self._config = config
        self._run = run
        self._options = run.options
        self._ledger = Ledger()
        self._notes: list[str] = []
        self._partial = _why_partial(config, run.options.suites)
        if self._options.prune and self._partial:
            raise pytest.UsageError(
                "--isotest-prune removes what no entry claims, so it needs a full, unfiltered run "
                f"of {run.options.suites} ({self._partial}): run 'pytest --isotest "
                "--isotest-prune'"
            )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the record, and give the message a headline for short summaries and JUnit."""
        record = self._ledger.add(report)
        if report.failed and report.longrepr and isinstance(report.longrepr, str):
            headline = record.headline if record else report.longrepr.splitlines()[0]
            # pytest puts the node id before the headline, which begins with it as well.
            headline = headline.removeprefix(f"{report.nodeid}: ")
            report.longrepr = VerdictRepr(report.nodeid, headline, report.longrepr)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """After the last item, while failures still decide the exit code."""
        result = yield
        if not self._config.option.collectonly:
            # Sorted, so that the findings of one suite stand together on the terminal.
            for finding in sorted(self._conclude(), key=lambda finding: finding.nodeid):
                session.testscollected += 1
                emit(self._config, finding)
        return result

    def _conclude(self) -> list[Finding]:
        findings: list[Finding] = []
        if self._options.update is not None:
            findings.extend(self._record())
        for suite_path, entries in self._ledger.by_suite().items():
            if self._options.update is None:
                findings.append(self._evaluated(suite_path, entries))
                family = family_wise(suite_path, entries)
                if family is not None:
                    findings.append(family)
            if not self._options.prune:
                findings.append(self._unclaimed(suite_path))
        if self._options.prune:
            findings.append(self._prune())
        elif self._partial is None and (orphans := self._orphans()).problem is not None:
            # Not a testcase of every full run: there is no suite that it would belong to.
            findings.append(orphans)
        return [*findings, *self._write_reports(findings)]

    def _evaluated(self, suite_path: str, entries: Sequence[EntryRecord]) -> Finding:
        try:
            suite = collection.load(self._run, self._run.rootpath / suite_path)
            all_optional = all(spec.optional for spec in suite.models)
        except IsotestError:
            # It was a suite when it was collected; the finding on its baselines says what it is.
            all_optional = False
        finding = evaluated(
            suite_path, entries, all_optional=all_optional, elsewhere=compared(self._ledger)
        )
        if finding.skipped is not None:
            self._notes.append(f"suite skipped: {suite_path}: {finding.skipped}")
        return finding

    def _record(self) -> list[Finding]:
        """Write what the items measured; an entry with a red check is left as it was."""
        findings = []
        for entry in self._ledger:
            profile = entry.measured()
            if not entry.record or profile is None:
                continue
            nodeid = f"{entry.suite_path}::{entry.model}::recorded"
            red = [check.check for check in entry.checks if not check.passed]
            if red:
                self._notes.append(
                    f"{entry.suite_path}::{entry.model}: not recorded, because "
                    f"{', '.join(red)} did not pass"
                )
                continue
            store = self._run.store
            path = store.path_of(entry.suite, entry.model)
            try:
                old = store.find(entry.suite, entry.model)
            except IsotestError:
                old = None
            try:
                store.write(profile)
            except IsotestError as error:
                findings.append(Finding(nodeid, str(error)))
                continue
            entry.recorded = True
            findings.append(Finding(nodeid, None))
            verb = "recorded" if old is None else "recorded anew"
            self._notes.append(f"{verb} {self._relative(path)}")
            if old is not None:
                self._notes.extend(f"    {line}" for line in changes(profile, old))
        return findings

    def _claims(self, suite: Suite) -> set[Path]:
        """Baseline files that the suite's entries compare with."""
        return {
            self._run.store.path_of(suite.id, spec.name)
            for spec in suite.models
            if any(compares(check) for check in suite.checks_of(spec).values())
        }

    def _unclaimed(self, suite_path: str) -> Finding:
        try:
            suite = collection.load(self._run, self._run.rootpath / suite_path)
        except IsotestError as error:
            # It was a suite when it was collected.
            return Finding(f"{suite_path}::(suite)::baselines", str(error))
        files = self._run.store.unclaimed(self._claims(suite), suite_ids=[suite.id])
        return unclaimed(suite_path, [self._relative(path) for path in files], _PRUNE)

    def _orphans(self) -> Finding:
        """On a full run, also the baselines of suites that are not there any more."""
        suites = self._relative(self._options.suites)
        try:
            files = self._run.store.unclaimed(self._all_claims())
        except IsotestError as error:
            return Finding(f"{suites}::(suite)::baselines", str(error))
        # Those of the suites that were run are told with their suite.
        told = {self._run.store.path_of(entry.suite, "x").parent for entry in self._ledger}
        orphans = [self._relative(path) for path in files if path.parent not in told]
        return unclaimed(suites, orphans, _PRUNE)

    def _all_claims(self) -> set[Path]:
        """Claims of every suite in the suites folder, and of those that baselines lead back to."""
        claimed: set[Path] = set()
        for path in sorted(self._options.suites.rglob("*.toml")):
            if path.is_file() and path.name not in NOT_SUITES:
                claimed |= self._claims(collection.load(self._run, path))
        return claimed | self._claims_elsewhere(claimed)

    def _prune(self) -> Finding:
        """Remove every baseline that no suite claims, in the suites folder or elsewhere."""
        nodeid = f"{self._relative(self._options.suites)}::(suite)::pruned"
        try:
            removed = self._run.store.prune(self._all_claims())
        except IsotestError as error:
            return Finding(nodeid, str(error))
        self._notes.extend(f"removed {self._relative(path)}" for path in removed)
        if not removed:
            self._notes.append("nothing to prune: every baseline is claimed by an entry")
        return Finding(nodeid, None)

    def _claims_elsewhere(self, claimed: set[Path]) -> set[Path]:
        """Claims of suites outside of the suites folder, which their baselines lead back to."""
        found: set[Path] = set()
        for baseline in self._run.store.unclaimed(claimed):
            try:
                suite_id = read_profile(baseline).suite
            except IsotestError:
                continue
            path = self._run.rootpath / f"{suite_id}.toml"
            if path.is_file() and not path.is_relative_to(self._options.suites):
                found |= self._claims(collection.load(self._run, path))
        return found

    def _write_reports(self, judged: list[Finding]) -> list[Finding]:
        """The report files; that one cannot be written is a finding as well."""
        from isotest.report.files import write_json, write_markdown

        findings: list[Finding] = []
        if self._options.json is None and self._options.summary is None:
            return findings
        entries = [summarise(entry) for entry in self._ledger]
        for path, write in (
            (self._options.json, write_json),
            (self._options.summary, write_markdown),
        ):
            if path is None:
                continue
            try:
                write(entries, judged, path)
            except OSError as error:
                nodeid = f"{path.name}::(report)::written"
                findings.append(Finding(nodeid, f"{path}: cannot be written: {error.strerror}"))
        return findings

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Each model's curve beside its baseline, and what was recorded."""
        from isotest.report.terminal import summary_lines

        entries = [summarise(entry) for entry in self._ledger]
        if not entries and not self._notes:
            return
        terminalreporter.section("isotest")
        encoding = getattr(terminalreporter._tw._file, "encoding", None) or "ascii"
        width = terminalreporter._tw.fullwidth
        colours = {
            "failed": "red",
            "inconclusive": "yellow",
            "passed": "green",
            "skipped": "yellow",
        }

        def markup(text: str, result: Result) -> str:
            return terminalreporter._tw.markup(text, **{colours[result]: True})

        for line in summary_lines(entries, width=width, encoding=encoding, markup=markup):
            terminalreporter.write_line(line)
        for note in self._notes:
            terminalreporter.write_line(note)

    def _relative(self, path: Path) -> str:
        return Path(os.path.relpath(path, self._run.rootpath)).as_posix()


def _why_partial(config: pytest.Config, suites: Path) -> str | None:
    """Why this is not a run of everything in the suites folder; ``None`` if it is."""
    option = config.option
    filters = {
        "-k": option.keyword,
        "-m": option.markexpr,
        "--deselect": option.deselect,
        "--last-failed": getattr(option, "lf", False),
        "--isotest-model": config.getoption("isotest_model"),
    }
    given = [name for name, value in filters.items() if value]
    if given:
        return ", ".join(given)
    whole = [Path(config.invocation_params.dir, argument) for argument in config.args] == [suites]
    return None if whole else "only some suites were named"
