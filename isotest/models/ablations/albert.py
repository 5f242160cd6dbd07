"""ALBERT, whose layers are calls of one block; it normalises last, like BERT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.errors import SourceError
from isotest.models.ablations.edits import part, unchanged

if TYPE_CHECKING:
    from torch import nn

    from isotest.models.ablations.ablation import Ablation
    from isotest.models.ablations.edits import Edits


def ablate(block: nn.Module, ablation: Ablation, edits: Edits) -> None:
    """Switch off parts of an ``AlbertLayer``, in all layers at once, as it is shared."""
    if getattr(block, "chunk_size_feed_forward", 0):
        raise SourceError(
            "ablate: an ALBERT that runs its MLP in chunks cannot be ablated; set "
            "chunk_size_feed_forward = 0, which computes the same"
        )
    attention_norm = part(block, "attention.LayerNorm")
    mlp_norm = part(block, "full_layer_layer_norm")
    if not ablation.attention_skip:
        edits.feed(attention_norm, edits.hold(part(block, "attention.output_dropout")))
    if not ablation.layer_norm:
        edits.bypass(attention_norm)
    if not ablation.mlp:
        # The block adds the MLP and its input up outside of every method, so the last norm is
        # where the attention's output can take the sum's place.
        edits.replace(block, "ff_chunk", unchanged)
        edits.feed(mlp_norm, edits.hold(attention_norm))
        edits.bypass(mlp_norm)
        return
    if not ablation.mlp_skip:
        edits.feed(mlp_norm, edits.hold(part(block, "ffn_output")))
    if not ablation.layer_norm:
        edits.bypass(mlp_norm)
