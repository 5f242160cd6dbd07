"""``isotest selftest``: plant faults in a suite's models and demand red, then green without them.

A gate that cannot fail gates nothing. Each fault of :mod:`isotest.faults` is planted in each entry,
the entry is measured, and the suite's own checks, against its own baselines, must object. How
little of a fault they still notice is searched by bisection, which takes for granted that a check
that objects to a strength objects to all larger ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from isotest.baselines import BaselineStore
from isotest.comparability import comparable
from isotest.entry import Settings, open_entry
from isotest.errors import IsotestError, MissingError
from isotest.faults import FAULTS, Fault, fraction
from isotest.gate.checks import (
    BlockPropertiesCheck,
    CollapseBoundCheck,
    FiniteCheck,
    FixedPointCheck,
)
from isotest.gate.evaluate import evaluate
from isotest.gate.message import MessageContext
from isotest.gate.verdict import Outcome
from isotest.source import did_you_mean
from isotest.suite import load_suite

if TYPE_CHECKING:
    from isotest.entry import OpenEntry
    from isotest.gate.checks import Check
    from isotest.profile import Profile

STRENGTHS = tuple(2.0**-step for step in range(8))
"""The strengths that are searched, strongest first: 1 + log₂ 8 = 4 measurements find the answer."""

Reason = Literal["beyond", "cannot tell", "nothing compared", "no baseline", "refused"]
"""Why a check is red: beyond a limit or margin; these data cannot tell; profile and baseline cannot
be compared; there is no baseline; there is nothing to judge, as measuring ended with an error."""

Objections = Mapping[str, Reason]
"""The checks that are red, each with its reason."""

Say = Callable[[str], object]
"""Takes one line about what is going on; a self-test takes minutes."""


@dataclass(frozen=True)
class Probe:
    """A fault, planted at one strength and measured.

    Attributes:
        strength: above 0, up to 1.
        objections: what the entry's checks said.
    """

    strength: float
    objections: Objections

    @property
    def unsure(self) -> bool:
        """Whether it is red only because the data cannot tell."""
        return bool(self.objections) and set(self.objections.values()) == {"cannot tell"}


@dataclass(frozen=True)
class Trial:
    """A fault in an entry, at as many strengths as it took.

    Attributes:
        fault: what was planted.
        probes: the measurements, strongest first.
        inapplicable: why it was not planted; ``None`` where it was.
    """

    fault: Fault
    probes: tuple[Probe, ...]
    inapplicable: str | None = None

    @property
    def missed(self) -> bool:
        """Whether the full fault is green."""
        return bool(self.probes) and not self.probes[0].objections

    @property
    def weakest(self) -> Probe | None:
        """The smallest strength that is red, with all measured above it; ``None`` if none is."""
        found = None
        for probe in self.probes:
            if not probe.objections:
                break
            found = probe
        return found

    @property
    def unnoticed(self) -> Probe | None:
        """The largest strength that is green; ``None`` where all that were tried are red."""
        return next((probe for probe in self.probes if not probe.objections), None)


@dataclass(frozen=True)
class EntryTest:
    """An entry, tested.

    Attributes:
        model: its name.
        unchanged: objections to the unchanged model, measured first and last; empty if it is green.
        trials: one a fault; none where the unchanged model was red from the start.
        weights: digest of the model's weights, the same before and after.
    """

    model: str
    unchanged: Objections
    trials: tuple[Trial, ...]
    weights: str

    @property
    def missed(self) -> tuple[Trial, ...]:
        """The faults that nothing objects to."""
        return tuple(trial for trial in self.trials if trial.missed)


@dataclass(frozen=True)
class SuiteTest:
    """A suite, tested.

    Attributes:
        suite: its id.
        strengths: those that were searched, strongest first.
        entries: the entries that could be tested.
        skipped: optional entries that lack something: name to what, and how to get it.
    """

    suite: str
    strengths: tuple[float, ...]
    entries: tuple[EntryTest, ...]
    skipped: Mapping[str, str]

    @property
    def passed(self) -> bool:
        """Every fault red, and every entry green without one."""
        return not any(entry.unchanged or entry.missed for entry in self.entries)


def smallest_red(strengths: Sequence[float], red: Callable[[float], bool], /) -> float | None:
    """The smallest of ``strengths`` that is red, if red stays red as strength grows.

    Args:
        strengths: n of them, the largest first.
        red: asked at most 1 + ⌈log₂ n⌉ times, and of the largest first.

    Returns:
        ``None`` if not even the largest is red.

    >>> smallest_red([1, 1 / 2, 1 / 4, 1 / 8], lambda strength: strength > 0.2)
    0.25
    """
    if not red(strengths[0]):
        return None
    weakest, green = 0, len(strengths)
    while green - weakest > 1:
        middle = (weakest + green) // 2
        if red(strengths[middle]):
            weakest = middle
        else:
            green = middle
    return strengths[weakest]


def _most(strengths: Sequence[float]) -> int:
    """How many measurements the search may take: 1 + ⌈log₂ n⌉."""
    return 1 + (len(strengths) - 1).bit_length()


def selftest(
    path: Path,
    *,
    suites: Path,
    baselines: Path,
    models: Sequence[str] = (),
    settings: Settings | None = None,
    strengths: Sequence[float] = STRENGTHS,
    say: Say = print,
) -> SuiteTest:
    """Test the suite in ``path``.

    Args:
        path: the suite file.
        suites: the suites folder, which gives the suite its id.
        baselines: the baselines folder.
        models: names of the entries to test; all of them by default.
        settings: device, download and so on.
        strengths: what to search, strongest first; ``(1.0,)`` plants the full faults only.
        say: told what goes on, a line at a time.

    Raises:
        MissingError: an entry's weights or data are not here, and it is not optional.
        IsotestError: the suite cannot be read, nothing in it can be tested, or a model or its data
            are at fault without any fault planted.
    """
    root = suites if path.resolve().is_relative_to(suites.resolve()) else Path.cwd()
    suite = load_suite(path, root=root)
    known = [spec.name for spec in suite.models]
    for name in models:
        if name not in known:
            raise IsotestError(f"{path}: no entry is named {name!r}{did_you_mean(name, known)}")
    store = BaselineStore(baselines)
    tested: list[EntryTest] = []
    skipped: dict[str, str] = {}
    for spec in suite.models:
        if models and spec.name not in models:
            continue
        say(f"{spec.name}: loading")
        try:
            opened = open_entry(suite, spec, settings or Settings())
        except MissingError as error:
            if not spec.optional:
                raise _with_own_options(error) from None
            skipped[spec.name] = str(_with_own_options(error))
            continue
        tested.append(_test(opened, store.find(suite.id, spec.name), strengths, say))
    if not tested:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in skipped.items())
        raise IsotestError(f"{path}: nothing was tested: every entry was skipped: {reasons}")
    return SuiteTest(suite.id, tuple(strengths), tuple(tested), skipped)


def _with_own_options(error: MissingError) -> MissingError:
    """What brings a missing thing here, where options have no prefix as among those of pytest."""
    remedy = error.remedy
    for option in ("download", "device"):
        remedy = remedy.replace(f"--isotest-{option}", f"--{option}")
    return MissingError(error.what, remedy)


def _test(
    opened: OpenEntry, baseline: Profile | None, strengths: Sequence[float], say: Say
) -> EntryTest:
    from isotest.models.architecture import weights_fingerprint

    name = opened.spec.name
    weights = weights_fingerprint(opened.loaded.module)
    started = time.perf_counter()
    profile = opened.measure()
    seconds = time.perf_counter() - started
    unchanged = objections(opened.checks, profile, baseline)
    if unchanged:
        # A gate that is red anyway notices nothing.
        say(f"{name}: red without a fault; none is planted")
        return EntryTest(name, unchanged, (), weights)
    most = 1 + sum(_most(strengths) if fault.graded else 1 for fault in FAULTS)
    say(f"{name}: green without a fault; up to {most} more measurements of {seconds:.1f} s each")
    trials = []
    for fault in FAULTS:
        trials.append(_try(fault, opened, profile, baseline, strengths))
        say(f"{name}: {fault.name}: {_told(trials[-1])}")
    # Once more, and last: what was planted must have left nothing behind.
    unchanged = objections(opened.checks, opened.measure(), baseline)
    if weights_fingerprint(opened.loaded.module) != weights:
        raise IsotestError(
            f"model {name!r}: its weights changed while faults were planted, which alter outputs "
            "only: its forward pass writes to its own parameters or buffers, and so what is "
            "measured of it depends on what was before"
        )
    return EntryTest(name, unchanged, tuple(trials), weights)


def _try(
    fault: Fault,
    opened: OpenEntry,
    profile: Profile,
    baseline: Profile | None,
    strengths: Sequence[float],
) -> Trial:
    """Find the smallest strength of a fault that is red; ``profile`` is of the unchanged entry."""
    inapplicable = fault.inapplicable(opened.loaded, profile)
    if inapplicable is not None:
        return Trial(fault, (), inapplicable)
    probes: list[Probe] = []

    def red(strength: float) -> bool:
        with fault.plant(opened.loaded, opened.dataset, strength) as (loaded, dataset):
            altered = replace(opened, loaded=loaded, dataset=dataset)
            probes.append(Probe(strength, _measured(altered, baseline)))
        return bool(probes[-1].objections)

    smallest_red(strengths if fault.graded else strengths[:1], red)
    return Trial(fault, tuple(sorted(probes, key=lambda probe: -probe.strength)))


def _told(trial: Trial) -> str:
    if trial.inapplicable is not None:
        return f"not planted: {trial.inapplicable}"
    if trial.weakest is None:
        return "goes unnoticed"
    if len(trial.probes) == 1:
        return "noticed"
    strength = fraction(trial.weakest.strength)
    return f"noticed from {strength} on ({len(trial.probes)} measurements)"


def _measured(opened: OpenEntry, baseline: Profile | None) -> Objections:
    """What a run would say of an entry with a fault in it."""
    try:
        profile = opened.measure()
    except MissingError:
        raise
    except IsotestError:
        return {"measuring": "refused"}
    return objections(opened.checks, profile, baseline)


def objections(
    checks: Mapping[str, Check], profile: Profile, baseline: Profile | None
) -> Objections:
    """The checks that are red in a run, and why; what a suite accepts as undecided is green.

    Args:
        checks: by name.
        profile: what was measured.
        baseline: what it is compared with; ``None`` if there is none.
    """
    differences = [] if baseline is None else comparable(profile, baseline)
    reasons = {
        name: _reason(name, check, profile, baseline, differences) for name, check in checks.items()
    }
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _reason(
    name: str,
    check: Check,
    profile: Profile,
    baseline: Profile | None,
    differences: Sequence[str],
) -> Reason | None:
    """Why a check is red; ``None`` if it is green."""
    accepts, lenient = False, check
    decided = FiniteCheck | FixedPointCheck | BlockPropertiesCheck | CollapseBoundCheck
    if not isinstance(check, decided):
        accepts = check.inconclusive == "pass"
        # Only a check that accepts "cannot tell" tells it apart from "nothing was compared".
        lenient = check.model_copy(update={"inconclusive": "pass"})
    verdict = evaluate(
        profile,
        baseline,
        name,
        lenient,
        differences=differences,
        context=MessageContext.for_library(profile.suite, profile.model),
    )
    if verdict.outcome is Outcome.PASSED or (verdict.allowed and accepts):
        return None
    if verdict.missing_baseline:
        return "no baseline"
    if verdict.outcome is Outcome.FAILED:
        return "beyond"
    return "cannot tell" if verdict.allowed else "nothing compared"
