"""Many layers are many tests: Holm's step-down correction, within a check and over a suite."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjust p-values so that rejecting those below α errs at all with probability at most α.

    In ascending order p₍₁₎ ≤ … ≤ p₍ₘ₎ the adjusted values are p̃₍ᵢ₎ = max over j ≤ i of
    min(1, (m − j + 1)·p₍ⱼ₎); valid under any dependence between the tests, which layers have.

    Args:
        p_values: one per test, each in 0…1.

    Returns:
        The adjusted p-values, in the order given.

    Raises:
        ValueError: a value is NaN or outside 0…1.

    Source: Holm (1979), A simple sequentially rejective multiple test procedure.

    >>> holm([0.01, 0.04, 0.03])
    (0.03, 0.06, 0.06)
    """
    for p in p_values:
        if not 0.0 <= p <= 1.0:  # refuses NaN too
            raise ValueError(f"expected p-values between 0 and 1, found {p}")
    count = len(p_values)
    adjusted = [math.nan] * count
    largest = 0.0
    for rank, index in enumerate(sorted(range(count), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = largest
    return tuple(adjusted)


@dataclass(frozen=True)
class FamilyWise:
    """All regression checks of a suite, judged as one family.

    Attributes:
        adjusted: Holm-adjusted p-value by check.
        rejected: the checks whose adjusted value is below alpha, smallest first.
        alpha: the family-wise error.
    """

    adjusted: Mapping[str, float]
    rejected: tuple[str, ...]
    alpha: float


def family_wise(p_values: Mapping[str, float], alpha: float) -> FamilyWise:
    """Which of a suite's checks are beyond their margin when their number is accounted for.

    Args:
        p_values: by check, the smallest p-value over its layers, Holm-adjusted within the check
            (:attr:`isotest.gate.verdict.Verdict.p_value`). Such a value is a valid p-value of "some
            layer of this check is beyond its margin", so correcting once more controls the
            error over all layers of all checks.
        alpha: family-wise error over the suite.

    Raises:
        ValueError: a p-value is NaN or outside 0…1, or alpha is not between 0 and 1.

    >>> family_wise({"a": 0.004, "b": 0.2}, 0.01).rejected
    ('a',)
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"expected alpha between 0 and 1, found {alpha}")
    adjusted = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    rejected = tuple(
        name for name in sorted(adjusted, key=adjusted.__getitem__) if adjusted[name] < alpha
    )
    return FamilyWise(adjusted, rejected, alpha)
