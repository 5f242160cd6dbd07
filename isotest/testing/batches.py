"""Which batches a block is tried on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies

from isotest.testing.token_batch import KINDS, TokenBatch

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def batches_for(width: int) -> SearchStrategy[TokenBatch]:
    """Small batches: what goes wrong between positions goes wrong between a few of them.

    Args:
        width: D of the block.
    """
    return strategies.builds(
        TokenBatch,
        sequences=strategies.integers(1, 3),
        length=strategies.integers(1, 9),
        width=strategies.just(width),
        seed=strategies.integers(0, 999),
        kind=strategies.sampled_from(KINDS),
        scale=strategies.sampled_from((1.0, 0.1, 3.0)),
    )
