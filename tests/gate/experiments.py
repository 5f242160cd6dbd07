"""Profiles of an experiment: what enters a block and what leaves it, over an axis."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .profiles import BLOCKS, profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.profile import Profile

    from .profiles import Values

CREATED = "2026-01-02T00:00:00+00:00"
EARLIER = "2026-01-01T00:00:00+00:00"


def experiment(
    inputs: Sequence[Values],
    outputs: Sequence[Values],
    *,
    metric: str = "anisotropy",
    axis: Sequence[float] | None = None,
    blocks: int = BLOCKS,
    created: str = CREATED,
) -> Profile:
    """Layers ``input.0`` … and ``output.0`` …, which stand at 0, 10, 20 … unless told otherwise."""
    names = [f"input.{k}" for k in range(len(inputs))]
    names += [f"output.{k}" for k in range(len(outputs))]
    curves: dict[str, Sequence[Values]] = {metric: [*inputs, *outputs]}
    made = profile(curves, names=names, blocks=blocks, created=created)
    return replace(
        made,
        layers=tuple(
            replace(layer, at=_place(int(layer.name.rpartition(".")[2]), axis))
            for layer in made.layers
        ),
    )


def _place(number: int, axis: Sequence[float] | None) -> float:
    return 10.0 * number if axis is None else axis[number]
