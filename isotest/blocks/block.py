"""The transformer block, written to be read.

A block is two sublayers, one after the other. The first lets positions exchange what they hold
(self-attention), the second works on each position by itself (the MLP). Each may have a *skip*,
which adds its input to its output, and a *normalisation*, a LayerNorm or an RMSNorm:

    post-norm (BERT):        x ← norm(x + sublayer(x))
    pre-norm (ViT, Llama):   x ← x + sublayer(norm(x))

All of this is a switch in :class:`isotest.blocks.config.BlockConfig`. There is no dropout: the
block is what others are in eval mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn
from torch.nn import functional

from isotest.blocks.attention import SelfAttention, linear
from isotest.blocks.initialisation import initialise
from isotest.errors import BlockError

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from isotest.blocks.attention import AttentionTrace
    from isotest.blocks.config import Activation, BlockConfig


class TransformerBlock(nn.Module):
    """A transformer block, untrained.

    Args:
        config: what it is made of.
        seed: of the weights, which depend on nothing else; see
            :mod:`isotest.blocks.initialisation`.
        number: which block of a stack it is, from 0.

    Attributes:
        config: as given.
        attention: ``None`` if switched off.
        attention_norm: the attention's normalisation; an identity where there is none.
        mlp: ``None`` if switched off.
        mlp_norm: the MLP's normalisation; an identity where there is none.

    >>> import torch
    >>> from isotest.blocks import BlockConfig
    >>> block = TransformerBlock(BlockConfig(width=8, heads=2, hidden=16), seed=0)
    >>> block(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(self, config: BlockConfig, *, seed: int = 0, number: int = 0) -> None:
        super().__init__()
        self.config = config
        self.attention = SelfAttention(config) if config.attention else None
        self.attention_norm = normalisation_of(config) if config.attention else nn.Identity()
        self.mlp = MLP(config) if config.mlp else None
        self.mlp_norm = normalisation_of(config) if config.mlp else nn.Identity()
        initialise(self, config, seed=seed, number=number)

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        """Apply the block.

        Args:
            x: (B, L, D): L representations of each of B sequences.
            valid: (B, L) bool, true where a position is no padding. No position attends to the
                others. A position that may see no key at all gets no more than a bias from the
                attention; nothing is NaN.

        Returns:
            (B, L, D).

        Raises:
            BlockError: ``x`` or ``valid`` has another shape or dtype.
        """
        attention, mlp = self.attention, self.mlp
        self._require_input(x)
        if attention is not None:
            x = self._sublayer(
                x,
                lambda y: attention(y, valid),
                self.attention_norm,
                skip=self.config.attention_skip,
            )
        if mlp is not None:
            x = self._sublayer(x, mlp, self.mlp_norm, skip=self.config.mlp_skip)
        return x

    def trace(self, x: Tensor, valid: Tensor | None = None) -> AttentionTrace:
        """Everything that the block's attention computes, given the *block's* input.

        Args:
            x: (B, L, D), as for :meth:`forward`.
            valid: as for :meth:`forward`.

        Raises:
            BlockError: the block has no attention, or as :meth:`forward`.
        """
        self._require_input(x)
        if self.attention is None:
            raise BlockError("block: attention = false, so there is nothing to trace")
        return self.attention.trace(self._enters(x, self.attention_norm), valid)

    def _sublayer(
        self, x: Tensor, sublayer: Callable[[Tensor], Tensor], norm: nn.Module, *, skip: bool
    ) -> Tensor:
        y = sublayer(self._enters(x, norm))
        if skip:
            y = x + y
        return norm(y) if self.config.layer_norm == "post" else y

    def _enters(self, x: Tensor, norm: nn.Module) -> Tensor:
        """What the sublayer is given of what the block, or its second half, is given."""
        return norm(x) if self.config.layer_norm == "pre" else x

    def _require_input(self, x: Tensor) -> None:
        if x.dim() != 3 or x.shape[-1] != self.config.width:
            raise BlockError(
                f"block: expected an input of shape (batch, length, {self.config.width}), found "
                f"{tuple(x.shape)}"
            )


class MLP(nn.Module):
    """Two linear maps with an activation between them, for each position by itself.

    Gated, the activation is that of a third map of the input, and multiplies what the first one
    yields: output(activation(gate(x))·hidden(x)) (Shazeer 2020, equation 6).
    """

    def __init__(self, config: BlockConfig) -> None:
        super().__init__()
        self.hidden = linear(config.width, config.hidden, bias=config.bias)
        self.gate = linear(config.width, config.hidden, bias=config.bias) if config.gated else None
        self.output = linear(config.hidden, config.width, bias=config.bias)
        self.activation = config.activation

    def forward(self, x: Tensor) -> Tensor:
        """Of (…, D), the same shape."""
        hidden = self.hidden(x)
        if self.gate is None:
            hidden = activated(hidden, self.activation)
        else:
            hidden = activated(self.gate(x), self.activation) * hidden
        output: Tensor = self.output(hidden)
        return output


def activated(x: Tensor, activation: Activation) -> Tensor:
    """The activation function of this name, entry by entry."""
    match activation:
        case "gelu":
            return functional.gelu(x)
        case "gelu_tanh":
            return functional.gelu(x, approximate="tanh")
        case "relu":
            return functional.relu(x)
        case "silu":
            return functional.silu(x)


def normalisation_of(config: BlockConfig) -> nn.Module:
    """The normalisation that a block has, wherever it stands; an identity where it has none."""
    if config.layer_norm == "none":
        return nn.Identity()
    match config.normalisation:
        case "layernorm":
            return nn.LayerNorm(config.width, eps=config.layer_norm_eps)
        case "rmsnorm":
            return nn.RMSNorm(config.width, eps=config.layer_norm_eps)
