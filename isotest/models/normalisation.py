"""Which modules normalise."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


def is_normalisation(module: nn.Module) -> bool:
    """Whether a module is a LayerNorm, an RMSNorm or its kin: the name of its class says so.

    >>> from torch import nn
    >>> [is_normalisation(module) for module in (nn.LayerNorm(2), nn.Linear(2, 2))]
    [True, False]
    """
    return "norm" in type(module).__name__.lower()
