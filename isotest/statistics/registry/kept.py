"""Metrics of representations that are kept: spectra, neighbours, what centring leaves."""

from __future__ import annotations

from isotest.statistics.metric import RELATIVE, SHARE, Metric

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
    Metric(
        name="uniformity",
        summary="log mean exp(−2‖u − v‖²) over all distinct pairs of directions u, v",
        worse="up",
        floor=SHARE,
        accumulator=KEPT,
        evaluator="isotest.statistics.uniformity:evaluate",
        source="Wang and Isola 2020",
        lowest=-8.0,
        highest=0.0,
        default=False,
    ),
    Metric(
        name="partition_isotropy",
        summary="smallest over largest Σ exp(c·x), c the eigenvectors of XᵀX",
        worse="down",
        floor=RELATIVE,
        floor_scale="partition_isotropy",
        accumulator=KEPT,
        evaluator="isotest.statistics.partition:evaluate",
        source="Mu and Viswanath 2018",
        lowest=0.0,
        highest=1.0,
        default=False,
    ),
    Metric(
        name="twonn",
        summary="intrinsic dimension from the ratio of the two nearest distances",
        worse="both",
        floor=RELATIVE,
        floor_scale="twonn",
        accumulator=KEPT,
        evaluator="isotest.statistics.twonn:evaluate",
        source="Facco, d'Errico, Rodriguez and Laio 2017",
        lowest=0.0,
        default=False,
    ),
)
