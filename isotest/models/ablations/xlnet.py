"""XLNet, which normalises last, like BERT; its attention has two streams."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from isotest.models.ablations.edits import part, unchanged

if TYPE_CHECKING:
    from torch import nn

    from isotest.models.ablations.ablation import Ablation
    from isotest.models.ablations.edits import Edits


def ablate(block: nn.Module, ablation: Ablation, edits: Edits) -> None:
    """Switch off parts of an ``XLNetLayer``, in both streams where there are two."""
    attention: Any = part(block, "rel_attn")
    norms = [part(block, path) for path in ("rel_attn.layer_norm", "ff.layer_norm")]
    if not ablation.attention_skip:
        edits.replace(
            attention, "post_attention", partial(attention.post_attention, residual=False)
        )
    if not ablation.mlp:
        edits.replace(block, "ff_chunk", unchanged)
    elif not ablation.mlp_skip:
        # The MLP runs its dropout twice, the second time on its output.
        edits.feed(norms[1], edits.hold(part(block, "ff.dropout")))
    if not ablation.layer_norm:
        for norm in norms:
            edits.bypass(norm)
