"""Part: one demand of a check (a limit, a comparison), judged; a verdict is made of parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isotest.gate.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isotest.gate.message import MessageContext
    from isotest.profile import Profile


@dataclass(frozen=True)
class Case:
    """What a check is judged on.

    Attributes:
        profile: what was measured.
        baseline: what it is compared with, if there is one.
        name: the check's name.
        differences: conditions in which the two differ that forbid a comparison, one text each.
        context: what a message needs to name.
    """

    profile: Profile
    baseline: Profile | None
    name: str
    differences: tuple[str, ...]
    context: MessageContext


@dataclass(frozen=True)
class Part:
    """One demand, judged.

    Attributes:
        outcome: of this demand alone.
        reason: what happened and where, as a clause that follows the name of the check.
        details: labelled lines of the message.
        layers: the layers that are the reason.
        compared: how many values were judged.
        properties: measured values for JUnit.
        undecided: with an inconclusive outcome: a comparison took place and these data cannot tell,
            which a suite may accept; a comparison that did not take place it may not.
        missing_baseline: there is no baseline.
        accept: a failure that accepting the measurement as the new baseline would end.
        p_value: smallest adjusted p-value over the layers, of being beyond the margin.
    """

    outcome: Outcome
    reason: str
    details: tuple[tuple[str, str], ...] = ()
    layers: tuple[str, ...] = ()
    compared: int = 0
    properties: Mapping[str, str | float] = field(default_factory=dict)
    undecided: bool = False
    missing_baseline: bool = False
    accept: bool = False
    p_value: float | None = None


def failed(reason: str, *layers: str, compared: int = 0) -> Part:
    """A demand that is not met for a reason that needs no statistics."""
    return Part(Outcome.FAILED, reason, layers=layers, compared=compared)


def nothing_compared(reason: str) -> Part:
    """A demand that could not be judged; never to be accepted as green."""
    return Part(Outcome.INCONCLUSIVE, reason)


def require_baseline(case: Case) -> Profile | Part:
    """The baseline, if the profile can be compared with it; else the part that says why not."""
    baseline = case.baseline
    if baseline is None:
        where = f" at {case.context.baseline}" if case.context.baseline else ""
        return Part(Outcome.FAILED, f"there is no baseline{where}", missing_baseline=True)
    same_stamp = case.profile.provenance.created == baseline.provenance.created
    if case.profile is baseline or same_stamp:
        return nothing_compared(
            "compared with itself: profile and baseline are one and the same measurement "
            f"(of {baseline.provenance.created}), which says nothing about the model"
        )
    if case.differences:
        return nothing_compared(f"not comparable: {'; '.join(case.differences)}")
    return baseline
