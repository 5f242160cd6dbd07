"""The evaluator of ``block_properties``: what must hold of every block, tried on this one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.gate.message import verdict_of
from isotest.gate.part import Case, Part, nothing_compared
from isotest.gate.verdict import Outcome
from isotest.source import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.gate.checks import BlockPropertiesCheck
    from isotest.gate.verdict import Verdict
    from isotest.profile import BlockProperty


def evaluate_block_properties(case: Case, check: BlockPropertiesCheck) -> Verdict:
    """Fail for each property that is violated, and for each of ``holds`` that does not hold.

    Properties that do not apply count for nothing: where none holds, nothing was compared.
    """
    tried = case.profile.properties
    if not tried:
        return verdict_of(
            case,
            [
                nothing_compared(
                    "no property was tried: the profile holds none; they are tried where a block "
                    "is measured, in suites of modality 'embeddings'"
                )
            ],
        )
    parts = [_violated(tried), *(_demanded(tried, name) for name in check.holds)]
    return verdict_of(case, [part for part in parts if part is not None] or [_held(tried)])


def _violated(tried: Sequence[BlockProperty]) -> Part | None:
    # Whatever is neither of the two good results is a bad one, a result nobody knows included.
    violated = [each for each in tried if each.result not in ("holds", "not applicable")]
    if not violated:
        return None
    first = violated[0]
    # The headline, which is one line, has the beginning of the first counterexample already.
    headline, *rest = first.text.splitlines() or [""]
    details = [("violated", f"{first.name}: {line}") for line in (*rest, *_again(first))]
    for each in violated[1:]:
        lines = (*each.text.splitlines(), *_again(each))
        details += [("violated", f"{each.name}: {line}") for line in lines]
    more = f" ({len(violated) - 1} more violated)" if len(violated) > 1 else ""
    return Part(
        Outcome.FAILED,
        f"{first.name} is violated{more}: {headline}",
        details=(*details, *_beside(tried)),
        compared=len(tried),
        properties={**_counts(tried), "violated": ", ".join(each.name for each in violated)},
    )


def _again(found: BlockProperty) -> tuple[str, ...]:
    return (f"to see it again: {found.reproduce}",) if found.reproduce else ()


def _demanded(tried: Sequence[BlockProperty], name: str) -> Part | None:
    """The failure of a property that must hold and does not, unless it is violated anyway."""
    found = next((each for each in tried if each.name == name), None)
    if found is None:
        hint = did_you_mean(name, [each.name for each in tried])
        return Part(Outcome.FAILED, f"{name} must hold and was not tried{hint}")
    if found.result != "not applicable":
        return None
    return Part(
        Outcome.FAILED,
        f"{name} must hold and does not apply: {found.text}",
        properties=_counts(tried),
    )


def _held(tried: Sequence[BlockProperty]) -> Part:
    held = [each.name for each in tried if each.result == "holds"]
    if not held:
        reasons = "; ".join(f"{each.name}: {each.text}" for each in tried)
        return nothing_compared(f"none of {len(tried)} properties applies to the block: {reasons}")
    return Part(
        Outcome.PASSED,
        f"{len(held)} of {len(tried)} properties hold, none is violated: {', '.join(held)}",
        details=_beside(tried),
        compared=len(held),
        properties=_counts(tried),
    )


def _beside(tried: Sequence[BlockProperty]) -> tuple[tuple[str, str], ...]:
    """The properties that do not apply, each with its reason."""
    return tuple(
        ("not tried", f"{each.name}: {each.text}")
        for each in tried
        if each.result == "not applicable"
    )


def _counts(tried: Sequence[BlockProperty]) -> dict[str, str | float]:
    return {
        "properties": float(len(tried)),
        "hold": float(sum(each.result == "holds" for each in tried)),
    }
