"""The heads of one layer, each by itself, as they stand in a profile (torch-free)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AttentionKind = Literal["self", "cross"]
"""Whether a query's keys are of its own sequence."""


@dataclass(frozen=True)
class AttentionHeads:
    """What each head of a layer does, and how its scores are distributed.

    Attributes:
        modules: paths of the layer's attention modules with their numbers of heads; the lists below
            run through the modules in this order.
        entropy: of each head, the mean over sequences of its normalised entropy; ``None`` where no
            query may see more than one key.
        row_max: of each head, the mean over sequences of its rows' largest weights.
        histogram: how many scores, of all heads together, fall into each of the fixed bins of
            :mod:`isotest.statistics.attention.histogram`; those of several profiles can be added.
    """

    modules: tuple[tuple[str, int], ...]
    entropy: tuple[float | None, ...]
    row_max: tuple[float, ...]
    histogram: tuple[int, ...]
