"""What a task is: examples to learn from and to be judged by, and a network of some size.

The tasks are those of Dong, Cordonnier and Loukas 2021, section 4.2. Each labels every position of
a sequence, so one classifier that looks at one position at a time reads the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from isotest.blocks.tasks.config import DESIGNS, Design, NetworkConfig
from isotest.blocks.tasks.convex_hull import ConvexHull
from isotest.blocks.tasks.examples import Examples
from isotest.blocks.tasks.memorization import Memorization
from isotest.blocks.tasks.sorting import Sorting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isotest.blocks.tasks.training import Settings

__all__ = ["DESIGNS", "TASKS", "Design", "Examples", "NetworkConfig", "Task"]


class Task(Protocol):
    """Something to learn, of which examples are drawn from a seed.

    Attributes:
        name: as in ``task:name``.
        classes: how many labels there are.
        whole: whether the examples are given, so that there are no others to be judged by.
    """

    @property
    def name(self) -> str:
        """As in ``task:name``."""

    @property
    def classes(self) -> int:
        """How many labels there are."""

    @property
    def whole(self) -> bool:
        """Whether the examples are given: a network is judged by those that it has learnt."""

    def train(self, *, seed: int) -> Examples:
        """What a network learns from; drawn apart from everything that :meth:`test` gives."""

    def test(self, count: int | None, *, seed: int, repeat: int) -> Examples:
        """Examples to judge by, drawn anew for every seed and repeat.

        Args:
            count: how many; ``None``: all there are, of a task whose examples are given.
            seed: of the draw.
            repeat: which replicate it is.

        Raises:
            SourceError: more than there are, or no count where there is no end of them.
        """

    def network_config(self, design: Design) -> NetworkConfig:
        """What network learns it."""

    def settings(self, design: Design) -> Settings:
        """How it is trained."""


_ALL: tuple[Task, ...] = (Memorization(), Sorting(), ConvexHull())

TASKS: Mapping[str, Task] = {task.name: task for task in _ALL}
"""Every task whose networks are taken apart into paths, by name."""
