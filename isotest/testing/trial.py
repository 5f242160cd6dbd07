"""A block that properties are tried on: built once, its obstacles and claims found first."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import nn

from isotest.blocks.threads import one_thread
from isotest.errors import BlockError, IsotestError, one_line
from isotest.models.seeding import seeded
from isotest.testing.claims import Stated, found_claims
from isotest.testing.drifted import drift_of
from isotest.testing.outcome import PropertyOutcome, Result
from isotest.testing.properties.altered import forget_copies
from isotest.testing.properties.conduct import DETERMINISTIC, ORDINARILY_FINITE, SHAPE
from isotest.testing.report import BlockReport
from isotest.testing.runner import Failure, always_tried, violation, violation_among
from isotest.testing.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isotest.testing.property import Property
    from isotest.testing.token_batch import TokenBatch


class BlockTrial:
    """A block that properties are tried on, built when the first one is, and once.

    Args:
        factory, width, heads, examples, seed: as of :func:`isotest.testing.check_block`.
        stated: what is claimed.
        called: the factory, in the line of Python that shows a violation again.
    """

    def __init__(
        self,
        factory: Callable[[], nn.Module],
        *,
        width: int,
        heads: int,
        stated: Stated,
        examples: int = 25,
        seed: int = 0,
        called: str | None = None,
    ) -> None:
        if width < 1 or heads < 1 or width % heads:
            raise BlockError(
                f"expected heads that divide the width, found width={width} and heads={heads}"
            )
        if examples < 0:
            raise BlockError(f"examples: expected none or more, found {examples}")
        self._factory = factory
        self._called = called or _name_of(factory)
        self._width = width
        self._heads = heads
        self._stated = stated
        self._examples = examples
        self._seed = seed
        self._found: dict[str, PropertyOutcome] = {}

    @one_thread()
    def report(
        self,
        properties: Sequence[Property],
        batches: Sequence[TokenBatch] | None = None,
        *,
        drift: bool,
    ) -> BlockReport:
        """The outcomes of ``properties``, and of whatever keeps them from being tried.

        Args:
            properties: in the order in which they are tried.
            batches: as of :meth:`outcome`.
            drift: whether to run the drift experiment, too.
        """
        outcomes = [self.outcome(property_, batches) for property_ in properties]
        obstacle = self.obstacle
        if obstacle is not None and all(o.property != obstacle.property for o in outcomes):
            outcomes.insert(0, obstacle)
        drifted = None
        if drift and obstacle is None:
            try:
                drifted = drift_of(self._subject, seed=self._seed)
            except IsotestError as error:
                outcomes.append(PropertyOutcome("drift", Result.VIOLATED, str(error)))
        return BlockReport(
            name=self._built.name,
            width=self._width,
            heads=self._heads,
            claims=self._subject.claims,
            found=() if obstacle is not None else self._stated.open(),
            outcomes=tuple(outcomes),
            drift=drifted,
            notes=self._notes,
        )

    @one_thread()
    def outcome(
        self, property_: Property, batches: Sequence[TokenBatch] | None = None
    ) -> PropertyOutcome:
        """What becomes of one property.

        Args:
            property_: the property.
            batches: what to try it on, instead of what Hypothesis makes.

        Raises:
            BlockError: the factory is at fault.
            MissingError: Hypothesis is not installed.
        """
        obstacle = self.obstacle
        if obstacle is not None:
            if obstacle.property == property_.name:
                return obstacle
            reason = f"the block cannot be tried: see {obstacle.property}"
            return PropertyOutcome(property_.name, Result.NOT_APPLICABLE, reason)
        if batches is not None:
            return self._tried(property_, batches)
        if property_.name not in self._found:
            self._found[property_.name] = self._tried(property_, None)
        return self._found[property_.name]

    def _tried(self, property_: Property, batches: Sequence[TokenBatch] | None) -> PropertyOutcome:
        with seeded(self._seed):
            reason = property_.excludes(self._subject)
        if reason is not None:
            return PropertyOutcome(property_.name, Result.NOT_APPLICABLE, reason)
        if batches is None:
            failure = violation(property_, self._subject, examples=self._examples, seed=self._seed)
            number = len(always_tried(self._width)) + self._examples
        else:
            failure = violation_among(batches, property_, self._subject, self._seed)
            number = len(batches)
        if failure is not None:
            return self._violated(property_, failure)
        return PropertyOutcome(property_.name, Result.HOLDS, f"on {number} batches")

    def _violated(self, property_: Property, failure: Failure) -> PropertyOutcome:
        said = {
            name: getattr(self._stated, name)
            for name, default in vars(Stated()).items()
            if getattr(self._stated, name) != default
        }
        if self._seed:
            said["seed"] = self._seed
        extra = "".join(f"{name}={value}, " for name, value in said.items())
        again = (
            f"check_block({self._called}, width={self._width}, heads={self._heads}, "
            f"{extra}properties=[{property_.name!r}], batches=[{failure.batch!r}])"
        )
        text = f"{failure.text}; {failure.batch!r}"
        return PropertyOutcome(property_.name, Result.VIOLATED, text, again)

    @cached_property
    def _built(self) -> Subject:
        module = _built(self._factory, self._seed)
        self._training = module.training
        module.eval()
        forget_copies(module)
        return Subject(
            module, type(module).__name__, self._width, self._heads, self._stated.cautious()
        )

    @property
    def _notes(self) -> tuple[str, ...]:
        if not self._training:
            return ()
        return ("The factory returned the block in training mode; it was tried in eval mode.",)

    @cached_property
    def obstacle(self) -> PropertyOutcome | None:
        """The violated property without which no other can be tried.

        It is looked for on ordinary batches: a block that fails on a single vector, or on large
        numbers, can be tried on the rest.
        """
        ordinary = [batch for batch in always_tried(self._width) if batch.length > 1]
        for property_ in (SHAPE, ORDINARILY_FINITE, DETERMINISTIC):
            failure = violation_among(ordinary, property_, self._built, self._seed)
            if failure is not None:
                return self._violated(property_, failure)
        return None

    @cached_property
    def _subject(self) -> Subject:
        if self.obstacle is not None:
            return self._built
        with seeded(self._seed):
            return replace(self._built, claims=found_claims(self._built, self._stated))


def _name_of(factory: Callable[[], nn.Module]) -> str:
    name = getattr(factory, "__qualname__", type(factory).__name__)
    return "factory" if "<" in name else name


def _built(factory: Callable[[], nn.Module], seed: int) -> nn.Module:
    name = _name_of(factory)
    if isinstance(factory, nn.Module):
        raise BlockError(
            "expected a factory, a callable that returns the block, found the block itself "
            f"({type(factory).__name__}): give lambda: block"
        )
    if not callable(factory):
        raise BlockError(
            f"expected a factory, a callable that returns the block, found {factory!r}"
        )
    try:
        with seeded(seed):
            module: object = factory()
    except IsotestError:
        raise
    except Exception as error:  # somebody's constructor
        raise BlockError(f"{name}, called without arguments, raised {one_line(error)}") from error
    if not isinstance(module, nn.Module):
        raise BlockError(
            f"{name}: expected a torch.nn.Module to be returned, found {type(module).__name__}"
        )
    for path, parameter in [*module.named_parameters(), *module.named_buffers()]:
        if parameter.is_floating_point() and parameter.dtype != torch.float32:
            raise BlockError(
                f"{name}: expected a block in float32, found {path} in {parameter.dtype}; "
                "dtype_agreement tries float64 and bfloat16 itself"
            )
        if parameter.device.type != "cpu":
            raise BlockError(
                f"{name}: expected a block on the CPU, found {path} on {parameter.device}"
            )
    return module
