"""One property tried on one block: batches that are always tried, then Hypothesis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isotest.errors import BlockError, MissingError, one_line
from isotest.models.seeding import seeded
from isotest.testing.property import Property, ViolationError
from isotest.testing.token_batch import TokenBatch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from isotest.testing.subject import Subject


@dataclass(frozen=True)
class Failure:
    """A batch on which a property is violated.

    Attributes:
        batch: the batch.
        text: what is wrong, with the numbers.
        raised: whether the block raised, so that the property itself could not be looked at.
    """

    batch: TokenBatch
    text: str
    raised: bool = False

    @property
    def order(self) -> tuple[bool, int, int]:
        """Less is better to read: the property's own numbers, few vectors, small seeds."""
        return self.raised, self.batch.sequences * self.batch.length, self.batch.seed


def always_tried(width: int) -> tuple[TokenBatch, ...]:
    """The batches that no search may miss, small ones first."""
    return (
        TokenBatch(1, 2, width),
        TokenBatch(1, 1, width),
        TokenBatch(2, 3, width, kind="constant"),
        TokenBatch(2, 4, width, kind="drifted"),
        TokenBatch(3, 8, width),
    )


def violation(property_: Property, subject: Subject, *, examples: int, seed: int) -> Failure | None:
    """The smallest batch that is found on which a property is violated; ``None`` if none is.

    Args:
        property_: applies to the subject.
        subject: the block.
        examples: how many batches Hypothesis makes; more where it shrinks a counterexample.
        seed: of Hypothesis and of whatever random numbers the block draws.

    Raises:
        BlockError: this runs inside a test of Hypothesis that does not allow it.
        MissingError: Hypothesis is not installed.
    """
    fixed = violation_among(always_tried(subject.width), property_, subject, seed)
    searched = _searched(property_, subject, examples, seed, known=fixed) if examples else None
    found = [failure for failure in (fixed, searched) if failure is not None]
    return min(found, key=lambda failure: failure.order, default=None)


def violation_among(
    batches: Sequence[TokenBatch], property_: Property, subject: Subject, seed: int
) -> Failure | None:
    """The best to read of those of ``batches`` that violate a property; ``None`` if none does."""
    tried = (_violation(property_, subject, batch, seed) for batch in batches)
    found = [failure for failure in tried if failure is not None]
    return min(found, key=lambda failure: failure.order, default=None)


def _violation(
    property_: Property, subject: Subject, batch: TokenBatch, seed: int
) -> Failure | None:
    with seeded(seed):
        try:
            property_.check(subject, batch)
        except ViolationError as error:
            return Failure(batch, str(error))
        except Exception as error:  # whatever somebody's block raises is a finding about it
            return Failure(batch, f"the block raised {one_line(error)}", raised=True)
    return None


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


class _RaisedError(Exception):
    """The block raised: another class, so that Hypothesis does not shrink one into the other."""


def _searched(
    property_: Property, subject: Subject, examples: int, seed: int, *, known: Failure | None
) -> Failure | None:
    """Hypothesis's search, ending in the smallest counterexample that it finds."""
    hypothesis = require_hypothesis()
    from isotest.testing.strategies import token_batches

    last: Failure | None = None

    def attempt(batch: TokenBatch) -> None:
        nonlocal last
        failure = _violation(property_, subject, batch, seed)
        if failure is None or (failure.raised and known is not None and not known.raised):
            return
        last = failure
        raise _RaisedError if failure.raised else ViolationError(failure.text)

    settings = hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        verbosity=hypothesis.Verbosity.quiet,
        print_blob=False,
        report_multiple_bugs=False,
        # A wide block is slow, not wrong.
        suppress_health_check=(hypothesis.HealthCheck.too_slow,),
    )
    try:
        given = hypothesis.given(token_batches(subject.width))
        hypothesis.seed(seed)(settings(given(attempt)))()
    except (ViolationError, _RaisedError):
        return last
    except hypothesis.errors.FailedHealthCheck as error:
        raise BlockError(
            "a block is tried by Hypothesis, here inside a test that Hypothesis runs: give that "
            "test settings(suppress_health_check=[HealthCheck.nested_given])"
        ) from error
    except hypothesis.errors.FlakyFailure:
        if last is None:
            raise
        text = f"now and then, so the block is not deterministic: {last.text}"
        return Failure(last.batch, text, last.raised)
    return None
