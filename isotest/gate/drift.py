"""Is anisotropy explained by drift? The two curves' correlation over depth, with its traps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from isotest.gate.correlation import Correlation, Statistic, coefficient, correlate
from isotest.gate.curve import leave_one_out
from isotest.gate.quantiles import half_width, t_quantile
from isotest.statistics.registry import METRICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.estimate import Estimate
    from isotest.profile import Profile

Finding = Literal["explained", "not explained", "not identifiable"]

CURVES = ("anisotropy", "drift_norm", "mean_norm")
"""The metrics that the question needs at every layer."""

NORM_VARIATION = 0.1
"""Below this coefficient of variation of ``mean_norm`` the curves are one curve by construction."""


@dataclass(frozen=True)
class DriftCorrelation:
    """What the two curves say.

    Attributes:
        finding: explained (a significant positive correlation), not explained, not identifiable.
        reason: why it is not identifiable; empty otherwise.
        layers: how many points were correlated.
        spearman, pearson: the correlations; ``None`` where a curve is constant.
        norm_variation: standard deviation of ``mean_norm`` over the layers ÷ its mean.
    """

    finding: Finding
    reason: str
    layers: int
    spearman: Correlation | None
    pearson: Correlation | None
    norm_variation: float

    def correlation(self, statistic: Statistic) -> Correlation | None:
        """The one that decides."""
        return self.spearman if statistic == "spearman" else self.pearson


def drift_correlation(
    anisotropy: Sequence[float],
    drift_norm: Sequence[float],
    mean_norm: Sequence[float],
    *,
    statistic: Statistic = "spearman",
    alpha: float = 0.05,
) -> DriftCorrelation:
    """Correlate anisotropy with the length of the mean representation over the layers.

    Not identifiable where the answer does not depend on the model: mean cosine is about the squared
    length of the mean unit vector, so with equal norms ρ = 1 by construction; a constant curve
    correlates with nothing; and with four layers no order whatever reaches p < 0.05. A significant
    correlation is still no proof:
    layers are not independent, and two independent random walks of 13 steps correlate
    "significantly" in a third of all cases.

    Args:
        anisotropy: shape (layers,).
        drift_norm: shape (layers,), in the unit of the representations.
        mean_norm: shape (layers,), in the same unit.
        statistic: which correlation decides.
        alpha: its significance level.

    Raises:
        ValueError: curves of different length, or values that are not finite.

    Source: Godey et al. (2023), figures 5 and 11, for the question and its two statistics.

    >>> found = drift_correlation(
    ...     [0.1, 0.2, 0.3, 0.5, 0.6], [1.0, 2.0, 3.0, 5.0, 9.0], [4.0, 4.5, 5.0, 7.0, 11.0]
    ... )
    >>> found.finding, found.spearman.value, round(found.spearman.p_value, 4)
    ('explained', 1.0, 0.0167)
    """
    if len(mean_norm) != len(anisotropy):
        raise ValueError(
            f"expected curves of one length, found {len(anisotropy)} and {len(mean_norm)}"
        )
    if not np.isfinite(mean_norm).all():
        raise ValueError("expected finite values in mean_norm, found NaN or an infinity")
    correlations = {
        name: correlate(anisotropy, drift_norm, name) for name in ("spearman", "pearson")
    }
    variation = _variation(mean_norm)
    decisive = correlations[statistic]
    reason = _unidentifiable(decisive, variation, len(anisotropy), alpha)
    finding: Finding = "not identifiable"
    if not reason:
        assert decisive is not None
        significant = decisive.value > 0 and decisive.p_value < alpha
        finding = "explained" if significant else "not explained"
    return DriftCorrelation(
        finding,
        reason,
        len(anisotropy),
        correlations["spearman"],
        correlations["pearson"],
        variation,
    )


def _variation(norms: Sequence[float]) -> float:
    mean = float(np.mean(norms)) if len(norms) else 0.0
    return float(np.std(norms)) / mean if mean > 0 else 0.0


def _unidentifiable(
    decisive: Correlation | None, variation: float, layers: int, alpha: float
) -> str:
    if layers < 3:
        return f"{layers} layers are too few to correlate anything"
    if decisive is None:
        return "one of the two curves is constant"
    if variation < NORM_VARIATION:
        return (
            f"the norms vary by only {variation:.1%} over the layers, so that the two curves "
            "are one by construction"
        )
    if decisive.attainable >= alpha:
        return (
            f"with {layers} layers even a perfect order has p = {decisive.attainable:.2g}, "
            f"not below {alpha:g}"
        )
    return ""


def correlations_without_each_block(profile: Profile, statistic: Statistic) -> list[float] | None:
    """The coefficient with each block of sequences left out in turn; ``None`` where undefined."""
    curves = []
    for metric in ("anisotropy", "drift_norm"):
        curve = [
            leave_one_out(layer, METRICS[metric], profile.block_sequences)
            for layer in profile.layers
        ]
        if not curve or any(points is None for points in curve):
            return None
        curves.append([points for points in curve if points is not None])
    if len({len(points) for curve in curves for points in curve}) != 1:
        return None
    values = [
        coefficient([p[block] for p in curves[0]], [p[block] for p in curves[1]], statistic)
        for block in range(len(curves[0][0]))
    ]
    return None if any(value is None for value in values) else [v for v in values if v is not None]


def jackknife_interval(
    profile: Profile, statistic: Statistic, value: float, coverage: float = 0.95
) -> tuple[float, float] | None:
    """Interval of a coefficient over samples of the data, the layers being what they are.

    Value ± t·SE by the block jackknife, cut to -1…1. Spearman's ρ is a step function of the data,
    for which the jackknife is only a rough guide.

    Returns:
        Lower and upper end; ``None`` where the blocks do not allow it.
    """
    without = correlations_without_each_block(profile, statistic)
    if without is None:
        return None
    se = _jackknifed(value, without, profile.block_sequences).se
    if se is None or not math.isfinite(se):
        return None
    half = half_width(se, len(without) - 1, coverage)
    return max(-1.0, value - half), min(1.0, value + half)


def changed_beyond_chance(
    profile: Profile, baseline: Profile, statistic: Statistic, change: float, alpha: float
) -> bool | None:
    """Whether a coefficient's change exceeds its own, paired, error bar at level ``alpha``.

    Returns:
        ``None`` where the blocks do not allow an error bar.
    """
    new = correlations_without_each_block(profile, statistic)
    base = correlations_without_each_block(baseline, statistic)
    if new is None or base is None or len(new) != len(base):
        return None
    changes = [ours - theirs for ours, theirs in zip(new, base, strict=True)]
    se = _jackknifed(change, changes, profile.block_sequences).se
    if se is None or not math.isfinite(se):
        return None
    return abs(change) > t_quantile(1 - alpha / 2, len(changes) - 1) * se


def _jackknifed(value: float, without: Sequence[float], sizes: Sequence[int]) -> Estimate:
    from isotest.statistics.jackknife import jackknife

    return jackknife(value, without, sizes)
