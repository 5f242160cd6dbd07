"""Metrics of eigenvalues: of all representations where they are narrow, else of those kept."""

from __future__ import annotations

from functools import partial

from isotest.statistics.metric import RELATIVE, SHARE, Metric
from isotest.statistics.registry.kept import KEPT

# A change of the decay of 0.001 moves the last of the eigenvalues fitted by 0.4 %.
_EXPONENT = 1e-3

_spectral = partial(Metric, accumulator=KEPT, covariance=True, default=False)

SPECTRA: tuple[Metric, ...] = (
    _spectral(
        name="effective_rank",
        summary="exp of the entropy of the singular values, centred: directions in use",
        worse="down",
        floor=RELATIVE,
        floor_scale="effective_rank",
        evaluator="isotest.statistics.effective_rank:evaluate",
        source="Roy and Vetterli 2007",
        lowest=1.0,
    ),
    _spectral(
        name="effective_rank_uncentered",
        summary="exp of the entropy of the singular values, not centred (RankMe)",
        worse="down",
        floor=RELATIVE,
        floor_scale="effective_rank_uncentered",
        evaluator="isotest.statistics.effective_rank:evaluate_uncentered",
        source="Garrido, Balestriero, Najman and LeCun 2023",
        lowest=1.0,
    ),
    _spectral(
        name="participation_ratio",
        summary="(Σλ)²/Σλ² of the covariance: directions that carry the variance",
        worse="down",
        floor=RELATIVE,
        floor_scale="participation_ratio",
        evaluator="isotest.statistics.participation_ratio:evaluate",
        source="Gao et al. 2017",
        lowest=1.0,
    ),
    _spectral(
        name="nesum",
        summary="variance in units of that along the largest direction, Σλ/λ_max",
        worse="down",
        floor=RELATIVE,
        floor_scale="nesum",
        evaluator="isotest.statistics.largest_eigenvalue:evaluate_nesum",
        source="He and Ozay 2022",
        lowest=1.0,
    ),
    _spectral(
        name="spectral_anisotropy",
        summary="share of the variance that the largest direction carries, λ_max/Σλ",
        worse="up",
        floor=SHARE,
        evaluator="isotest.statistics.largest_eigenvalue:evaluate_spectral_anisotropy",
        source="Razzhigaev et al. 2023",
        lowest=0.0,
        highest=1.0,
    ),
    _spectral(
        name="isoscore",
        summary="how evenly the variance fills the space, from a line (0) to a ball (1)",
        worse="down",
        floor=SHARE,
        evaluator="isotest.statistics.isoscore:evaluate",
        source="Rudman, Gillman, Rayne and Eickhoff 2022",
        lowest=0.0,
        highest=1.0,
    ),
    _spectral(
        name="isoscore_star",
        summary="isoscore of the covariance, shrunk by as much as few samples call for",
        worse="down",
        floor=SHARE,
        evaluator="isotest.statistics.isoscore:evaluate_star",
        source="Rudman and Eickhoff 2023",
        lowest=0.0,
        highest=1.0,
    ),
    _spectral(
        name="alpha_req",
        summary="decay of the spectrum: α of λ_k ∝ k^−α over a window of ranks",
        worse="both",
        floor=_EXPONENT,
        evaluator="isotest.statistics.alpha_req:evaluate",
        source="Agrawal, Mondal, Ghosh and Richards 2022",
        lowest=0.0,
    ),
)
