"""Parts of a transformer's blocks switched off: skips, MLPs, LayerNorms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.lazy import lazily
from isotest.models.ablations.ablation import NAMED, Ablation

if TYPE_CHECKING:
    from isotest.models.ablations.apply import ablated

__all__ = ["NAMED", "Ablation", "ablated"]

# A suite that names an ablation must be readable without torch.
__getattr__ = lazily(__name__, {"ablated": "apply"})
