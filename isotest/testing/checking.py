"""``check_block``: anybody's block, tried on every property that applies to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.errors import BlockError
from isotest.source import did_you_mean
from isotest.testing.claims import Stated
from isotest.testing.properties import PROPERTIES
from isotest.testing.trial import BlockTrial

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import nn

    from isotest.testing.property import Property
    from isotest.testing.report import BlockReport
    from isotest.testing.token_batch import TokenBatch


def check_block(
    factory: Callable[[], nn.Module],
    *,
    width: int,
    heads: int,
    causal: bool | None = None,
    normalised: bool | None = None,
    skip: bool | None = None,
    positions: bool = False,
    masked: bool = False,
    scaled: bool = True,
    examples: int = 25,
    seed: int = 0,
    properties: Sequence[str] | None = None,
    batches: Sequence[TokenBatch] | None = None,
) -> BlockReport:
    """Try every property that applies to a block, and run the drift experiment on it.

    The drift experiment is reported, not judged, except that it must give finite numbers.

    Args:
        factory: called once without arguments; returns a module that takes (B, L, D) float32 and
            returns the same shape. It is put into eval mode.
        width: D.
        heads: H, which divides D.
        causal: no position sees a later one; ``None`` finds it out, as for the next two.
        normalised: the output of each position is normalised.
        skip: the input is added to what the sublayers make of it.
        positions: the block treats positions differently by their number.
        masked: ``forward`` takes a second argument, (B, L) bool, true where a position is valid.
        scaled: scores are divided by √d_k.
        examples: batches that Hypothesis makes for each property.
        seed: of the weights that the factory draws, and of Hypothesis.
        properties: names of those to try, and no drift experiment; all by default.
        batches: tried instead of what Hypothesis makes: the counterexample of an earlier report.

    Raises:
        BlockError: the factory, or an argument, is at fault.
        MissingError: Hypothesis is not installed.

    >>> from isotest.blocks import BlockConfig, TransformerBlock
    >>> config = BlockConfig(width=8, heads=2, hidden=16)
    >>> report = check_block(lambda: TransformerBlock(config), width=8, heads=2, examples=5)
    >>> bool(report), report["skip_identity"].result.value
    (True, 'holds')
    """
    trial = BlockTrial(
        factory,
        width=width,
        heads=heads,
        stated=Stated(causal, normalised, skip, positions, masked, scaled),
        examples=examples,
        seed=seed,
    )
    return trial.report(chosen_properties(properties), batches, drift=properties is None)


def chosen_properties(names: Sequence[str] | None) -> tuple[Property, ...]:
    """The properties of these names, in their order; all for ``None``.

    Raises:
        BlockError: there is none of a name, or no name.
    """
    if names is None:
        return PROPERTIES
    known = {property_.name: property_ for property_ in PROPERTIES}
    if not names:
        raise BlockError("properties: expected names, found none: nothing would be tried")
    for name in names:
        if name not in known:
            raise BlockError(f"no property is named {name!r}{did_you_mean(name, known)}")
    return tuple(known[name] for name in names)
