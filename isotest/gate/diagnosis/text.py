"""A diagnosis as the lines of a message, and as plain values."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from isotest.gate.diagnosis.causes import SHARED_ENERGY
from isotest.gate.diagnosis.diagnose import EXPLAINS
from isotest.gate.layers import describe_layers
from isotest.gate.numerals import number

if TYPE_CHECKING:
    from isotest.gate.diagnosis.diagnose import Cause, Diagnosis
    from isotest.gate.diagnosis.heads import Head

_MENTIONED = 0.01


def diagnosis_lines(found: Diagnosis | None) -> tuple[tuple[str, str], ...]:
    """Labelled lines of a message: the causes, and where they start."""
    if found is None:
        return ()
    lines = [("cause", text) for text in _causes(found)]
    lines += [("cause", _head(head)) for head in found.heads[:3]]
    if found.unmeasured:
        lacking = ", ".join(f"{cause} ({metric})" for cause, metric in found.unmeasured.items())
        lines.append(("cause", f"not measured: {lacking}"))
    if found.is_change:
        lines.append(("starts", _starts(found)))
    return tuple(lines)


def diagnosis_document(found: Diagnosis) -> dict[str, Any]:
    """The diagnosis as plain values for JSON."""
    return {**asdict(found), "explains": [cause.name for cause in found.leading]}


def percent(share: float) -> str:
    """A share that may be negative or above one, in whole percent.

    >>> percent(0.914), percent(-0.2), percent(1.3)
    ('91%', '-20%', '130%')
    """
    return f"{100 * share:.0f}%"


def _causes(found: Diagnosis) -> list[str]:
    if found.before is None or found.after is None:
        names = " and ".join(found.still)
        return [f"{names} did not move with it"] if found.still else []
    what = "change" if found.is_change else "level"
    shown = [cause for cause in found.causes if abs(cause.share) >= _MENTIONED]
    texts = [_cause(cause) for cause in shown]
    if abs(found.unexplained) >= _MENTIONED:
        texts.append(f"{percent(found.unexplained)} not explained by what was measured")
    if not found.leading:
        texts.insert(0, f"none of those measured explains half of the {what}")
    if found.explained == SHARED_ENERGY:
        if found.is_change:
            return ["; ".join(texts)]
        # Drift alone would not say that positions became alike: here it is what makes them so.
        alike = f"the positions of a sequence have {percent(found.after)} of their energy in common"
        return [f"{alike}: {'; '.join(texts)}"]
    if found.explained != found.metric:
        path = f"{number(found.before)} -> {number(found.after)}"
        texts.insert(0, f"of {found.explained}, {path if found.is_change else number(found.after)}")
        return [f"{texts[0]}: {'; '.join(texts[1:])}"]
    return ["; ".join(texts)]


def _cause(cause: Cause) -> str:
    text = f"{cause.name} {percent(cause.share)}"
    return f"{text} ({cause.evidence})" if cause.share >= EXPLAINS and cause.evidence else text


def _head(head: Head) -> str:
    kind = "" if head.kind == "self" else "cross-"
    entropy, weight = number(head.entropy), number(head.row_max)
    if head.before is not None and head.row_max_before is not None:
        entropy = f"{number(head.before)} -> {entropy}"
        weight = f"{number(head.row_max_before)} -> {weight}"
    return (
        f"saturated {kind}attention head {head.number} of layer {head.layer}: entropy {entropy}, "
        f"largest weight {weight}"
    )


def _starts(found: Diagnosis) -> str:
    if not found.started:
        own = f"{found.metric} did not move beyond error bar and floor by itself"
    else:
        own = f"{found.metric} at layer {found.started[0]}"
    texts = [own]
    for cause in found.leading:
        if cause.metric is None or cause.metric == found.metric:
            continue
        where = "nowhere" if cause.start is None else f"at layer {cause.start}"
        texts.append(f"{cause.metric} {where}")
    before = (
        f"earlier layers moved too: {describe_layers(list(found.earlier))}"
        if found.earlier
        else f"no layer before {found.layer} moved"
    )
    return f"{', '.join(texts)}; {before}"
