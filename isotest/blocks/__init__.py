"""The synthetic transformer block, and the experiments on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.blocks.config import BlockConfig
from isotest.lazy import lazily

if TYPE_CHECKING:
    from isotest.blocks.attention import AttentionTrace, SelfAttention
    from isotest.blocks.block import TransformerBlock
    from isotest.blocks.stack import TransformerStack

__all__ = [
    "AttentionTrace",
    "BlockConfig",
    "SelfAttention",
    "TransformerBlock",
    "TransformerStack",
]

_HOME = {
    "AttentionTrace": "attention",
    "SelfAttention": "attention",
    "TransformerBlock": "block",
    "TransformerStack": "stack",
}

# A suite that names a block must be readable without torch.
__getattr__ = lazily(__name__, _HOME)
