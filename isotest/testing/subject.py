"""A block under test: the module, what is claimed of it, and how it is run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True)
class Claims:
    """What is said of a block, by whoever made it or by a look at what it does.

    Attributes:
        causal: no position sees a later one.
        normalised: the output of each position is normalised (a post-norm block).
        skip: the input is added to what the sublayers make of it.
        positions: the block treats positions differently by their number (rotary embeddings,
            relative biases, convolutions).
        masked: ``forward`` takes a second argument, (B, L) bool, true where a position is valid.
        scaled: scores are divided by √d_k.
    """

    causal: bool
    normalised: bool
    skip: bool
    positions: bool
    masked: bool
    scaled: bool


@dataclass(frozen=True)
class Subject:
    """A block in eval mode, and what is known of it.

    Attributes:
        module: takes (B, L, D), and a mask where it claims so; returns (B, L, D).
        name: of the block, for messages.
        width: D.
        heads: H.
        claims: what it is held to.
    """

    module: nn.Module
    name: str
    width: int
    heads: int
    claims: Claims

    def run(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        """The output of the block, (B, L, D), without gradients.

        Args:
            x: (B, L, D); never changed by the caller's copy: properties compare with it.
            valid: (B, L) bool, true where a position is valid; only if the block is ``masked``.
        """
        with torch.no_grad():
            return self.run_with_gradients(x, valid)

    def run_with_gradients(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        """As :meth:`run`, with gradients."""
        if not self.claims.masked:
            if valid is not None:
                raise ValueError(f"{self.name} takes no mask")
            output: Tensor = self.module(x)
            return output
        if valid is None:
            valid = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
        masked: Tensor = self.module(x, valid)
        return masked
