"""A curve over the layers as one line of characters."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"
DIGITS = "0123456789"
UNDEFINED = {BLOCKS: "·", DIGITS: "?"}


def sparkline(curve: Sequence[float | None], *, width: int, marks: str = BLOCKS) -> str:
    """``curve`` on the fixed scale 0…1, a character a layer, so that curves can be compared.

    Values beyond the scale are drawn at its end. A curve of more layers than ``width`` is drawn
    with the maximum of neighbouring layers, so that no peak is lost.

    Args:
        curve: a value a layer; ``None`` where undefined.
        width: at most so many characters; at least 1.
        marks: one character a level, lowest first: :data:`BLOCKS`, or :data:`DIGITS`
            (tenths) where the output is ASCII.

    >>> sparkline([0.0, 0.5, None, 1.0, -0.1], width=10)
    '▁▅·█▁'
    >>> sparkline([0.0, 0.9, 0.1, 0.2], width=2)
    '█▂'
    >>> sparkline([0.04, 0.55, 1.0], width=10, marks=DIGITS)
    '059'
    """
    return "".join(_mark(value, marks) for value in _fitted(curve, width))


def _mark(value: float | None, marks: str) -> str:
    if value is None or math.isnan(value):
        return UNDEFINED[marks]
    level = math.floor(min(max(value, 0.0), 1.0) * len(marks))
    return marks[min(level, len(marks) - 1)]


def _fitted(curve: Sequence[float | None], width: int) -> list[float | None]:
    if len(curve) <= width:
        return list(curve)
    edges = [round(step * len(curve) / width) for step in range(width + 1)]
    return [
        max((value for value in curve[start:end] if value is not None), default=None)
        for start, end in pairwise(edges)
    ]
