"""Where a curve over an axis goes through zero, and why it cannot be said where."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Crossing:
    """The one place where a curve changes its sign.

    Attributes:
        at: the place, in the unit of the axis.
        falls: whether the curve is above zero before and below behind.
        before, after: indices of the points between which it lies.
    """

    at: float
    falls: bool
    before: int
    after: int


def crossing(
    axis: Sequence[float], curve: Sequence[float], floors: Sequence[float]
) -> Crossing | str:
    """The place where ``curve`` changes its sign, by linear interpolation.

    A point counts as zero where rounding could have given it either sign. One such point between
    two of different sign is the place itself; a curve that merely touches zero does not cross it.

    Args:
        axis: where the points stand, strictly increasing; shape (points,).
        curve: the values there, finite; shape (points,).
        floors: the magnitude up to which each of them counts as zero; shape (points,).

    Returns:
        The crossing; or in words why there is none, or no single one.

    >>> crossing([0.0, 10.0, 20.0], [3.0, 1.0, -1.0], [0.0, 0.0, 0.0])
    Crossing(at=15.0, falls=True, before=1, after=2)
    >>> crossing([0.0, 10.0, 20.0], [3.0, 0.0, 1.0], [0.0, 0.0, 0.0])
    'is nowhere below zero'
    """
    signs = [
        0 if abs(value) <= floor else 1 if value > 0 else -1
        for value, floor in zip(curve, floors, strict=True)
    ]
    points = [index for index, sign in enumerate(signs) if sign]
    if not points:
        return "is zero everywhere, for all that rounding leaves to tell"
    changes = [(i, j) for i, j in pairwise(points) if signs[i] != signs[j]]
    if not changes:
        return f"is nowhere {'below' if signs[points[0]] > 0 else 'above'} zero"
    if len(changes) > 1:
        places = ", ".join(f"N = {axis[i]:g} and {axis[j]:g}" for i, j in changes)
        return f"changes its sign {len(changes)} times: between {places}"
    before, after = changes[0]
    if after - before > 2:
        ends = f"N = {axis[before + 1]:g} to {axis[after - 1]:g}"
        return f"is zero from {ends}, which is no single place"
    if after - before == 2:
        at = axis[before + 1]
    else:
        share = curve[before] / (curve[before] - curve[after])
        at = axis[before] + share * (axis[after] - axis[before])
    return Crossing(at, signs[before] > 0, before, after)
