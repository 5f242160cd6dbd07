"""Metrics that follow from sums over blocks of sequences."""

from __future__ import annotations

from isotest.statistics.metric import RELATIVE, SHARE, Metric

_COSINES = "isotest.statistics.cosine:Cosines"
_NORMS = "isotest.statistics.norms:Norms"
_MASSIVE = "isotest.statistics.massive:MassiveActivations"
_RESIDUAL = "isotest.statistics.residual:RankResidual"
_DUPLICATES = "isotest.statistics.duplicates:Duplicates"

# dimension_share divides by an anisotropy that may be as small as 0.01.
_RATIO_OF_SHARES = 1e-3

SUMS: tuple[Metric, ...] = (
    Metric(
        name="anisotropy",
        summary="mean cosine over pairs of representations from different independent units",
        worse="up",
        floor=SHARE,
        accumulator=_COSINES,
        source="Godey, de la Clergerie and Sagot 2023",
        lowest=-1.0,
        highest=1.0,
    ),
    Metric(
        name="anisotropy_all",
        summary="mean cosine over all distinct pairs of representations",
        worse="up",
        floor=SHARE,
        accumulator=_COSINES,
        source="Ethayarajh 2019",
        lowest=-1.0,
        highest=1.0,
    ),
    Metric(
        name="intra_similarity",
        summary="mean cosine over pairs of representations within a sequence",
        worse="up",
        floor=SHARE,
        accumulator=_COSINES,
        source="Ethayarajh 2019",
        lowest=-1.0,
        highest=1.0,
    ),
    Metric(
        name="mean_norm",
        summary="mean Euclidean length of the representations",
        worse="both",
        floor=RELATIVE,
        floor_scale="mean_norm",
        accumulator=_NORMS,
        source="Godey, de la Clergerie and Sagot 2023",
        lowest=0.0,
    ),
    Metric(
        name="norm_std",
        summary="standard deviation (÷ N) of the Euclidean lengths",
        worse="both",
        floor=RELATIVE,
        floor_scale="mean_norm",
        accumulator=_NORMS,
        source="Godey, de la Clergerie and Sagot 2023",
        lowest=0.0,
    ),
    Metric(
        name="drift_norm",
        summary="length of the mean representation",
        worse="both",
        floor=RELATIVE,
        floor_scale="mean_norm",
        accumulator=_NORMS,
        source="Godey, de la Clergerie and Sagot 2023",
        lowest=0.0,
    ),
    Metric(
        name="drift_share",
        summary="share of the mean squared length that is the common direction",
        worse="up",
        floor=SHARE,
        accumulator=_NORMS,
        source="Godey, de la Clergerie and Sagot 2023",
        lowest=0.0,
        highest=1.0,
    ),
    Metric(
        name="dimension_share",
        summary="share of the anisotropy that the largest single dimension contributes",
        worse="up",
        floor=_RATIO_OF_SHARES,
        accumulator=_COSINES,
        source="Timkey and van Schijndel 2021",
        lowest=0.0,
    ),
    Metric(
        name="massive",
        summary="largest absolute activation",
        worse="up",
        floor=RELATIVE,
        floor_scale="massive",
        accumulator=_MASSIVE,
        source="Sun, Chen, Kolter and Liu 2024",
        lowest=0.0,
    ),
    Metric(
        name="massive_ratio",
        summary="largest absolute activation of a sequence, over the sequence's median one",
        worse="up",
        floor=RELATIVE,
        floor_scale="massive_ratio",
        accumulator=_MASSIVE,
        source="Sun, Chen, Kolter and Liu 2024",
        lowest=1.0,
    ),
    Metric(
        name="rank_residual",
        summary="distance from equal rows within a sequence, relative, in the Frobenius norm",
        worse="down",
        floor=SHARE,
        weight="sequences",
        accumulator=_RESIDUAL,
        source="Dong, Cordonnier and Loukas 2021",
        lowest=0.0,
        highest=1.0,
    ),
    Metric(
        name="rank_residual_composite",
        summary="distance from equal rows within a sequence, relative, in the norm √(‖·‖₁‖·‖_∞)",
        worse="down",
        floor=SHARE,
        weight="sequences",
        accumulator=_RESIDUAL,
        source="Dong, Cordonnier and Loukas 2021",
        lowest=0.0,
    ),
    Metric(
        name="duplicate_share",
        summary="share of representations that are bitwise copies of another one",
        worse="up",
        floor=SHARE,
        accumulator=_DUPLICATES,
        source="count of distinct rows",
        lowest=0.0,
        highest=1.0,
    ),
)
