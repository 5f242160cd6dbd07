"""Spearman's and Pearson's correlation of two curves, with p-values that hold for few layers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from isotest.gate.quantiles import t_above

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Statistic = Literal["spearman", "pearson"]

EXACT_LAYERS = 9
"""Up to this many layers all orders (9! = 362,880) are enumerated."""


@dataclass(frozen=True)
class Correlation:
    """A correlation coefficient and how surprising it is.

    Attributes:
        value: the coefficient, -1…1.
        p_value: two-sided; the share of all orders of one curve that correlate at least as
            strongly where these are few enough to enumerate, else ``p_student``.
        p_student: two-sided, by Student's t with n - 2 degrees of freedom, as scipy reports it for
            either statistic.
        attainable: the smallest ``p_value`` that any order of these values could have had.
    """

    value: float
    p_value: float
    p_student: float
    attainable: float


def coefficient(x: Sequence[float], y: Sequence[float], statistic: Statistic) -> float | None:
    """The coefficient alone; ``None`` where a curve is constant, or shorter than two points.

    >>> coefficient([1.0, 2.0, 3.0], [1.0, 4.0, 9.0], "spearman")
    1.0
    """
    centred = _centred(x, y, statistic)
    return None if centred is None else _clip(float(centred[0] @ centred[1]))


def correlate(x: Sequence[float], y: Sequence[float], statistic: Statistic) -> Correlation | None:
    """Correlate two curves, shape (layers,) each.

    Ties get their mean rank in Spearman's statistic, as in scipy. Student's t is a poor guide for a
    handful of points (four in one order give p = 0 by t, 2/4! = 0.083 by enumeration), so up to
    :data:`EXACT_LAYERS` points the p-value enumerates every order.

    Returns:
        ``None`` where a curve is constant or there are fewer than three points.

    Raises:
        ValueError: curves of different length, or values that are not finite.

    >>> r = correlate([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], "spearman")
    >>> round(r.p_value, 4), r.p_student
    (0.0833, 0.0)
    """
    count = len(x)
    if count != len(y):
        raise ValueError(f"expected curves of one length, found {count} and {len(y)}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("expected finite values in both curves, found NaN or an infinity")
    centred = _centred(x, y, statistic)
    if centred is None or count < 3:
        return None
    value = _clip(float(centred[0] @ centred[1]))
    p_student = _student(value, count)
    if count > EXACT_LAYERS:
        return Correlation(value, p_student, p_student, 0.0)
    # The coefficients of orders that only exchange ties differ by rounding and must count alike.
    strength = np.abs(centred[1][_orders(count)] @ centred[0]) + 1e-12
    p_exact = float(np.mean(strength >= abs(value)))
    attainable = float(np.mean(strength >= strength.max() - 2e-12))
    return Correlation(value, p_exact, p_student, attainable)


def _centred(
    x: Sequence[float], y: Sequence[float], statistic: Statistic
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Both curves (or their ranks), centred, of length one: their product is the coefficient."""
    unit = []
    for values in (x, y):
        curve = np.asarray(values, dtype=np.float64)
        if len(curve) < 2 or np.ptp(curve) == 0:
            return None
        # Scaled first, so that neither huge nor tiny values overflow when squared.
        curve = _ranks(curve) if statistic == "spearman" else curve / np.abs(curve).max()
        curve = curve - curve.mean()
        length = float(np.linalg.norm(curve))
        if length == 0:
            return None
        unit.append(curve / length)
    return unit[0], unit[1]


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 1, ties sharing their mean."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    shared: NDArray[np.float64] = (last - (counts - 1) / 2)[inverse]
    return shared


def _clip(value: float) -> float:
    """Within -1…1, and exactly at an end where only rounding keeps it away."""
    return math.copysign(1.0, value) if abs(value) > 1 - 1e-15 else value


def _student(value: float, count: int) -> float:
    if abs(value) == 1:
        return 0.0
    df = count - 2
    return min(1.0, 2 * t_above(abs(value) * math.sqrt(df / (1 - value**2)), df))


@lru_cache(maxsize=4)
def _orders(count: int) -> NDArray[np.intp]:
    """All orders of ``count`` things, shape (count!, count)."""
    table = np.zeros((1, 0), dtype=np.intp)
    for item in range(count):
        table = np.concatenate([np.insert(table, at, item, axis=1) for at in range(item + 1)])
    return table
