"""Verdict: the outcome of one check on one entry, and of each layer in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Outcome(StrEnum):
    """Three-valued; ``INCONCLUSIVE``: these data cannot tell, or nothing was compared."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Verdict:
    """What one check says of one entry.

    Attributes:
        check: the check's name in the suite.
        model: the entry's name.
        outcome: passed, failed or inconclusive.
        headline: one line: what happened, where.
        message: the whole text for a reader of the log, headline included.
        layers: names of the layers that are the reason, first to last; empty when passed.
        properties: measured values for JUnit and JSON; plain strings and finite floats only.
        compared: how many layer values were really judged; zero can never be ``PASSED``.
        missing_baseline: there was no baseline to compare with.
        allowed: with ``INCONCLUSIVE``: the suite accepts that these data cannot tell. Never set for
            a comparison that did not take place.
        p_value: smallest p-value of a regression's layers, Holm-adjusted within the check; for the
            family-wise finding over a suite.
    """

    check: str
    model: str
    outcome: Outcome
    headline: str
    message: str
    layers: tuple[str, ...] = ()
    properties: Mapping[str, str | float] = field(default_factory=dict)
    compared: int = 0
    missing_baseline: bool = False
    allowed: bool = False
    p_value: float | None = None

    def __post_init__(self) -> None:
        if self.outcome is Outcome.PASSED and self.compared < 1:
            raise ValueError(f"check {self.check!r} passed without comparing anything")
        if self.allowed and self.outcome is not Outcome.INCONCLUSIVE:
            raise ValueError(f"check {self.check!r}: only an inconclusive outcome can be allowed")
