"""Attention that breaks one property each, in ways that people have broken it.

Each differs from :class:`tests.testing.attention_forms.Form` in a line or two.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from tests.testing.attention_forms import HEAD, WIDTH, Form

if TYPE_CHECKING:
    from torch import Tensor


class WrongAxis(Form):
    """Weights sum to one over queries."""

    def weigh(self, scores: Tensor) -> Tensor:
        return scores.softmax(-2)


class NotDivided(Form):
    """Exponentials of the scores, and nobody divides by their sum."""

    def weigh(self, scores: Tensor) -> Tensor:
        return scores.exp()


class SelfLeftOut(Form):
    """A query's own key is taken away after the softmax."""

    def weigh(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1) * (1 - torch.eye(scores.shape[-1]))


class SumsToOneWithNegatives(Form):
    """Twice the weights minus the mean: rows sum to one, but some weights are below zero."""

    def weigh(self, scores: Tensor) -> Tensor:
        return 2 * scores.softmax(-1) - 1 / scores.shape[-1]


class HalfWeights(Form):
    """Rounded to bfloat16, so they sum to one only to three digits, in a float32 block."""

    def weigh(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1).bfloat16().float()


class ScaleForgotten(Form):
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return (q @ k.mT).softmax(-1) @ v


class ScaleOfTheWholeWidth(Form):
    """Divided by √D, not by √d_k."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return (q @ k.mT / math.sqrt(WIDTH)).softmax(-1) @ v


class ScaledTwice(Form):
    """Queries are scaled, and then torch scales as well."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q / math.sqrt(HEAD), k, v)


class FusedScaleOfOne(Form):
    """As T5, whose weights are trained for it."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, scale=1.0)


class ValuesAddedTwice(Form):
    """The weights have the identity added: a skip that leaves the values' hull."""

    def weigh(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1) + torch.eye(scores.shape[-1])


class ScoresClamped(Form):
    """Against overflow, but also between ordinary scores."""

    def weigh(self, scores: Tensor) -> Tensor:
        return scores.clamp(-1, 1).softmax(-1)


class SoftmaxOffByOne(Form):
    """One is added to the sum of the exponentials."""

    def weigh(self, scores: Tensor) -> Tensor:
        powers = scores.exp()
        return powers / (1 + powers.sum(-1, keepdim=True))


class ReadsACoordinate(Form):
    """A coordinate of the key is added to its scores."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = (q @ k.mT) / math.sqrt(HEAD)
        return (scores + k[..., None, :, 0]).softmax(-1) @ v


class QueriesSquashed(Form):
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return super().attend(q.tanh(), k, v)


class KeysClipped(Form):
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return super().attend(q, k.clamp(-1, 1), v)


class KeysInBfloat16(Form):
    """Keys pass a cache of eight bits' precision."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return super().attend(q, k.bfloat16().float(), v)


class Masking(Form):
    """Takes a mask, and hides keys as it should."""

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        self.valid = torch.ones(x.shape[:2], dtype=torch.bool) if valid is None else valid
        return super().forward(x)

    def weigh(self, scores: Tensor) -> Tensor:
        return scores.masked_fill(~self.valid[:, None, None, :], -torch.inf).softmax(-1)


class MaskIgnored(Masking):
    def weigh(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1)


class MaskTooWeak(Masking):
    """Ten is taken off the scores: a weight of 5·10⁻⁵ remains."""

    def weigh(self, scores: Tensor) -> Tensor:
        return (scores - 10.0 * ~self.valid[:, None, None, :]).softmax(-1)


class MaskAfterwards(Masking):
    """Weights of hidden keys are zero, but they were there when rows were made to sum to one."""

    def weigh(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1) * self.valid[:, None, None, :]


class QueriesMasked(Masking):
    """The mask is along the wrong axis."""

    def weigh(self, scores: Tensor) -> Tensor:
        return scores.masked_fill(~self.valid[:, None, :, None], -1e9).softmax(-1)


class GradientLeaks(Masking):
    """No influence on the output, by subtraction, but on its gradient."""

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        mean = x.mean(1, keepdim=True)
        return super().forward(x, valid) + (mean - mean.detach())


class NormalisedFirst(Form):
    """Pre-norm: queries and keys are no affine map of the input."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(F.layer_norm(x, (WIDTH,)))


class CosineAttention(Form):
    """Queries and keys of length one (Henry et al. 2020)."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        return (10 * q @ k.mT).softmax(-1) @ v


class KeysAreQueries(Form):
    """One projection for both (Kitaev et al. 2020, Reformer)."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return super().attend(q, q, v)


class KeysAreValues(Form):
    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return super().attend(q, k, k)


class SoftCapped(Form):
    """Scores within ±2 (Gemma 2)."""

    def weigh(self, scores: Tensor) -> Tensor:
        return (2 * (scores / 2).tanh()).softmax(-1)


class Biased(Form):
    """A bias for each pair of positions, and causal."""

    def weigh(self, scores: Tensor) -> Tensor:
        length = scores.shape[-1]
        generator = torch.Generator().manual_seed(0)
        scores = scores + torch.randn(length, length, generator=generator)
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        return scores.masked_fill(future, -torch.inf).softmax(-1)
