"""The drift experiment on a block under test, small: it is reported, not judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from isotest.blocks.drift import drift

if TYPE_CHECKING:
    from isotest.profile import Profile
    from isotest.testing.subject import Subject

METRICS = ("anisotropy", "mean_norm")
"""Of input and output: the two halves of figure 6."""

_SHARES = (0.0, 0.25, 0.5, 1.0, 2.0)
"""N in units of √D, which is the length that a LayerNorm gives."""


def drift_of(subject: Subject, *, seed: int) -> Profile:
    """What the block makes of embeddings that a common bias moves away from zero.

    Args:
        subject: the block.
        seed: of embeddings, sequences and directions.

    Raises:
        IsotestError: it gives NaN or an infinity, or fails.
    """
    module = _Unmasked(subject.module) if subject.claims.masked else subject.module
    return drift(
        module,
        norms=[share * subject.width**0.5 for share in _SHARES],
        width=subject.width,
        replicates=3,
        sequences=4,
        length=16,
        vocabulary=1000,
        seed=seed,
        metrics=METRICS,
        name=subject.name,
    )


class _Unmasked(nn.Module):
    """A block that takes a mask, given one that is true everywhere."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.block(x, torch.ones(x.shape[:2], dtype=torch.bool, device=x.device))
        return output


def drift_table(profile: Profile) -> list[str]:
    """The curves of figure 6, a line for each N."""
    lines = ["  drift: N    cosine in    cosine out   norm in      norm out"]
    half = len(profile.layers) // 2
    for before, after in zip(profile.layers[:half], profile.layers[half:], strict=True):
        values = [layer.estimates[metric].value for metric in METRICS for layer in (before, after)]
        shown = "".join(f"{'–' if value is None else f'{value:.4g}':<13}" for value in values)
        lines.append(f"  {before.at or 0:<12.4g}{shown}".rstrip())
    return lines
