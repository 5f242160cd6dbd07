"""Random weights that depend on the seed and on nothing else, and leave nothing behind."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw from torch's CPU generator as after ``manual_seed(seed)``; restore its state after.

    Only the CPU generator is touched: weights are drawn there whatever device the model moves to,
    so that the same seed gives the same weights on every machine.

    >>> import torch
    >>> before = torch.get_rng_state()
    >>> with seeded(0):
    ...     first = torch.rand(2)
    >>> with seeded(0):
    ...     again = torch.rand(2)
    >>> torch.equal(first, again), torch.equal(before, torch.get_rng_state())
    (True, True)
    """
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
