"""Blocks one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from isotest.blocks.block import TransformerBlock

if TYPE_CHECKING:
    from torch import Tensor

    from isotest.blocks.config import BlockConfig


class TransformerStack(nn.Module):
    """``config.depth`` blocks, each with weights of its own.

    There is no embedding in front and no normalisation behind them.

    Args:
        config: of each block.
        seed: of the weights. Block k is ``TransformerBlock(config, seed=seed, number=k)``.

    Attributes:
        config: as given.
        blocks: the :class:`TransformerBlock` modules, in forward order.
    """

    def __init__(self, config: BlockConfig, *, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        self.blocks = nn.ModuleList(
            TransformerBlock(config, seed=seed, number=number) for number in range(config.depth)
        )

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        """Apply all blocks; arguments and result as of :meth:`TransformerBlock.forward`."""
        for block in self.blocks:
            x = block(x, valid)
        return x
