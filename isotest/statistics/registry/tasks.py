"""Metrics of the experiments on trained networks of a task (:mod:`isotest.blocks.tasks`)."""

from __future__ import annotations

from functools import partial

from isotest.statistics.metric import SHARE, Metric

DONG = "Dong, Cordonnier and Loukas 2021"

# A label changes with rounding only where two logits nearly tie: of ten thousand positions, a few.
_ACCURACY = 1e-3
# The same positions over full accuracy less chance, which is a third where a network beats chance
# by least.
_OF_ACCURACY = 3 * _ACCURACY
# Rounding adds up over hundreds of steps to a share of the coordinates, not of the distance, which
# may vanish: a thousandth of the circle's radius, which is 0.3.
_COORDINATES = 3e-4
# The same over what pairs start with, a diameter; rounded up.
_OF_DISTANCE = 1e-3

_of_task = partial(Metric, accumulator="", weight="sequences", default=False, source=DONG)

TASKS: tuple[Metric, ...] = (
    _of_task(
        name="path_accuracy",
        summary="share of positions that summed paths of one length label right; of the network "
        "itself at layer full",
        worse="down",
        floor=_ACCURACY,
        lowest=0.0,
        highest=1.0,
        experiment="paths",
    ),
    _of_task(
        name="path_share",
        summary="accuracy of summed paths less chance, over that of the network less chance; "
        "chance is the share of the commonest label",
        worse="both",
        floor=_OF_ACCURACY,
        experiment="paths",
    ),
    _of_task(
        name="path_residual",
        summary="rank_residual of the summed output of paths of one length; of what enters the "
        "head at layer full",
        worse="down",
        floor=SHARE,
        lowest=0.0,
        highest=1.0,
        experiment="paths",
    ),
    _of_task(
        name="pair_distance",
        summary="mean Euclidean distance of two trajectories after so many recurrent steps, in "
        "coordinates",
        worse="down",
        floor=_COORDINATES,
        lowest=0.0,
        experiment="recurrence",
    ),
    _of_task(
        name="pair_distance_share",
        summary="mean distance of two trajectories after so many recurrent steps, as a share of "
        "that at the start",
        worse="down",
        floor=_OF_DISTANCE,
        lowest=0.0,
        experiment="recurrence",
    ),
)
