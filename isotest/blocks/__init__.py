"""The synthetic transformer block, and the experiments on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isotest.blocks.config import BlockConfig

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

_MODULES = {
    "AttentionTrace": "attention",
    "SelfAttention": "attention",
    "TransformerBlock": "block",
    "TransformerStack": "stack",
}


def __getattr__(name: str) -> Any:
    """Load on first use: a suite that names a block must be readable without torch."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"isotest.blocks.{_MODULES[name]}"), name)
