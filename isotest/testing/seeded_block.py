"""A synthetic block that a configuration and a seed describe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from isotest.testing.described import Described

if TYPE_CHECKING:
    from isotest.blocks import BlockConfig, TransformerBlock


@dataclass(frozen=True, repr=False)
class SeededBlock(Described):
    """A block that follows from its description alone.

    Attributes:
        config: what it is made of.
        seed: of its weights.
        moved: standard deviation of what is added to every parameter, as training would: right
            after initialisation biases are zero and gains are one, which hides what they do.

    >>> from isotest.blocks import BlockConfig
    >>> SeededBlock(BlockConfig(width=8, heads=2), seed=3)
    SeededBlock(config=BlockConfig(width=8, heads=2), seed=3)
    """

    config: BlockConfig
    seed: int = 0
    moved: float = 0.0

    def module(self) -> TransformerBlock:
        """The block in eval mode, the same weights every time."""
        from isotest.blocks import TransformerBlock

        block = TransformerBlock(self.config, seed=self.seed)
        generator = torch.Generator().manual_seed(self.seed)
        with torch.no_grad():
            for parameter in block.parameters():
                noise = torch.randn(parameter.shape, generator=generator)
                parameter.add_(noise, alpha=self.moved)
        return block.eval()
