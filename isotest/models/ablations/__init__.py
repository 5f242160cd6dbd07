"""Parts of a transformer's blocks switched off: skips, MLPs, LayerNorms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isotest.models.ablations.ablation import NAMED, Ablation

if TYPE_CHECKING:
    from isotest.models.ablations.apply import ablated

__all__ = ["NAMED", "Ablation", "ablated"]


def __getattr__(name: str) -> Any:
    """Load on first use: a suite that names an ablation must be readable without torch."""
    if name != "ablated":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from isotest.models.ablations.apply import ablated

    return ablated
