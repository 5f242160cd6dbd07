"""What became of each property of a block, by name, and the report of all of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Result(StrEnum):
    """How a property turned out."""

    HOLDS = "holds"
    VIOLATED = "violated"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class PropertyOutcome:
    """One property, tried on one block.

    Attributes:
        property: its name, such as ``"causal"``.
        result: how it turned out.
        text: the smallest counterexample found, or why the property does not apply; of one that
            holds, on what it was tried.
        reproduce: one line of Python that shows a violation again; empty without one.
    """

    property: str
    result: Result
    text: str
    reproduce: str = ""
