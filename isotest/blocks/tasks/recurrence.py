"""A map applied to pairs of points again and again: how far apart the two trajectories are.

For a map F of pairs, x(0) is a starting pair and x(t+1) = F(x(t)). The distance at step t is
‖x₁(t) − x₂(t)‖. Everything is computed in float64, whatever the map's weights were stored in: the
question is what the map does, not what rounding does.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn

from isotest.errors import BlockError, NonFiniteError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor

STEPS = 300
"""As many as the authors make."""


@dataclass(frozen=True)
class RecurrenceStep:
    """What is measured at one step, of each network by itself.

    Attributes:
        step: how often the map was applied; 0 is the starting pairs.
        pair_distance: one value a network, the mean over the starting pairs of the Euclidean
            distance of the two trajectories (unit: coordinates).
        pair_distance_share: the same, divided by what it is at step 0: 1 is as far apart as ever,
            0 is collapse.
    """

    step: int
    pair_distance: tuple[float, ...]
    pair_distance_share: tuple[float, ...]

    @property
    def layer(self) -> str:
        """Its name in a profile.

        >>> RecurrenceStep(30, (0.0,), (0.0,)).layer
        'step.30'
        """
        return f"step.{self.step}"


def roll_out(
    apply: Callable[[Tensor], Tensor], starts: Tensor, steps: int, *, name: str = "map"
) -> Tensor:
    """Apply a map to its own output.

    Args:
        apply: of (B, 2, D) float64, the same shape; a module is applied as a copy of itself in
            float64.
        starts: (B, 2, D): B starting pairs.
        steps: how often, at least 0.
        name: of the map, for messages.

    Returns:
        (steps + 1, B, 2, D) float64: all trajectories, from the starting pairs on.

    Raises:
        NonFiniteError: a trajectory leaves the finite numbers; names map, start and step. There is
            no value for that step or any after it, so there is none at all; ask for fewer steps.
        BlockError: steps below 0, no starting pair, or the map changes the shape.

    >>> halves = roll_out(lambda x: x / 2, torch.ones(1, 2, 2), 3)
    >>> halves[:, 0, 0, 0]
    tensor([1.0000, 0.5000, 0.2500, 0.1250], dtype=torch.float64)
    """
    if steps < 0:
        raise BlockError(f"recurrence: expected at least 0 steps, found {steps}")
    if starts.dim() != 3 or starts.shape[1] != 2 or not len(starts):
        raise BlockError(
            "recurrence: expected starting pairs of shape (pairs, 2, coordinates), at least one, "
            f"found {tuple(starts.shape)}"
        )
    if isinstance(apply, nn.Module):
        # A copy, since the caller's module is to stay in its own dtype.
        apply = copy.deepcopy(apply).double().eval()
    pairs = starts.double()
    trajectories = torch.empty((steps + 1, *pairs.shape), dtype=torch.float64)
    with torch.no_grad():
        for step in range(steps + 1):
            if step:
                pairs = apply(pairs)
            if pairs.shape != starts.shape:
                raise BlockError(
                    f"recurrence: {name} made {tuple(pairs.shape)} of {tuple(starts.shape)}; "
                    "expected the same shape"
                )
            _require_finite(pairs, step, name)
            trajectories[step] = pairs
    return trajectories


def pair_distances(trajectories: Tensor) -> Tensor:
    """‖x₁ − x₂‖ of each pair.

    Args:
        trajectories: (…, 2, D).

    Returns:
        (…) float64.
    """
    first, second = trajectories.double().unbind(-2)
    distances: Tensor = (first - second).norm(dim=-1)
    return distances


def measure_recurrence(
    networks: Mapping[int, Callable[[Tensor], Tensor]],
    starts: Tensor,
    steps: Sequence[int],
    *,
    name: str = "network",
) -> list[RecurrenceStep]:
    """Roll all networks out from the same starting pairs.

    Args:
        networks: training seed to a network or other map; each is a replicate.
        starts: (B, 2, D), as of :func:`roll_out`.
        steps: which are measured; each at least 0 and named once.
        name: of what is measured, such as the variant, for messages.

    Returns:
        One for each of ``steps``, in their order; in it one value a network, in the order of
        ``networks``.

    Raises:
        NonFiniteError: a trajectory diverges up to the last of ``steps``; names the network's
            seed, the starting pair and the step.
        BlockError: no network, no step, a step twice or below 0, starting pairs of which all
            points coincide (a share of nothing), or as of :func:`roll_out`.

    >>> found = measure_recurrence({0: lambda x: x / 2}, torch.eye(2)[None], [0, 2])
    >>> [step.pair_distance_share for step in found]
    [(1.0,), (0.25,)]
    """
    if not networks:
        raise BlockError(f"recurrence: no network of {name!r} to roll out")
    if not steps or min(steps) < 0 or len(set(steps)) < len(steps):
        raise BlockError(
            "recurrence: expected different steps, each at least 0, such as [0, 1, 30]; found "
            f"{list(steps)}"
        )
    curves = [
        pair_distances(roll_out(network, starts, max(steps), name=f"{name}, seed {seed}")).mean(1)
        for seed, network in networks.items()
    ]
    for seed, curve in zip(networks, curves, strict=True):
        if not curve.isfinite().all():
            step = int((~curve.isfinite()).nonzero()[0])
            raise NonFiniteError(
                f"recurrence: {name}, seed {seed}: points are so far apart at step {step} that "
                f"their distance overflows. Measure fewer than {step} steps, or look at how the "
                "network was trained"
            )
        if curve[0] == 0:
            raise BlockError(
                "recurrence: the two points of every starting pair are the same, so that there is "
                "no distance to compare with; start from different points"
            )
    return [
        RecurrenceStep(
            step,
            tuple(curve[step].item() for curve in curves),
            tuple((curve[step] / curve[0]).item() for curve in curves),
        )
        for step in steps
    ]


def _require_finite(pairs: Tensor, step: int, name: str) -> None:
    finite = pairs.isfinite().flatten(1).all(1)
    if finite.all():
        return
    start = int((~finite).nonzero()[0])
    worst = pairs[start].flatten()
    value = next(number for number in worst.tolist() if not math.isfinite(number))
    raise NonFiniteError(
        f"recurrence: {name}: the trajectories from starting pair {start} are {value} at step "
        f"{step}; a trajectory that diverges has no distance from there on. Measure fewer than "
        f"{step} steps, or look at how the network was trained"
        if step
        else f"recurrence: {name}: starting pair {start} has a coordinate that is {value}"
    )
