"""One small attention block, and blocks that differ from it in one line: mistakes people make."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import nn

if TYPE_CHECKING:
    from torch import Tensor

WIDTH = 16
HEADS = 4


class Healthy(nn.Module):
    """Multi-head self-attention and an MLP, post-norm, with a mask; each step is a method."""

    causal = False

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.query = nn.Linear(WIDTH, WIDTH)
            self.key = nn.Linear(WIDTH, WIDTH)
            self.value = nn.Linear(WIDTH, WIDTH)
            self.output = nn.Linear(WIDTH, WIDTH)
            self.mlp = nn.Sequential(
                nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)
            )
            self.attention_norm = nn.LayerNorm(WIDTH)
            self.mlp_norm = nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        x = self.attention_norm(self.add(x, self.attention(x, valid)))
        output: Tensor = self.mlp_norm(self.add(x, self.mlp(x)))
        return output

    def add(self, x: Tensor, change: Tensor) -> Tensor:
        return x + change

    def attention(self, x: Tensor, valid: Tensor | None) -> Tensor:
        query, key, value = (
            self.split(projection(x)) for projection in (self.query, self.key, self.value)
        )
        heads = self.weights(self.scores(query, key), self.allowed(x, valid)) @ value
        output: Tensor = self.output(heads.transpose(1, 2).flatten(2))
        return output

    def split(self, x: Tensor) -> Tensor:
        """(B, L, D) ─► (B, H, L, d_k)."""
        batch, length, width = x.shape
        return x.view(batch, length, HEADS, width // HEADS).transpose(1, 2)

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        return query @ key.mT / sqrt(query.shape[-1])

    def allowed(self, x: Tensor, valid: Tensor | None) -> Tensor:
        """What is added to scores, (B, 1, L, L) or (1, 1, L, L): zero, or a very small number."""
        length = x.shape[1]
        seen = torch.ones(1, 1, length, length, dtype=torch.bool, device=x.device)
        if self.causal:
            seen = self.past(seen)
        if valid is not None:
            seen = seen & valid[:, None, None, :]
        return torch.zeros_like(seen, dtype=x.dtype).masked_fill(~seen, torch.finfo(x.dtype).min)

    def past(self, seen: Tensor) -> Tensor:
        return seen.tril()

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return torch.softmax(scores + mask, dim=-1)


class HealthyCausal(Healthy):
    causal = True


class CausalLeak(HealthyCausal):
    """Each position sees the next one, too."""

    def past(self, seen: Tensor) -> Tensor:
        return seen.tril(1)


class WrongSoftmaxAxis(Healthy):
    """Weights sum to one over the queries."""

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return torch.softmax(scores + mask, dim=-2)


class MaskAfterSoftmax(Healthy):
    """What is masked has no weight, but it was there when weights were made to sum to one."""

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return torch.softmax(scores, dim=-1) * (mask == 0)


class MaskAddedAfterSoftmax(Healthy):
    """The most negative number is added to the weights."""

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return torch.softmax(scores, dim=-1) + mask


class BatchNorm(Healthy):
    """Normalised over the batch, by statistics of the batch even in eval mode."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.batch_norm = nn.BatchNorm1d(WIDTH, track_running_stats=False)

    def add(self, x: Tensor, change: Tensor) -> Tensor:
        output: Tensor = self.batch_norm((x + change).mT).mT
        return output


class ForgottenScale(Healthy):
    """Scores are q·k."""

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        return query @ key.mT


class DropoutLeftOn(Healthy):
    """`F.dropout` drops in eval mode too, unless it is told `training=self.training`."""

    def weights(self, scores: Tensor, mask: Tensor) -> Tensor:
        return F.dropout(torch.softmax(scores + mask, dim=-1), 0.1)


class HeadsNotTransposed(Healthy):
    """Parts of neighbouring positions are taken for the heads of one."""

    def split(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        return x.view(batch, HEADS, length, width // HEADS)


class ChangedInput(Healthy):
    """The skip connection is added in place."""

    def add(self, x: Tensor, change: Tensor) -> Tensor:
        x += change
        return x
