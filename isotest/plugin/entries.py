"""An entry inside a pytest run: measured once, judged check by check, recorded when asked."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from isotest.comparability import comparable
from isotest.entry import Measurement, Settings, StandIn, measure_entry
from isotest.errors import IsotestError, MeasurementError
from isotest.gate.checks import FiniteCheck, compares, without_baseline
from isotest.gate.evaluate import evaluate
from isotest.gate.message import MessageContext
from isotest.gate.verdict import Outcome, Verdict
from isotest.reproduction import reproduces

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isotest.baselines import BaselineStore
    from isotest.cache import ProfileCache
    from isotest.gate.checks import Check
    from isotest.plugin.progress import ProgressDisplay
    from isotest.plugin.settings import Options
    from isotest.profile import Profile
    from isotest.suite import ModelSpec, Suite


@dataclass(frozen=True)
class Bench:
    """What every entry of a run works with."""

    options: Options
    settings: Settings
    store: BaselineStore
    cache: ProfileCache
    progress: ProgressDisplay
    rootpath: Path


class Entry:
    """One model of one suite."""

    def __init__(self, bench: Bench, suite: Suite, spec: ModelSpec) -> None:
        self.suite = suite
        self.spec = spec
        self._bench = bench
        self._measured: Measurement | IsotestError | None = None

    @property
    def checks(self) -> Mapping[str, Check]:
        """The checks in stable order: ``finite`` first, then the suite's own."""
        return {"finite": FiniteCheck(), **self.suite.checks_of(self.spec)}

    @property
    def stand_in(self) -> StandIn | None:
        """The source that ``--isotest-model`` measures in this entry's place."""
        source = self._bench.options.stand_ins.get(self.spec.name)
        return None if source is None else StandIn(source, self._bench.options.invocation)

    @property
    def may_skip(self) -> bool:
        """Whether something missing is a skip here; what the user names explicitly never is."""
        if self.stand_in is not None:
            return False
        return self.spec.optional or self._bench.options.allow_skips

    def measurement(self) -> Measurement:
        """Measure once; an error is raised again for every check of the entry."""
        if self._measured is None:
            # A recording measures what is really there, not what was once.
            cache = None if self._bench.options.update else self._bench.cache
            self._measured = self._attempt(cache, self._bench.settings)
        if isinstance(self._measured, IsotestError):
            raise self._measured
        return self._measured

    def _attempt(
        self, cache: ProfileCache | None, settings: Settings
    ) -> Measurement | IsotestError:
        try:
            return measure_entry(
                self.suite,
                self.spec,
                settings,
                stand_in=self.stand_in,
                cache=cache,
                progress=self._bench.progress.start,
            )
        except IsotestError as error:
            return error
        finally:
            self._bench.progress.close()

    def profile(self) -> Profile:
        """What was measured."""
        return self.measurement().profile

    @cached_property
    def baseline_path(self) -> Path:
        """Where this entry's baseline is or would be."""
        return self._bench.store.path_of(self.suite.id, self.spec.name)

    @cached_property
    def baseline(self) -> Profile | None:
        """The stored baseline, if any."""
        return self._bench.store.find(self.suite.id, self.spec.name)

    def baseline_if_readable(self) -> Profile | None:
        """The baseline for the summary, which must not fail where a check already did."""
        try:
            return self.baseline
        except IsotestError:
            return None

    def judge(self, name: str) -> Verdict:
        """The verdict of check ``name``."""
        check = self.checks[name]
        if not self.records:
            # Only a comparison fails with a baseline that cannot be read.
            baseline = self.baseline if compares(check) else self.baseline_if_readable()
            return self._evaluate(name, check, baseline)
        recorded = self.recorded
        remaining = without_baseline(check)
        if remaining is None:
            return Verdict(
                check=name,
                model=self.spec.name,
                outcome=Outcome.PASSED,
                headline=f"{self.spec.name} · {name}: recorded",
                message="",
                compared=len(recorded.layers),
            )
        return self._evaluate(name, remaining, None)

    def _evaluate(self, name: str, check: Check, baseline: Profile | None) -> Verdict:
        profile = self.profile()
        if baseline is None or not compares(check):
            differences: list[str] = []
        elif self.stand_in is None:
            differences = comparable(profile, baseline)
        else:
            # What stands in is another checkpoint on purpose; everything but the commit must agree.
            provenance = replace(profile.provenance, commit=baseline.provenance.commit)
            differences = comparable(replace(profile, provenance=provenance), baseline)
        return evaluate(
            profile, baseline, name, check, differences=differences, context=self._context(name)
        )

    @cached_property
    def records(self) -> bool:
        """Whether this run records this entry's baseline."""
        update = self._bench.options.update
        gated = {name: check for name, check in self.checks.items() if compares(check)}
        if update is None or not gated or self.stand_in is not None:
            return False
        if update == "all":
            return True
        try:
            baseline = self.baseline
        except IsotestError:
            # An unreadable baseline is a failing one; recording anew is the way out of it.
            return update == "failing"
        if baseline is None:
            return True
        return update == "failing" and any(
            self._evaluate(name, check, baseline).outcome is not Outcome.PASSED
            for name, check in gated.items()
        )

    @cached_property
    def recorded(self) -> Profile:
        """The profile to record: measured again from scratch, in other batches, and the same.

        Raises:
            MeasurementError: the two measurements differ.
        """
        first = self.profile()
        size = self._bench.settings.batch_size or self.suite.measure_of(self.spec).batch_size
        second = self._attempt(None, replace(self._bench.settings, batch_size=max(1, size // 2)))
        if isinstance(second, IsotestError):
            raise second
        differences = reproduces(first, second.profile)
        if differences:
            raise MeasurementError(
                f"{self._relative(self.suite.path)}: model {self.spec.name!r} is not recorded: "
                "measured twice, from scratch and in batches of another size, it gave other "
                "numbers:\n  "
                + "\n  ".join(differences)
                + "\n  A baseline must reproduce: seed the source, and keep dropout and batch "
                "statistics out of evaluation."
            )
        return first

    def _context(self, check: str) -> MessageContext:
        suite = self._relative(self.suite.path)
        baseline = self._relative(self.baseline_path)
        node = f"{suite}::{self.spec.name}"
        quoted = shlex.quote(node)
        file = self.measurement().file
        return MessageContext(
            suite=suite,
            baseline=baseline,
            node=f"{node}::{check}",
            record=f"pytest --isotest {quoted} --isotest-update=missing",
            accept=f"pytest --isotest {quoted} --isotest-update=failing",
            diff=f"isotest diff {shlex.quote(baseline)} {shlex.quote(str(file))}" if file else "",
            stand_in=None if self.stand_in is None else self.stand_in.source,
        )

    def _relative(self, path: Path) -> str:
        return Path(os.path.relpath(path, self._bench.rootpath)).as_posix()
