"""Blocks that normalise first and add to what they were given: GPT-2, ViT, Llama and their kin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isotest.errors import SourceError
from isotest.models.ablations.edits import part

if TYPE_CHECKING:
    from torch import nn

    from isotest.models.ablations.ablation import Ablation
    from isotest.models.ablations.edits import Edits


@dataclass(frozen=True)
class PreNorm:
    """Where the parts of ``h = x + attention(norm(x)); h + mlp(norm(h))`` are in a block.

    Attributes:
        attention_norm: path of the first norm.
        attended: of the module whose output is added to ``x``.
        mlp_norm: of the second norm.
        mlp: of the MLP.
        transformed: of the module whose output is added to ``h``.
    """

    attention_norm: str
    attended: str
    mlp_norm: str
    mlp: str
    transformed: str

    def __call__(self, block: nn.Module, ablation: Ablation, edits: Edits) -> None:
        """Switch off parts of a block.

        The block runs as its library wrote it, whatever its arguments are. Without the attention's
        skip, its second half is given the attention's output alone; what the block returns is then
        put together again from what its parts made.
        """
        if hasattr(block, "crossattention"):
            raise SourceError(
                f"ablate: a {type(block).__name__} with cross-attention has a third sublayer, for "
                "which there is no switch"
            )
        attended = edits.hold(part(block, self.attended))
        transformed = edits.hold(part(block, self.transformed))
        norms = [part(block, path) for path in (self.attention_norm, self.mlp_norm)]
        if not ablation.attention_skip:
            edits.feed(norms[1], attended)
        between = edits.hold_input(norms[1])
        if not ablation.layer_norm:
            for norm in norms:
                edits.bypass(norm)
        if not ablation.mlp:
            edits.bypass(part(block, self.mlp))
        whole = block.forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            result = whole(*args, **kwargs)
            y = between.tensor
            if ablation.mlp:
                y = transformed.tensor + y if ablation.mlp_skip else transformed.tensor
            return (y, *result[1:]) if isinstance(result, tuple) else y

        edits.replace(block, "forward", forward)


# ViT's block drops out what its parts made; it has one module for both.
vit = PreNorm("layernorm_before", "dropout", "layernorm_after", "mlp", "dropout")
gpt2 = PreNorm("ln_1", "attn", "ln_2", "mlp", "mlp")
llama = PreNorm("input_layernorm", "self_attn", "post_attention_layernorm", "mlp", "mlp")
