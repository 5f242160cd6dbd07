"""The convex hull: a point is labelled 1 if it is a vertex of the hull of its sequence."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from isotest.blocks.tasks.config import NetworkConfig, block_config
from isotest.blocks.tasks.drawing import generator, require_drawn
from isotest.blocks.tasks.examples import Examples
from isotest.blocks.tasks.training import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from isotest.blocks.tasks.config import Design

    Point = tuple[float, float]

POINTS, SIDE, SHIFT, TRAINING = 10, 10.0, 3.3, 10_000

_CERTAIN = 1e-15
"""Of a difference of two products in float64, relative to their sizes: its sign is right above."""


class ConvexHull:
    """Ten points of a square with sides of 10, all moved by one normal shift of σ = 3.3 an axis.

    The shift keeps a network from learning where the square is.

    >>> examples = ConvexHull().test(2, seed=0, repeat=0)
    >>> examples.inputs.shape, bool((examples.labels.sum(1) >= 3).all())
    (torch.Size([2, 10, 2]), True)
    """

    name = "convex-hull"
    classes = 2
    whole = False

    def train(self, *, seed: int) -> Examples:
        """10,000 sequences, as the authors have."""
        return self._drawn(generator("train", seed), TRAINING)

    def test(self, count: int | None, *, seed: int, repeat: int) -> Examples:
        """As of :meth:`isotest.blocks.tasks.task.Task.test`."""
        return self._drawn(generator("test", seed, repeat), require_drawn(self.name, count))

    def network_config(self, design: Design) -> NetworkConfig:
        """The authors' sizes."""
        return NetworkConfig(block_config(design, width=84, heads=3, depth=6), self.classes)

    def settings(self, design: Design) -> Settings:
        """How it is trained."""
        del design
        return Settings(learning_rate=1e-3, batch_size=100, epochs=8, dropout=0.1)

    @staticmethod
    def _drawn(draw: np.random.Generator, count: int) -> Examples:
        inside = draw.uniform(0.0, SIDE, (count, POINTS, 2))
        points = (inside + draw.normal(0.0, SHIFT, (count, 1, 2))).astype(np.float32)
        # Of the very numbers that the network is given: rounding moves points.
        labels = np.stack([vertices(each) for each in points]).astype(np.int64)
        return Examples.of(points, labels)


def vertices(points: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which points are vertices of their convex hull, exactly.

    A point on an edge, between two vertices, is none. Of equal points, all are vertices or none.

    Args:
        points: (n, 2), finite.

    Returns:
        (n,).

    >>> square = np.array([[0, 0], [2, 0], [2, 2], [0, 2], [1, 0], [1, 1], [2, 2]], np.float32)
    >>> vertices(square).tolist()
    [True, True, True, True, False, False, True]
    """
    listed: list[Point] = [(float(x), float(y)) for x, y in points]
    ordered = sorted(set(listed))
    hull = {*_chain(ordered), *_chain(ordered[::-1])}
    return np.array([point in hull for point in listed])


def _chain(ordered: Sequence[Point]) -> list[Point]:
    """One half of the hull, from the first point to the last (Andrew 1979)."""
    chain: list[Point] = []
    for point in ordered:
        while len(chain) > 1 and not turns_left(chain[-2], chain[-1], point):
            chain.pop()
        chain.append(point)
    return chain


def turns_left(a: Point, b: Point, c: Point) -> bool:
    """Whether the way from a over b to c turns left, exactly.

    >>> turns_left((0.0, 0.0), (1.0, 0.0), (2.0, 1e-30)), turns_left((0.0, 0.0), (1, 1), (2, 2))
    (True, False)
    """
    one = (b[0] - a[0]) * (c[1] - a[1])
    other = (b[1] - a[1]) * (c[0] - a[0])
    if abs(one - other) > _CERTAIN * (abs(one) + abs(other)):
        return one > other
    ax, ay, bx, by, cx, cy = (Fraction(number) for point in (a, b, c) for number in point)
    return (bx - ax) * (cy - ay) > (by - ay) * (cx - ax)
