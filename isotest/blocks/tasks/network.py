"""A network that labels every position of a sequence: embedding, transformer blocks, classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

from isotest.blocks.attention import linear
from isotest.blocks.block import normalisation_of
from isotest.blocks.stack import TransformerStack
from isotest.blocks.tasks.config import COORDINATES
from isotest.errors import BlockError

if TYPE_CHECKING:
    from torch import Tensor

    from isotest.blocks.tasks.config import NetworkConfig


class TokenEmbedding(nn.Module):
    """A vector for each token, and one for each position if positions are told apart, added up.

    Then a linear map and, in a network that normalises behind its sublayers, a LayerNorm.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        width = config.block.width
        if config.vocabulary is None:
            raise BlockError("network: an embedding of tokens needs a vocabulary")
        self.token = nn.Parameter(torch.empty(config.vocabulary, width))
        positions = config.positions
        self.position = None if positions is None else nn.Parameter(torch.empty(positions, width))
        self.linear = linear(width, width, bias=True)
        self.norm = _embedding_norm(config)

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, L) int64 to (B, L, D)."""
        x = functional.embedding(inputs, self.token)
        if self.position is not None:
            if inputs.shape[1] > len(self.position):
                raise BlockError(
                    f"network: expected at most {len(self.position)} positions, found "
                    f"{inputs.shape[1]}"
                )
            x = x + self.position[: inputs.shape[1]]
        embedded: Tensor = self.norm(self.linear(x))
        return embedded


class PointEmbedding(nn.Module):
    """Two linear maps with a GELU between them, of a point's coordinates.

    In a network that normalises behind its sublayers, a LayerNorm follows.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        width = config.block.width
        self.hidden = linear(COORDINATES, width, bias=True)
        self.output = linear(width, width, bias=True)
        self.norm = _embedding_norm(config)

    def forward(self, inputs: Tensor) -> Tensor:
        """(B, L, 2) to (B, L, D)."""
        embedded: Tensor = self.norm(self.output(functional.gelu(self.hidden(inputs))))
        return embedded


class TaskNetwork(nn.Module):
    """Embedding, transformer blocks, a final normalisation where they normalise first, classifier.

    Args:
        config: what it is made of.
        seed: of the weights, which depend on nothing else. Blocks are drawn as
            :mod:`isotest.blocks.initialisation` says; matrices around them by Glorot and Bengio's
            rule, tables of embeddings from N(0, 1), biases are 0.

    Attributes:
        config: as given.
        embedding: (B, L) or (B, L, 2) to (B, L, D).
        stack: the blocks.
        final_norm: an identity where blocks normalise behind their sublayers.
        head: (…, D) to (…, classes), each position by itself.

    >>> from isotest.blocks import BlockConfig
    >>> from isotest.blocks.tasks.config import NetworkConfig
    >>> block = BlockConfig(width=8, heads=2, hidden=8, depth=2)
    >>> network = TaskNetwork(NetworkConfig(block, classes=3, vocabulary=5))
    >>> network(torch.tensor([[0, 4, 2]])).shape
    torch.Size([1, 3, 3])
    """

    def __init__(self, config: NetworkConfig, *, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        tokens = config.vocabulary is not None
        self.embedding = TokenEmbedding(config) if tokens else PointEmbedding(config)
        self.stack = TransformerStack(config.block, seed=seed)
        self.final_norm = (
            normalisation_of(config.block) if config.block.layer_norm == "pre" else nn.Identity()
        )
        self.head = linear(config.block.width, config.classes, bias=True)
        self._initialise(seed)

    def forward(self, inputs: Tensor, valid: Tensor | None = None) -> Tensor:
        """Label.

        Args:
            inputs: (B, L) int64 tokens, or (B, L, 2) coordinates.
            valid: (B, L) bool, true where a position is no padding; all are without.

        Returns:
            (B, L, classes) logits.
        """
        x = self.stack(self.embedding(inputs), valid)
        logits: Tensor = self.head(self.final_norm(x))
        return logits

    def loss(self, inputs: Tensor, labels: Tensor, valid: Tensor) -> Tensor:
        """Mean cross-entropy of the valid positions, in nats; arguments as of ``Examples``."""
        end = int(valid.any(dim=0).nonzero().max()) + 1
        inputs, labels, valid = inputs[:, :end], labels[:, :end], valid[:, :end]
        logits = self(inputs, None if bool(valid.all()) else valid)
        return functional.cross_entropy(logits[valid], labels[valid])

    @torch.no_grad()
    def _initialise(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        for part in (self.embedding, self.head):
            for _, parameter in part.named_parameters():
                if parameter.dim() == 1:
                    parameter.zero_()
            for module in part.modules():
                if isinstance(module, nn.LayerNorm | nn.RMSNorm):
                    module.reset_parameters()
                elif isinstance(module, nn.Linear):
                    nn.init.xavier_uniform_(module.weight, generator=generator)
        if isinstance(self.embedding, TokenEmbedding):
            for table in (self.embedding.token, self.embedding.position):
                if table is not None:
                    table.normal_(generator=generator)


def _embedding_norm(config: NetworkConfig) -> nn.Module:
    return normalisation_of(config.block) if config.block.layer_norm == "post" else nn.Identity()
