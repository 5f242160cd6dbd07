"""The block of a suite's entry, tried on the properties that its check asks about."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from isotest.models.select import first
from isotest.profile import BlockProperty
from isotest.testing.claims import Stated
from isotest.testing.properties import PROPERTIES
from isotest.testing.trial import BlockTrial

if TYPE_CHECKING:
    from torch import nn

    from isotest.gate.checks import BlockPropertiesCheck


def tried_properties(
    block: nn.Module,
    check: BlockPropertiesCheck,
    *,
    width: int,
    heads: int,
    source: str,
    whole: bool,
) -> tuple[BlockProperty, ...]:
    """What becomes of every property of a block, as a profile keeps it.

    The block is tried as a float32 copy on the CPU: properties are exact up to rounding, and are
    not those of a device. Where it returns a tuple, its hidden states are the first of it.

    Args:
        block: as it was loaded; left as it is.
        check: what is claimed of the block.
        width: D.
        heads: H.
        source: where the block is from, for the line that shows a violation again.
        whole: whether the block is all that the source makes, without further configuration.

    Raises:
        BlockError: its numbers are at fault.
        MissingError: Hypothesis is not installed.
    """
    trial = BlockTrial(
        lambda: _alone(block),
        width=width,
        heads=heads,
        stated=Stated(
            causal=check.causal,
            normalised=check.normalised,
            skip=check.skip,
            positions=check.positions,
            masked=check.masked,
            scaled=check.scaled,
        ),
        examples=check.examples,
        called=_called(source, whole=whole),
    )
    report = trial.report(PROPERTIES, drift=False)
    return tuple(
        BlockProperty(outcome.property, outcome.result.value, outcome.text, outcome.reproduce)
        for outcome in report.outcomes
    )


def _alone(block: nn.Module) -> nn.Module:
    """A copy that returns its hidden states and nothing beside them."""
    copy = deepcopy(block).float().cpu()
    copy.register_forward_hook(_hidden_states)
    return copy


def _hidden_states(_block: nn.Module, _inputs: object, output: object) -> object:
    return first(output)


def _called(source: str, *, whole: bool) -> str:
    """How the block is made in a line of Python, as far as one can."""
    scheme, _, location = source.partition(":")
    return location.replace(":", ".") if whole and scheme == "python" else "lambda: block"
