"""Which block an independent unit belongs to (torch-free)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLOCKS = 64
"""Blocks of the jackknife: enough for a steady error bar, few enough to store with a profile."""


def block_of(units: NDArray[np.int64]) -> NDArray[np.int64]:
    """The block of each unit: its number modulo ``BLOCKS``.

    It depends on nothing but the unit's number, so any batch size, order or worker count yields
    the same blocks, and a whole unit is always in one block.

    >>> import numpy as np
    >>> block_of(np.array([0, 63, 64, 130])).tolist()
    [0, 63, 0, 2]
    """
    return units % BLOCKS
