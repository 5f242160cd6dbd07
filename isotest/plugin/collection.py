"""From suite files to pytest items: file ─► entry ─► check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from isotest.errors import IsotestError, MissingError
from isotest.gate.verdict import Outcome, Verdict
from isotest.source import MODEL_SCHEMES, parse_source
from isotest.suite import load_suite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from isotest.plugin.entries import Entry
    from isotest.plugin.run import Run
    from isotest.suite import Suite

NOT_SUITES = frozenset({"pyproject.toml"})


class VerdictError(Exception):
    """A check that is not green; carries its verdict to the report."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        super().__init__(verdict.headline)


class SuiteFile(pytest.File):
    """A suite; its children are the entries."""

    run: Run

    def collect(self) -> Iterator[EntryNode]:
        """The suite's entries, in the order of the file."""
        try:
            suite = self.run.suite(self.path)
        except IsotestError as error:
            raise self.CollectError(str(error)) from None
        self.add_marker(f"isotest_{suite.modality}")
        for spec in suite.models:
            node = EntryNode.from_parent(self, name=spec.name)
            node.entry = self.run.entry(suite, spec)
            node.add_marker(f"isotest_{parse_source(spec.source, MODEL_SCHEMES).scheme}")
            yield node


class EntryNode(pytest.Collector):
    """One model of a suite; its children are the checks."""

    entry: Entry

    def collect(self) -> Iterator[CheckItem]:
        """``finite`` first, then the checks in the order of the file."""
        for check in self.entry.checks:
            item = CheckItem.from_parent(self, name=check)
            item.entry = self.entry
            yield item


class CheckItem(pytest.Item):
    """One check on one entry."""

    entry: Entry
    verdict: Verdict | None = None

    def runtest(self) -> None:
        """Measure if need be, judge, and turn the verdict into pytest's outcome."""
        try:
            verdict = self.entry.judge(self.name)
        except MissingError as error:
            if self.entry.may_skip:
                # The suite is the place to look at, not this line.
                raise pytest.skip.Exception(str(error), _use_item_location=True) from None
            raise
        self.verdict = verdict
        self.user_properties.extend(verdict.properties.items())
        self.user_properties.append(("isotest_outcome", verdict.outcome.value))
        if verdict.outcome is Outcome.PASSED:
            return
        if verdict.outcome is Outcome.INCONCLUSIVE and verdict.allowed:
            return
        raise VerdictError(verdict)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The message alone: the code that raised it is of no use to the reader."""
        error = excinfo.value
        if isinstance(error, VerdictError):
            return error.verdict.message
        if isinstance(error, MissingError) and self.entry.stand_in is None:
            return (
                f"{error}\n(missing things fail under --isotest: mark the entry 'optional = true', "
                "or give --isotest-allow-skips)"
            )
        if isinstance(error, IsotestError):
            return str(error)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the item is, as pytest prints it."""
        return self.path, 0, f"{self.entry.spec.name}::{self.name}"


def load(run: Run, path: Path) -> Suite:
    """Load a suite below the suites folder, or, elsewhere, below rootdir."""
    suites = run.options.suites
    root = suites if path.is_relative_to(suites) else run.rootpath
    return load_suite(path, root=root)
