"""From which share of the anisotropy on a dimension is rogue (torch-free, as the gate needs it)."""

from __future__ import annotations

import math

CHANCE = 0.01
"""Probability at most that a random direction has a dimension above the threshold."""

LEAST = 0.01
"""Of very wide layers, whose largest dimension chance keeps far below what anyone would name."""


def threshold(width: int) -> float:
    """max(``LEAST``, 1 − (``CHANCE`` / D)^(2 / (D − 1))); 1 for a single dimension.

    >>> [round(threshold(width), 3) for width in (1, 2, 64, 384, 768, 200_000)]
    [1.0, 1.0, 0.243, 0.054, 0.029, 0.01]
    """
    if width < 2:
        return 1.0
    return max(LEAST, 1.0 - math.pow(CHANCE / width, 2.0 / (width - 1)))
