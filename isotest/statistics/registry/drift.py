"""Metrics that only the drift experiment measures (:mod:`isotest.blocks.drift`)."""

from __future__ import annotations

from functools import partial

from isotest.statistics.metric import SHARE, Metric
from isotest.statistics.registry.attention import GODEY

# A score that moves by this moves a weight by a thousandth.
_SCORE = 1e-3

_drift = partial(
    Metric, accumulator="", weight="sequences", default=False, experiment="drift", source=GODEY
)

DRIFT: tuple[Metric, ...] = (
    _drift(
        name="score_offset",
        summary="mean over replicates of the magnitude of the mean score before the softmax",
        worse="both",
        floor=_SCORE,
        lowest=0.0,
    ),
    _drift(
        name="score_sign",
        summary="share of the replicates whose mean score before the softmax is positive",
        worse="both",
        floor=_SCORE,
        lowest=0.0,
        highest=1.0,
    ),
    _drift(
        name="query_expectation_gap",
        summary="distance of the mean query from the mean input's query, as a share of its length",
        worse="up",
        floor=SHARE,
        lowest=0.0,
    ),
    _drift(
        name="key_expectation_gap",
        summary="distance of the mean key from the mean input's key, as a share of its length",
        worse="up",
        floor=SHARE,
        lowest=0.0,
    ),
)
