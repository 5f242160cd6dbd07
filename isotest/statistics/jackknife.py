"""Error bars from leaving one block out (numpy only, so that the gate can use it).

The delete-mⱼ block jackknife for blocks of unequal size: F. M. T. A. Busing, E. Meijer and
R. van der Leeden, "Delete-m jackknife for unequal m", Statistics and Computing 9 (1999) 3–8. With
block sizes m_b, n = Σ m_b and h_b = n / m_b, the pseudo-value of block b is

    τ_b = h_b θ − (h_b − 1) θ₍₋b₎,

the jackknife estimate is θ_J = Σ τ_b / h_b, and its variance is

    (1/G) Σ (τ_b − θ_J)² / (h_b − 1).

With equal blocks this is the ordinary block jackknife: the variance of the mean of the τ_b.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from isotest.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence


def pseudo_values(
    value: float, leave_one_out: Sequence[float], sizes: Sequence[float]
) -> tuple[float, ...]:
    """The pseudo-value τ_b of each block.

    Args:
        value: the statistic over all blocks, θ.
        leave_one_out: the statistic without block b, for each b.
        sizes: how much each block weighs, m_b > 0.

    >>> pseudo_values(2.0, [2.5, 2.0, 1.5], [1, 1, 1])  # of a mean: the block means
    (1.0, 2.0, 3.0)
    """
    ratio = _ratios(sizes)
    without = np.asarray(leave_one_out, dtype=np.float64)
    if without.shape != ratio.shape:
        raise ValueError(f"{without.size} leave-one-out values for {ratio.size} blocks")
    # θ + (h − 1)(θ − θ₍₋b₎) is the same, and exact where leaving a block out changes nothing.
    return tuple((value + (ratio - 1.0) * (value - without)).tolist())


def standard_error(pseudo: Sequence[float], sizes: Sequence[float]) -> float | None:
    """Standard error from pseudo-values; ``None`` with fewer than two blocks.

    >>> standard_error([1.0, 2.0, 3.0], [1, 1, 1])  # s / √n of 1, 2, 3
    0.5773502691896257
    """
    if len(pseudo) < 2:
        return None
    ratio = _ratios(sizes)
    tau = np.asarray(pseudo, dtype=np.float64)
    if tau.shape != ratio.shape:
        raise ValueError(f"{tau.size} pseudo-values for {ratio.size} blocks")
    spread = tau - np.sum(tau / ratio)
    # Scaled, so that squares of very small or very large values stay in range.
    scale = float(np.max(np.abs(spread)))
    if scale == 0.0 or not math.isfinite(scale):
        return scale
    return scale * math.sqrt(float(np.mean((spread / scale) ** 2 / (ratio - 1.0))))


def jackknife(value: float, leave_one_out: Sequence[float], sizes: Sequence[float]) -> Estimate:
    """Estimate with standard error and pseudo-values; no error bar with fewer than two blocks.

    The estimate is ``value`` itself, not the bias-corrected θ_J: exact formulas have no bias worth
    the extra variance.

    Args:
        value: the statistic over all blocks.
        leave_one_out: the statistic without block b, for each b; empty with fewer than two blocks.
        sizes: how much each block weighs, m_b > 0.

    >>> jackknife(2.0, [2.5, 2.0, 1.5], [1, 1, 1]).se
    0.5773502691896257
    >>> jackknife(2.0, [], [7]).se is None
    True
    """
    if len(sizes) < 2:
        return Estimate(value)
    pseudo = pseudo_values(value, leave_one_out, sizes)
    return Estimate(value, standard_error(pseudo, sizes), pseudo)


def paired_change(
    new: Estimate, base: Estimate, sizes: Sequence[float]
) -> tuple[float, float | None, int]:
    """Change from ``base`` to ``new`` on the same data, its standard error, degrees of freedom.

    What both share (which sequences were hard) cancels block by block: the error comes from the
    differences of the pseudo-values, with the same variance formula.

    Args:
        new: the later estimate, with its blocks.
        base: the estimate compared with, measured on the same blocks.
        sizes: how much each block weighs.

    Returns:
        ``(new.value − base.value, se, G − 1)``; ``se`` is ``None`` with fewer than two blocks.

    Raises:
        ValueError: an undefined value, or block counts that differ.

    >>> base = jackknife(2.0, [2.5, 2.0, 1.5], [1, 1, 1])
    >>> new = jackknife(3.0, [3.5, 3.0, 2.5], [1, 1, 1])
    >>> paired_change(new, base, [1, 1, 1])
    (1.0, 0.0, 2)
    """
    if new.value is None or base.value is None:
        raise ValueError("paired_change needs two defined estimates")
    if len(new.blocks) != len(base.blocks):
        raise ValueError(f"{len(new.blocks)} blocks against {len(base.blocks)}: not paired")
    change = new.value - base.value
    if len(new.blocks) < 2:
        return change, None, 0
    differences = [after - before for after, before in zip(new.blocks, base.blocks, strict=True)]
    return change, standard_error(differences, sizes), len(differences) - 1


def _ratios(sizes: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    weights = np.asarray(sizes, dtype=np.float64)
    if weights.ndim != 1 or not np.all(weights > 0):
        raise ValueError("every block must have a size above zero")
    ratio: np.ndarray[tuple[int], np.dtype[np.float64]] = weights.sum() / weights
    return ratio
