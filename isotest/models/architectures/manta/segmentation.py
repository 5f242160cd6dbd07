"""Which block a byte belongs to, as a differentiable function of where frontiers are likely.

A byte i opens a new block with probability pᵢ, independently of the others. Its block index is
then the number of frontiers up to it: a sum of Bernoulli variables with mean μᵢ = Σ pⱼ and variance
σᵢ² = Σ pⱼ(1 − pⱼ), j ≤ i (Poisson binomial). Godey et al. (2022) put a Gaussian of these moments,
cut off at 3σ beyond the last mean and normalised over the integer blocks, in its place.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Spread = Literal["variance", "deviation"]


def block_moments(
    frontiers: Tensor, attention_mask: Tensor, *, regularization: float
) -> tuple[Tensor, Tensor]:
    """Mean and variance of each byte's block index.

    The first byte of a text opens block 0 whatever its probability, and padding is no frontier.

    Args:
        frontiers: (B, L) probabilities.
        attention_mask: (B, L), nonzero at bytes.
        regularization: added to every variance.

    Returns:
        Both (B, L), in float32 at least: sums over a long text need its digits.

    >>> mean, variance = block_moments(torch.tensor([[0.9, 0.5, 1.0]]), torch.ones(1, 3),
    ...                                regularization=0.0)
    >>> mean.tolist(), variance.tolist()
    ([[0.0, 0.5, 1.5]], [[0.0, 0.25, 0.25]])
    """
    byte = attention_mask != 0
    inner = byte & (byte.cumsum(-1) > 1)
    digits = torch.promote_types(frontiers.dtype, torch.float32)
    chance = frontiers.to(digits).masked_fill(~inner, 0.0)
    return chance.cumsum(-1), (chance * (1.0 - chance)).cumsum(-1) + regularization


def block_counts(mean: Tensor, variance: Tensor, attention_mask: Tensor) -> Tensor:
    """How many blocks each text has: min(bytes, ⌊max(μ + 3σ)⌋ + 1), of its own bytes only.

    Args:
        mean: (B, L), from :func:`block_moments`.
        variance: (B, L), likewise.
        attention_mask: (B, L), nonzero at bytes.

    Returns:
        (B,) integers, at least 1 where there is a byte.
    """
    # Padding adds nothing to either sum, so the largest value of the row is the text's own.
    last = (mean + 3.0 * variance.sqrt()).detach().amax(-1)
    return torch.minimum(last.floor().long() + 1, (attention_mask != 0).sum(-1))


def memberships(
    mean: Tensor, variance: Tensor, counts: Tensor, attention_mask: Tensor, *, spread: Spread
) -> Tensor:
    """P(block k | byte i) ∝ exp(−(k − μᵢ)² / 2s), s = σᵢ² or σᵢ, over the text's own blocks.

    Args:
        mean: (B, L).
        variance: (B, L).
        counts: (B,) blocks of each text.
        attention_mask: (B, L), nonzero at bytes.
        spread: what s is.

    Returns:
        (B, L, max counts); a byte's row sums to 1, a padding row is 0.
    """
    block = torch.arange(int(counts.max()), device=mean.device)
    scale = variance if spread == "variance" else variance.sqrt()
    score = -((block - mean[..., None]) ** 2) / (2.0 * scale[..., None])
    score = score.masked_fill((block >= counts[:, None])[:, None, :], float("-inf"))
    return score.softmax(-1) * (attention_mask != 0)[..., None]
