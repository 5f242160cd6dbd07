"""The same function in every dtype, within stated bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from isotest.testing.properties.altered import altered, cannot_alter
from isotest.testing.property import Property, ViolationError

if TYPE_CHECKING:
    from torch import nn

    from isotest.testing.subject import Subject
    from isotest.testing.token_batch import TokenBatch

BOUNDS = {torch.float32: 1e-4, torch.bfloat16: 0.1}
"""‖f(x) − f₆₄(x)‖ ÷ ‖f₆₄(x)‖ over the batch: some hundred units of rounding of float32 (6e-8) and
some ten of bfloat16 (4e-3), whose weights are rounded as well."""


def _double(module: nn.Module) -> nn.Module:
    return module.double()


def _brain(module: nn.Module) -> nn.Module:
    return module.bfloat16()


def _dtype_agreement(subject: Subject, batch: TokenBatch) -> None:
    exact = altered(subject, _double).run(batch.tensor(torch.float64))
    _require_close(subject.run(batch.tensor()), exact)
    if batch.scale <= 1 and cannot_alter(subject, _brain, "in bfloat16") is None:
        rounded = altered(subject, _brain).run(batch.tensor(torch.bfloat16))
        _require_close(rounded, exact)


def _require_close(output: torch.Tensor, exact: torch.Tensor) -> None:
    gap = float((output.double() - exact).norm())
    length = float(exact.norm())
    if not gap <= BOUNDS[output.dtype] * length:
        raise ViolationError(
            f"in {str(output.dtype).removeprefix('torch.')} the output is off by "
            f"{gap / length if length else gap:.2g} of its length in float64; at most "
            f"{BOUNDS[output.dtype]:g} is rounding"
        )


def _no_double(subject: Subject) -> str | None:
    return cannot_alter(subject, _double, "in float64")


DTYPE_AGREEMENT = Property(
    name="dtype_agreement",
    statement="float32 gives what float64 gives to 1e-4 of the output's length; bfloat16 to 0.1, "
    "where entries of the input are of order 1.",
    source="rounding units 6e-8 and 4e-3: IEEE 754; Kalamkar et al. 2019 for bfloat16",
    conditions="blocks that run in float64; bfloat16 where they run in it",
    excludes=_no_double,
    check=_dtype_agreement,
)
