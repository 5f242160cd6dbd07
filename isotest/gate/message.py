"""What a check says to somebody who reads it in a log: what, where, how sure, why, what next."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from isotest.gate.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.gate.part import Case, Part

_LABEL_WIDTH = 13
_SEVERITY = (Outcome.FAILED, Outcome.INCONCLUSIVE, Outcome.PASSED)


@dataclass(frozen=True)
class MessageContext:
    """What messages name that only the caller knows; an empty text leaves its line out.

    Attributes:
        suite: path of the suite file (or the suite's id).
        baseline: path of the entry's baseline.
        node: pytest's id of the check, with which it can be run alone.
        record: command that records a missing baseline.
        accept: command that records what was measured as the new baseline.
        stand_in: the source that was measured in the entry's place, if one was.
        diff: command that shows profile and baseline side by side.
    """

    suite: str = ""
    baseline: str = ""
    node: str = ""
    record: str = ""
    accept: str = ""
    stand_in: str | None = None
    diff: str = ""

    @classmethod
    def for_library(cls, suite: str = "", model: str = "") -> MessageContext:
        """A context outside pytest: there is no command to suggest."""
        return cls(suite=suite, node="::".join(filter(None, (suite, model))))


def verdict_of(
    case: Case, parts: Sequence[Part], *, inconclusive: Literal["fail", "pass"] = "fail"
) -> Verdict:
    """Join the parts of a check into its verdict and write the message.

    One failed part fails the check, otherwise one inconclusive part makes it inconclusive. The most
    severe part speaks first.

    Args:
        case: what was judged.
        parts: the check's demands, at least one.
        inconclusive: what the suite makes of data that cannot tell.
    """
    ordered = sorted(parts, key=lambda part: _SEVERITY.index(part.outcome))
    leading = ordered[0]
    undecided = [part for part in parts if part.outcome is Outcome.INCONCLUSIVE]
    allowed = (
        leading.outcome is Outcome.INCONCLUSIVE
        and inconclusive == "pass"
        and all(part.undecided for part in undecided)
    )
    # The name of the check comes first already; most reasons begin with its metric.
    headline = f"{_subject(case)}: {leading.reason.removeprefix(f'{case.name} ')}"
    compared = sum(part.compared for part in parts)
    return Verdict(
        check=case.name,
        model=case.profile.model,
        outcome=leading.outcome,
        headline=headline,
        message=_message(headline, case, ordered),
        layers=_in_order(case, [part for part in parts if part.outcome is leading.outcome]),
        properties=_properties(case, parts),
        compared=compared,
        missing_baseline=any(part.missing_baseline for part in parts),
        allowed=allowed,
        p_value=min((part.p_value for part in parts if part.p_value is not None), default=None),
    )


def _subject(case: Case) -> str:
    return "::".join(filter(None, (case.context.suite, case.profile.model, case.name)))


def _in_order(case: Case, parts: Sequence[Part]) -> tuple[str, ...]:
    """Each layer once; those of the profile in its order, then those that it lacks."""
    named = {layer: None for part in parts for layer in part.layers}
    own = [layer.name for layer in case.profile.layers]
    return (
        *(name for name in own if name in named),
        *(name for name in named if name not in own),
    )


def _properties(case: Case, parts: Sequence[Part]) -> dict[str, str | float]:
    properties: dict[str, str | float] = {
        "sequences": float(case.profile.sequences),
        "blocks": float(len(case.profile.block_sequences)),
    }
    for part in parts:
        properties.update(part.properties)
    return properties


def _message(headline: str, case: Case, ordered: Sequence[Part]) -> str:
    leading, *others = ordered
    lines = list(leading.details)
    if case.context.stand_in is not None:
        lines.insert(0, ("measured", f"{case.context.stand_in}, in place of {case.profile.model}"))
    lines += [("also", f"{part.outcome}: {part.reason}") for part in others]
    if leading.outcome is not Outcome.PASSED:
        lines += _next(case, ordered)
    previous = ""
    text = [headline]
    for label, line in lines:
        text.append(f"  {'' if label == previous else label:<{_LABEL_WIDTH}}{line}")
        previous = label
    return "\n".join(text)


def _next(case: Case, parts: Sequence[Part]) -> list[tuple[str, str]]:
    """The commands that help from here."""
    context = case.context
    missing = any(part.missing_baseline for part in parts)
    steps = [f"again: {_again(case)}"] if context.record and not missing else []
    if missing and context.record:
        steps.append(f"record one: {context.record}")
    if context.diff and case.baseline is not None:
        steps.append(f"look: {context.diff}")
    # A checkpoint that stands in must never become the baseline of the model it is compared with.
    if context.accept and context.stand_in is None and any(part.accept for part in parts):
        steps.append(f"if the change is wanted: {context.accept}")
    return [("next", step) for step in steps]


def _again(case: Case) -> str:
    """The command that judges this check alone."""
    context = case.context
    command = f"pytest --isotest {shlex.quote(context.node)}"
    if context.stand_in is None:
        return command
    return f"{command} --isotest-model {shlex.quote(f'{case.profile.model}={context.stand_in}')}"
