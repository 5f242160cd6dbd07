"""``@pytest.mark.isotest_block``: a block under test, an item for each property.

Loaded only in runs where a test has the mark.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from inspect import signature
from typing import TYPE_CHECKING

import pytest

from isotest.errors import IsotestError
from isotest.testing.checking import chosen_properties
from isotest.testing.claims import Stated
from isotest.testing.marking import parametrize_with_properties
from isotest.testing.outcome import PropertyOutcome, Result
from isotest.testing.trial import BlockTrial

if TYPE_CHECKING:
    from isotest.testing.property import Property

ARGUMENT = "isotest_property"


@dataclass(eq=False)
class TriedProperty:
    """What a marked test gets as ``isotest_property``.

    Attributes:
        trial: the block, built when the first property is tried.
        property: the property; ``None`` of the item ``any``.
        properties: all that the block is tried on.
    """

    trial: BlockTrial
    property: Property | None
    properties: tuple[Property, ...]

    @cached_property
    def outcome(self) -> PropertyOutcome:
        """What became of the property; of ``any``, whether some property holds."""
        if self.property is not None:
            return self.trial.outcome(self.property)
        for property_ in self.properties:
            if self.trial.outcome(property_).result is Result.HOLDS:
                return PropertyOutcome("any", Result.HOLDS, f"{property_.name} does")
        obstacle = self.trial.obstacle
        why = "" if obstacle is None else f" ({obstacle.property}: {obstacle.text})"
        return PropertyOutcome("any", Result.VIOLATED, f"no property could be shown to hold{why}")


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Make an item for each property, and one that demands that any holds.

    Raises:
        pytest.Collector.CollectError: the mark's arguments are wrong, or it is there twice.
    """
    marks = list(metafunc.definition.iter_markers("isotest_block"))
    where = metafunc.definition.nodeid
    if len(marks) > 1:
        raise pytest.Collector.CollectError(
            f"{where}: expected one mark isotest_block, found {len(marks)}: write a test for each "
            "block"
        )
    (mark,) = marks
    try:
        trial, properties = _read(mark)
    except (TypeError, IsotestError) as error:
        raise pytest.Collector.CollectError(f"{where}: isotest_block: {error}") from None
    if ARGUMENT not in metafunc.fixturenames:
        metafunc.fixturenames.append(ARGUMENT)
    metafunc.parametrize(
        ARGUMENT,
        [TriedProperty(trial, property_, properties) for property_ in (*properties, None)],
        ids=[*(property_.name for property_ in properties), "any"],
    )


def _read(mark: pytest.Mark) -> tuple[BlockTrial, tuple[Property, ...]]:
    given = signature(parametrize_with_properties).bind(*mark.args, **mark.kwargs)
    given.apply_defaults()
    values = given.arguments
    properties = chosen_properties(values.pop("properties"))
    stated = Stated(**{field.name: values.pop(field.name) for field in fields(Stated)})
    return BlockTrial(stated=stated, **values), properties


def judge(item: pytest.Item) -> None:
    """Let the item fail where its property is violated; skip it where it does not apply."""
    callspec = getattr(item, "callspec", None)
    tried = None if callspec is None else callspec.params.get(ARGUMENT)
    if not isinstance(tried, TriedProperty):
        pytest.fail(
            f"{item.nodeid}: the mark isotest_block needs a plain test function or a method of a "
            "plain class, which pytest can make an item for each property",
            pytrace=False,
        )
    try:
        outcome = tried.outcome
    except IsotestError as error:
        pytest.fail(str(error), pytrace=False)
    if outcome.result is Result.VIOLATED:
        again = f"\nagain: {outcome.reproduce}" if outcome.reproduce else ""
        pytest.fail(f"{outcome.property}: {outcome.text}{again}", pytrace=False)
    if outcome.result is Result.NOT_APPLICABLE:
        pytest.skip(f"{outcome.property} does not apply: {outcome.text}")
