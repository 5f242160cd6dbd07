"""Random numbers of a task: what a network learns from and what it is judged by are drawn apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotest.errors import SourceError

if TYPE_CHECKING:
    from typing import Literal

_PURPOSES = ("train", "test")


def generator(purpose: Literal["train", "test"], *seeds: int) -> np.random.Generator:
    """A generator of its own for each purpose and seeds, which depends on nothing else.

    Args:
        purpose: what is drawn.
        seeds: any whole numbers.

    >>> draws = [generator(purpose, 0).random() for purpose in ("train", "test", "test")]
    >>> draws[0] != draws[1] == draws[2]
    True
    """
    # A seed sequence takes no negative numbers: sign and size are numbers of their own.
    entropy = [number for seed in seeds for number in (int(seed < 0), abs(seed))]
    return np.random.default_rng([_PURPOSES.index(purpose), *entropy])


def require_drawn(task: str, count: int | None) -> int:
    """How many examples to draw.

    Raises:
        SourceError: "all" of examples of which there is no end, or fewer than one.

    >>> require_drawn("sorting", None)
    Traceback (most recent call last):
    isotest.errors.SourceError: task:sorting: expected samples to be a number, found "all"; ...
    """
    if count is None:
        raise SourceError(
            f'task:{task}: expected samples to be a number, found "all"; its examples are drawn, '
            "and there is no end of them"
        )
    if count < 1:
        raise SourceError(f"task:{task}: expected samples to be at least 1, found {count}")
    return count
