"""Metrics of representations that are kept: spectra, neighbours, what centring leaves."""

from __future__ import annotations

from isotest.statistics.metric import SHARE, Metric

KEPT = "isotest.statistics.kept:Kept"

OF_KEPT: tuple[Metric, ...] = (
    Metric(
        name="centered_anisotropy",
        summary="anisotropy of what is left when the mean representation is subtracted",
        worse="up",
        floor=SHARE,
        accumulator=KEPT,
        evaluator="isotest.statistics.centered:evaluate",
        source="Biś, Sobolewski and Rychlik 2021",
        lowest=-1.0,
        highest=1.0,
    ),
)
