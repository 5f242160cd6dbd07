"""The report on one block: an outcome for each property, as a table."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from isotest.errors import IsotestError
from isotest.testing.outcome import PropertyOutcome, Result

if TYPE_CHECKING:
    from isotest.profile import Profile
    from isotest.testing.subject import Claims

COLUMNS = 96
"""What a CI log shows without breaking lines."""


class BlockViolationError(IsotestError):
    """A block violates a property, or none could be shown to hold; the text is the report."""


@dataclass(frozen=True)
class BlockReport:
    """What became of each property of a block.

    It is true if at least one property holds and none is violated.

    Attributes:
        name: of the block.
        width, heads: D and H.
        claims: what it was held to.
        found: which of the claims were not made but found out.
        outcomes: of each property, in the order in which they were tried.
        drift: what the block makes of inputs with a common bias; ``None`` where it was not tried.
        notes: what else a reader must know, each a sentence.
    """

    name: str
    width: int
    heads: int
    claims: Claims
    found: tuple[str, ...]
    outcomes: tuple[PropertyOutcome, ...]
    drift: Profile | None = None
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.holding) and not self.violated

    @property
    def holding(self) -> tuple[PropertyOutcome, ...]:
        """The outcomes of the properties that hold."""
        return self._of(Result.HOLDS)

    @property
    def violated(self) -> tuple[PropertyOutcome, ...]:
        """The outcomes of the properties that are violated."""
        return self._of(Result.VIOLATED)

    @property
    def not_applicable(self) -> tuple[PropertyOutcome, ...]:
        """The outcomes of the properties that could not be demanded."""
        return self._of(Result.NOT_APPLICABLE)

    def _of(self, result: Result) -> tuple[PropertyOutcome, ...]:
        return tuple(outcome for outcome in self.outcomes if outcome.result is result)

    def __getitem__(self, name: str) -> PropertyOutcome:
        """The outcome of one property.

        Raises:
            KeyError: it was not tried.
        """
        for outcome in self.outcomes:
            if outcome.property == name:
                return outcome
        raise KeyError(name)

    def raise_if_violated(self) -> None:
        """Nothing where the report is true.

        Raises:
            BlockViolationError: a property is violated, or none holds; the text is the report.
        """
        if not self:
            raise BlockViolationError(str(self))

    def __str__(self) -> str:
        lines = [self._headline(), *_wrapped(self._claims(), "  "), ""]
        column = max((len(outcome.property) for outcome in self.outcomes), default=0) + 2
        for outcome in self.outcomes:
            start = f"{outcome.property:<{column}}{outcome.result.value:<16}"
            lines += _wrapped(start + outcome.text, " " * len(start))
            if outcome.reproduce:
                # Never wrapped: it is there to be copied.
                lines.append(f"{'':<{column}}again: {outcome.reproduce}")
        if self.drift is not None:
            from isotest.testing.drifted import drift_table

            lines += ["", *drift_table(self.drift)]
        for note in self.notes:
            lines += ["", *_wrapped(note, "  ")]
        return "\n".join(line.rstrip() for line in lines)

    def _headline(self) -> str:
        counts = (
            f"{len(self.holding)} hold, {len(self.violated)} violated, "
            f"{len(self.not_applicable)} not applicable"
        )
        verdict = "" if self.holding else " – nothing was shown"
        return f"{self.name} (width {self.width}, heads {self.heads}): {counts}{verdict}"

    def _claims(self) -> str:
        said = []
        for field in fields(self.claims):
            value = "yes" if getattr(self.claims, field.name) else "no"
            origin = " (found)" if field.name in self.found else ""
            said.append(f"{field.name} {value}{origin}")
        return f"claims: {', '.join(said)}"


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        COLUMNS,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
