"""From bytes to blocks: the embedding of a block, from the bytes that may belong to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from isotest.models.architectures.manta.segmentation import (
    block_counts,
    block_moments,
    memberships,
)

if TYPE_CHECKING:
    from isotest.models.architectures.manta.configuration import MantaConfig

# Blocks pooled at once. The convolution of every byte for every block is (B, L, N, D) numbers:
# 5 GB for eight texts of 2,048 bytes and 512 blocks at base size.
_AT_ONCE = 32


class MantaPooling(nn.Module):
    """Segmentation, pooling and projection to the encoder's width.

    With P the memberships and e the byte embeddings, block k is W maxᵢ (w ∗ (P(k|·) e))ᵢ + b: a
    depthwise convolution w over the weighted bytes, its maximum over all bytes of the text, and a
    projection. ``pooling_mean_pool`` puts Σᵢ / max(1, Σᵢ P(k|i)) in the maximum's place.
    """

    def __init__(self, config: MantaConfig) -> None:
        super().__init__()
        self.regularization = config.pooling_variance_regularization
        self.spread = config.pooling_spread
        self.mean_pool = config.pooling_mean_pool
        self.max_blocks = config.max_length_encoder_decoder
        shape = (1, 1, config.pooling_kernel_size, config.byte_embedding_dim)
        self.convolution = nn.Parameter(torch.zeros(shape))
        self.out_projection = nn.Linear(config.byte_embedding_dim, config.d_model)

    def forward(
        self, frontiers: Tensor, embeddings: Tensor, attention_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The blocks of each text, and which of them there are.

        Args:
            frontiers: (B, L) probabilities that a byte opens a block.
            embeddings: (B, L, E) of the bytes.
            attention_mask: (B, L), nonzero at bytes.

        Returns:
            Block embeddings (B, N, D) and ``block_mask`` (B, N), true at blocks that hold bytes;
            N is the largest number of blocks in the batch, ``max_length_encoder_decoder`` at most.
        """
        mean, variance = block_moments(
            frontiers, attention_mask, regularization=self.regularization
        )
        counts = block_counts(mean, variance, attention_mask)
        # Normalised over all blocks of a text before the surplus ones are cut off.
        weights = memberships(mean, variance, counts, attention_mask, spread=self.spread)
        weights = weights[..., : self.max_blocks].to(embeddings.dtype)
        block = torch.arange(weights.shape[-1], device=weights.device)
        pooled = self.pool(embeddings, weights, attention_mask)
        return self.out_projection(pooled), block < counts[:, None]

    def pool(self, embeddings: Tensor, weights: Tensor, attention_mask: Tensor) -> Tensor:
        """Block embeddings before the projection.

        Args:
            embeddings: (B, L, E).
            weights: (B, L, N) memberships, 0 at padding.
            attention_mask: (B, L), nonzero at bytes.

        Returns:
            (B, N, E).
        """
        absent = (attention_mask == 0)[..., None, None]
        # (B, L, K, E): each byte's neighbours, times the kernel; beyond the text there are zeros.
        features = self._windows(embeddings).mT * self.convolution
        if self.mean_pool:
            weights = weights / weights.sum(1, keepdim=True).clamp(min=1.0)
        pooled = []
        for some in weights.split(_AT_ONCE, dim=-1):
            convolved = self._windows(some) @ features  # (B, L, n, E)
            convolved = convolved.masked_fill(absent, 0.0 if self.mean_pool else float("-inf"))
            pooled.append(convolved.sum(1) if self.mean_pool else convolved.amax(1))
        return torch.cat(pooled, dim=1)

    def _windows(self, values: Tensor) -> Tensor:
        """(B, L, X) to (B, L, X, K): what the kernel sees around each byte."""
        kernel = self.convolution.shape[2]
        left = (kernel - 1) // 2
        padded = functional.pad(values, (0, 0, left, kernel - 1 - left))
        return padded.unfold(1, kernel, 1)
