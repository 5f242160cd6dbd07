"""A property of blocks: what must hold, where it comes from, when it applies, how it is tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from isotest.testing.subject import Subject
    from isotest.testing.token_batch import TokenBatch


class ViolationError(AssertionError):
    """A property does not hold on an example; the text gives the numbers."""


@dataclass(frozen=True)
class Property:
    """What must hold of a block on every input.

    Attributes:
        name: identifies the property in reports, such as ``"causal"``.
        statement: what must hold, as one sentence.
        source: where the statement is from: a paper, or the derivation in a few words.
        conditions: of which blocks it can be demanded, in words.
        excludes: why the property does not apply to a subject, in words; ``None`` if it applies.
        check: tries the property on one example.

    ``check`` raises :class:`ViolationError` where the property does not hold.
    """

    name: str
    statement: str
    source: str
    conditions: str
    excludes: Callable[[Subject], str | None]
    check: Callable[[Subject, TokenBatch], None]
