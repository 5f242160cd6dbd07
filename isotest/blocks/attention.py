"""Multi-head self-attention, step by step, with every quantity in reach."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import nn

from isotest.errors import BlockError

if TYPE_CHECKING:
    from torch import Tensor

    from isotest.blocks.config import BlockConfig


@dataclass(frozen=True)
class AttentionTrace:
    """What one call of :class:`SelfAttention` computed, on the way to its output.

    Attributes:
        query: (B, H, L, d_k).
        key: (B, H, L, d_k).
        value: (B, H, L, d_k).
        scores: (B, H, L, L), q·kᵀ/√d_k; row i is query i; −∞ for keys it may not see.
        weights: (B, H, L, L), the softmax of each row of the scores; zeros for a query that may
            see no key at all.
        heads: (B, H, L, d_k), each head's output: weights · value.
        projection: (H, d_k, D), the output weights, head by head.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    scores: Tensor
    weights: Tensor
    heads: Tensor
    projection: Tensor

    @cached_property
    def contributions(self) -> Tensor:
        """(B, H, L, D): what each head adds to the output; with the bias, they sum up to it."""
        return self.heads @ self.projection


class SelfAttention(nn.Module):
    """Multi-head self-attention (Vaswani et al. 2017, section 3.2).

    Args:
        config: its width, heads, mask and biases.

    The weights are not initialised; :class:`isotest.blocks.block.TransformerBlock` does that.
    """

    def __init__(self, config: BlockConfig) -> None:
        super().__init__()
        self.head_count = config.heads
        self.head_width = config.head_width
        self.causal = config.causal
        self.query, self.key, self.value, self.output = (
            linear(config.width, config.width, bias=config.bias) for _ in range(4)
        )

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        """Attend.

        Args:
            x: (B, L, D).
            valid: (B, L) bool, true where a position is no padding; no query sees the others.

        Returns:
            (B, L, D). Padding positions have an output like any other: what is meaningless there
            is left to the caller. A query that may see no key gets the output's bias alone.

        Raises:
            BlockError: ``valid`` is no (B, L) bool.
        """
        heads = self.trace(x, valid).heads
        concatenated = heads.transpose(1, 2).flatten(2)
        output: Tensor = self.output(concatenated)
        return output

    def trace(self, x: Tensor, valid: Tensor | None = None) -> AttentionTrace:
        """Every step of :meth:`forward`, which is computed from this very trace.

        Args:
            x: (B, L, D).
            valid: as in :meth:`forward`.
        """
        query, key, value = (self.split(part(x)) for part in (self.query, self.key, self.value))
        # The queries are divided, not the scores: there are L/d_k times as many of those.
        scores = (query / math.sqrt(self.head_width)) @ key.transpose(-1, -2)
        allowed = self.allowed(x, valid)
        if allowed is None:
            weights = scores.softmax(-1)
        else:
            scores = scores.masked_fill(~allowed, -math.inf)
            # The softmax of a row that is −∞ throughout is NaN: nothing seen, nothing attended to.
            weights = scores.softmax(-1).masked_fill(~allowed, 0.0)
        # A view of a parameter asks for gradients even where none are wanted.
        matrix = self.output.weight if torch.is_grad_enabled() else self.output.weight.detach()
        projection: Tensor = matrix.T.unflatten(0, (self.head_count, self.head_width))
        return AttentionTrace(query, key, value, scores, weights, weights @ value, projection)

    def split(self, x: Tensor) -> Tensor:
        """(B, L, D) as (B, H, L, d_k): head h has entries h·d_k … (h + 1)·d_k − 1."""
        heads: Tensor = x.unflatten(-1, (self.head_count, self.head_width))
        return heads.transpose(1, 2)

    def allowed(self, x: Tensor, valid: Tensor | None) -> Tensor | None:
        """Which keys each query may see.

        Returns:
            Bool, broadcastable to (B, H, L, L); ``None``: every query sees every key.
        """
        length = x.shape[1]
        allowed = None
        if valid is not None:
            if valid.shape != x.shape[:2] or valid.dtype != torch.bool:
                raise BlockError(
                    f"attention: expected valid to be bool of shape {tuple(x.shape[:2])}, found "
                    f"{str(valid.dtype).removeprefix('torch.')} of shape {tuple(valid.shape)}"
                )
            allowed = valid[:, None, None, :]
        if self.causal:
            past = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
            allowed = past if allowed is None else allowed & past
        return allowed


def linear(inputs: int, outputs: int, *, bias: bool) -> nn.Linear:
    """A linear map with memory for its weights and nothing in it: no random number is drawn."""
    empty: nn.Linear = nn.utils.skip_init(nn.Linear, inputs, outputs, bias=bias)
    return empty
