"""BERT and its kin, which normalise what each sublayer and its skip add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.errors import SourceError
from isotest.models.ablations.edits import part, unchanged

if TYPE_CHECKING:
    from torch import nn

    from isotest.models.ablations.ablation import Ablation
    from isotest.models.ablations.edits import Edits


def ablate(block: nn.Module, ablation: Ablation, edits: Edits) -> None:
    """Switch off parts of a block: ``LayerNorm(dropout(dense(…)) + input)``, twice."""
    if hasattr(block, "crossattention"):
        raise SourceError(
            f"ablate: a {type(block).__name__} with cross-attention has a third sublayer, for "
            "which there is no switch"
        )
    for sublayer, skip in (
        ("attention.output", ablation.attention_skip),
        ("output", ablation.mlp_skip),
    ):
        norm = part(block, f"{sublayer}.LayerNorm")
        if not skip:
            edits.feed(norm, edits.hold(part(block, f"{sublayer}.dropout")))
        if not ablation.layer_norm:
            edits.bypass(norm)
    if not ablation.mlp:
        edits.replace(block, "feed_forward_chunk", unchanged)
