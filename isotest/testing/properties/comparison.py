"""Comparing two outputs of a block: how far apart rounding may take them, and saying so."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from isotest.testing.property import ViolationError

if TYPE_CHECKING:
    from torch import Tensor

ROUNDING = 1e-5
"""Of the largest output: what the order of float32 sums may change. Their unit is 6e-8; the healthy
blocks of the tests stay below 1e-6."""


def require_equal(got: Tensor, expected: Tensor, what: str, *, tolerance: float = ROUNDING) -> None:
    """Demand that two outputs are the same up to rounding.

    Args:
        got: (B, L, D).
        expected: (B, L, D).
        what: the start of the message: which output changed, and by what.
        tolerance: share of the largest absolute value of ``expected`` that they may differ by.

    Raises:
        ViolationError: they differ by more, or one of them is not finite.
    """
    gap = (got.double() - expected.double()).abs()
    largest = float(expected.double().abs().max())
    worst = float(gap.max())
    if math.isfinite(worst) and worst <= tolerance * largest:
        return
    index = tuple(int(i) for i in _position(gap))
    where = f"sequence {index[0]}, position {index[1]}, entry {index[2]}"
    raise ViolationError(
        f"{what}: {_number(got, index)} instead of {_number(expected, index)} at {where}; "
        f"difference {worst:.2g} where the largest output is {largest:.2g}"
    )


def _position(gap: Tensor) -> Tensor:
    import torch

    flat = torch.nan_to_num(gap, nan=float("inf")).flatten().argmax()
    return torch.stack(torch.unravel_index(flat, gap.shape))


def _number(values: Tensor, index: tuple[int, ...]) -> str:
    return f"{float(values[index]):.4g}"
