"""One property tried on one block: examples that are always tried, then Hypothesis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.errors import MissingError, one_line
from isotest.models.seeding import seeded
from isotest.testing.outcome import PropertyOutcome, Result
from isotest.testing.property import Property, ViolationError
from isotest.testing.token_batch import TokenBatch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from isotest.testing.subject import Subject


def always_tried(width: int) -> tuple[TokenBatch, ...]:
    """The batches that no search may miss, small ones first."""
    return (
        TokenBatch(1, 2, width),
        TokenBatch(1, 1, width),
        TokenBatch(2, 3, width, kind="constant"),
        TokenBatch(2, 4, width, kind="drifted"),
        TokenBatch(3, 8, width),
    )


def tried(
    property_: Property, subject: Subject, *, examples: int, seed: int
) -> tuple[PropertyOutcome, TokenBatch | None]:
    """What becomes of a property, and the smallest batch on which it is violated.

    Args:
        property_: the property.
        subject: the block.
        examples: how many batches Hypothesis makes; more where it shrinks a counterexample.
        seed: of Hypothesis and of whatever random numbers the block draws.

    Raises:
        MissingError: Hypothesis is not installed.
    """
    with seeded(seed):
        reason = property_.excludes(subject)
    if reason is not None:
        return PropertyOutcome(property_.name, Result.NOT_APPLICABLE, reason), None
    fixed = always_tried(subject.width)
    failure = first_violation(property_, subject, fixed, seed)
    if examples:
        smaller = _searched(property_, subject, examples, seed)
        if smaller is not None and (failure is None or _size(smaller[0]) < _size(failure[0])):
            failure = smaller
    if failure is None:
        text = f"on {len(fixed) + examples} batches"
        return PropertyOutcome(property_.name, Result.HOLDS, text), None
    batch, text = failure
    return PropertyOutcome(property_.name, Result.VIOLATED, text), batch


def require_hypothesis() -> ModuleType:
    """The package hypothesis.

    Raises:
        MissingError: it is not installed.
    """
    try:
        import hypothesis
        import hypothesis.errors
    except ModuleNotFoundError as error:
        raise MissingError(
            "trying the properties of a block needs the package hypothesis",
            "pip install 'isotest[testing]'",
        ) from error
    return hypothesis


Failure = tuple[TokenBatch, str]


def first_violation(
    property_: Property, subject: Subject, batches: Sequence[TokenBatch], seed: int
) -> Failure | None:
    """The first of ``batches`` on which the property is violated, and how; ``None`` if none is."""
    for batch in batches:
        if (text := _violation(property_, subject, batch, seed)) is not None:
            return batch, text
    return None


def _violation(property_: Property, subject: Subject, batch: TokenBatch, seed: int) -> str | None:
    with seeded(seed):
        try:
            property_.check(subject, batch)
        except ViolationError as error:
            return str(error)
        except Exception as error:  # whatever somebody's block raises is a finding about it
            return f"the block raised {one_line(error)}"
    return None


def _size(batch: TokenBatch) -> tuple[int, int]:
    return batch.sequences * batch.length, batch.seed


def _searched(property_: Property, subject: Subject, examples: int, seed: int) -> Failure | None:
    """Hypothesis's search, ending in the smallest counterexample that it finds."""
    hypothesis = require_hypothesis()
    from isotest.testing.batches import batches_for

    last: Failure | None = None

    def attempt(batch: TokenBatch) -> None:
        nonlocal last
        if (text := _violation(property_, subject, batch, seed)) is not None:
            last = batch, text
            raise ViolationError(text)

    settings = hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,  # a wide block is slow, not wrong
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        verbosity=hypothesis.Verbosity.quiet,
        print_blob=False,
        report_multiple_bugs=False,
        # A wide block is slow, and may be checked from inside somebody's own property test.
        suppress_health_check=(
            hypothesis.HealthCheck.too_slow,
            hypothesis.HealthCheck.nested_given,
        ),
    )
    search = hypothesis.seed(seed)(settings(hypothesis.given(batches_for(subject.width))(attempt)))
    try:
        search()
    except ViolationError:
        return last
    except hypothesis.errors.FlakyFailure:
        if last is None:
            raise
        batch, text = last
        return batch, f"not always, so the block is not deterministic: {text}"
    return None
