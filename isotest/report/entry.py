"""What a report needs to know of one entry of a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isotest.profile import Profile

Result = Literal["passed", "failed", "inconclusive", "skipped"]
RESULTS: tuple[Result, ...] = ("failed", "inconclusive", "passed", "skipped")
"""Worst first."""

_MAIN_METRICS = ("anisotropy", "path_accuracy", "pair_distance_share")
"""What summaries draw, all on the scale 0…1: of a suite, the first that was measured in it."""


@dataclass(frozen=True)
class CheckSummary:
    """How one check ended.

    Attributes:
        name: the check's name.
        result: how it ended; an inconclusive one may be green or red, as ``green`` says.
        green: whether the run may be green with it.
        headline: one line.
        message: the whole text, headline included.
        properties: measured values.
    """

    name: str
    result: Result
    green: bool
    headline: str = ""
    message: str = ""
    properties: Mapping[str, str | float] = field(default_factory=dict)


@dataclass(frozen=True)
class EntrySummary:
    """One model of one suite as a run left it.

    Attributes:
        suite: the suite as reports call it: its path or its id.
        model: the entry's name.
        profile: what was measured; ``None`` if nothing was.
        baseline: what it was compared with; ``None`` without a baseline.
        checks: all checks, in order.
        cached: whether the profile came from the cache.
        seconds: how long getting it took.
        skipped: why the entry did not run; names what is missing and how to get it.
        recorded: whether the profile was recorded as the baseline.
    """

    suite: str
    model: str
    profile: Profile | None = None
    baseline: Profile | None = None
    checks: tuple[CheckSummary, ...] = ()
    cached: bool = False
    seconds: float = 0.0
    skipped: str | None = None
    recorded: bool = False

    @property
    def counts(self) -> Mapping[Result, int]:
        """How many checks ended how, worst first; what did not occur is left out."""
        counted = Counter(check.result for check in self.checks)
        return {result: counted[result] for result in RESULTS if counted[result]}

    @property
    def result(self) -> Result:
        """The worst result; a check that was expected and did not run leaves the entry skipped."""
        return next(iter(self.counts), "skipped")

    @property
    def green(self) -> bool:
        """Whether nothing in it is red; an entry without any check is not green."""
        return bool(self.checks) and all(check.green for check in self.checks)


@dataclass(frozen=True)
class Finding:
    """What no single check can say: one statement about a suite or the run, a testcase of its own.

    Attributes:
        nodeid: the testcase; its first part is the suite's path.
        problem: the message if it is red; ``None`` if it is green or skipped.
        skipped: why there was nothing to state; ``None`` if something was.
    """

    nodeid: str
    problem: str | None
    skipped: str | None = None


def by_suite(entries: list[EntrySummary]) -> Mapping[str, list[EntrySummary]]:
    """Entries grouped by suite, suites and entries in the order of their appearance."""
    suites: dict[str, list[EntrySummary]] = {}
    for entry in entries:
        suites.setdefault(entry.suite, []).append(entry)
    return suites


def main_metric(entries: Sequence[EntrySummary]) -> str:
    """The metric whose curves a summary of these entries draws.

    Anisotropy, unless none of them has any but one has what an experiment on tasks measures.
    """
    profiles = [entry.profile for entry in entries if entry.profile is not None]
    for metric in _MAIN_METRICS:
        if any(metric in layer.estimates for profile in profiles for layer in profile.layers):
            return metric
    return _MAIN_METRICS[0]


def conditions(entries: list[EntrySummary]) -> str:
    """What was measured on what: data, number of samples and groups, representation, dtype, device.

    What differs between entries is listed with its alternatives.
    """
    profiles = [entry.profile for entry in entries if entry.profile is not None]
    if not profiles:
        return "nothing measured"

    def each(*values: object) -> str:
        return " or ".join(dict.fromkeys(str(value) for value in values))

    protocols = [profile.provenance.protocol for profile in profiles]
    groups = [sizes(profile) for profile in profiles]
    representations = each(*(protocol.get("representation", "unknown") for protocol in protocols))
    return (
        f"{each(*(protocol.get('data.source', 'unknown data') for protocol in protocols))}, "
        f"{each(*groups)}, representations: {representations}, "
        f"{each(*(protocol.get('dtype', 'unknown dtype') for protocol in protocols))} on "
        f"{each(*(profile.provenance.device for profile in profiles))}"
    )


def sizes(profile: Profile) -> str:
    """How many samples there were, how many sequences they became, and in how many groups."""
    samples = profile.provenance.protocol.get("data.samples", profile.sequences)
    text = f"{samples} sample{'s' if samples != 1 else ''}"
    if samples != profile.sequences:
        text += f" as {profile.sequences} sequence{'s' if profile.sequences != 1 else ''}"
    return text if profile.units == profile.sequences else f"{text} in {profile.units} groups"


def effort(entries: list[EntrySummary]) -> str:
    """How many were measured, in how long, and how many came from the cache."""
    measured = [entry for entry in entries if entry.profile is not None and not entry.cached]
    cached = sum(entry.cached for entry in entries if entry.profile is not None)
    parts = []
    if measured:
        seconds = sum(entry.seconds for entry in measured)
        parts.append(f"{len(measured)} measured in {seconds:.1f} s")
    if cached:
        parts.append(f"{cached} from the cache")
    return ", ".join(parts)
