"""``parametrize_with_properties``: a test for each property of a block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import nn


def parametrize_with_properties(
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
) -> pytest.MarkDecorator:
    """The mark ``isotest_block``, with its arguments checked by a type checker.

    The decorated test becomes one item for each property, named after it, and one, ``any``, which
    demands that some property holds. An item fails where its property is violated, whatever the
    body of the test does, and is skipped where the property does not apply. The body may be empty;
    it runs afterwards, and gets the outcome if it asks for the argument ``isotest_property``.

    Args:
        factory: as of :func:`isotest.testing.check_block`, like all others.
        width: D.
        heads: H.
        causal: no position sees a later one.
        normalised: the output of each position is normalised.
        skip: the input is added to what the sublayers make of it.
        positions: the block treats positions differently by their number.
        masked: ``forward`` takes a mask.
        scaled: scores are divided by √d_k.
        examples: batches that Hypothesis makes for each property.
        seed: of the weights and of Hypothesis.
        properties: names of those to try; all by default.

    >>> from torch import nn
    >>> @parametrize_with_properties(lambda: nn.Linear(4, 4), width=4, heads=1)
    ... def test_my_block():
    ...     pass
    """
    return pytest.mark.isotest_block(
        factory=factory,
        width=width,
        heads=heads,
        causal=causal,
        normalised=normalised,
        skip=skip,
        positions=positions,
        masked=masked,
        scaled=scaled,
        examples=examples,
        seed=seed,
        properties=properties,
    )
