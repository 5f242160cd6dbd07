"""One attention, written in the ways in which people write it, and its kin that is none.

All have the weights of a seed, width 8 and two heads of width 4; ``weights_of`` is what each of
them should be seen to compute, written out with einsum in float64.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import nn

if TYPE_CHECKING:
    from torch import Tensor

WIDTH, HEADS, HEAD = 8, 2, 4


class Form(nn.Module):
    """Softmax attention with a bias everywhere, between batched matrix products."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.query, self.key, self.value, self.output = (
                nn.Linear(WIDTH, WIDTH) for _ in range(4)
            )
            for linear in (self.query, self.key, self.value, self.output):
                nn.init.normal_(linear.bias, std=0.5)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (self.split(p(x)) for p in (self.query, self.key, self.value))
        output: Tensor = self.output(self.attend(q, k, v).transpose(1, 2).flatten(2))
        return output

    def split(self, x: Tensor) -> Tensor:
        heads: Tensor = x.unflatten(-1, (HEADS, HEAD)).transpose(1, 2)
        return heads

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """All (B, H, L, dk)."""
        return self.weigh(q @ k.mT / math.sqrt(HEAD)) @ v

    def weigh(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1)

    def weights_of(self, x: Tensor) -> Tensor:
        """(B, H, L, L) float64."""
        q, k = (
            torch.einsum("bld,ed->ble", x.double(), p.weight.double()) + p.bias.double()
            for p in (self.query, self.key)
        )
        q, k = self.split(q), self.split(k)
        scores: Tensor = torch.einsum("bhid,bhjd->bhij", q, k) / HEAD**0.5
        return scores.softmax(-1)


class ByHand(Form):
    """The softmax is exponentials over their sum."""

    def weigh(self, scores: Tensor) -> Tensor:
        powers = (scores - scores.amax(-1, keepdim=True)).exp()
        return powers / powers.sum(-1, keepdim=True)


class InPlace(Form):
    """Scores are divided, masked and normalised where they stand."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = q @ k.mT
        scores /= math.sqrt(HEAD)
        scores.masked_fill_(torch.zeros_like(scores, dtype=torch.bool), -torch.inf)
        torch.softmax(scores, -1, out=scores)
        return scores @ v


class Einsum(Form):
    """Products are einsums."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(HEAD)
        return torch.einsum("bhij,bhjd->bhid", scores.softmax(-1), v)


class KeysFirst(Form):
    """Scores stand with keys as rows, and values come first: vᵀ·softmax(k·qᵀ)."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = (k @ q.mT / math.sqrt(HEAD)).softmax(-2)
        return (v.mT @ weights).mT


class HeadByHead(Form):
    """A loop over sequences and heads."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        rows = []
        for sequence in range(q.shape[0]):
            heads = []
            for head in range(HEADS):
                scores = q[sequence, head] @ k[sequence, head].T / math.sqrt(HEAD)
                heads.append(scores.softmax(-1) @ v[sequence, head])
            rows.append(torch.stack(heads))
        return torch.stack(rows)


class Fused(Form):
    """torch's own function."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v)


class FusedMaths(Form):
    """torch's own function, which is told to compute it step by step."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        from torch.nn.attention import SDPBackend, sdpa_kernel

        with sdpa_kernel(SDPBackend.MATH):
            return F.scaled_dot_product_attention(q, k, v)


class InferenceMode(Form):
    """Operations reach torch as they were written."""

    def forward(self, x: Tensor) -> Tensor:
        with torch.inference_mode():
            return super().forward(x)


class QueriesScaled(Form):
    """Queries are divided, as Whisper's are."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores: Tensor = (q * HEAD**-0.5) @ k.mT
        return scores.softmax(-1) @ v


class OneProjection(Form):
    """Queries, keys and values come out of one product."""

    def forward(self, x: Tensor) -> Tensor:
        parts = (self.query, self.key, self.value)
        weight = torch.cat([part.weight for part in parts])
        bias = torch.cat([part.bias for part in parts])
        qkv = F.linear(x, weight, bias).unflatten(-1, (3, HEADS, HEAD)).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        output: Tensor = self.output(self.attend(q, k, v).transpose(1, 2).flatten(2))
        return output


class Masked(Form):
    """A bias that depends on nothing, as of relative positions, and dropout, which is off."""

    def weigh(self, scores: Tensor) -> Tensor:
        bias = torch.zeros(scores.shape[-2:])
        return F.dropout((scores + bias).softmax(-1), 0.5, self.training)


FORMS: tuple[type[Form], ...] = (
    Form,
    ByHand,
    InPlace,
    Einsum,
    KeysFirst,
    HeadByHead,
    Fused,
    FusedMaths,
    InferenceMode,
    QueriesScaled,
    OneProjection,
    Masked,
)


class LinearAttention(Form):
    """elu(q) + 1 and elu(k) + 1 instead of a softmax (Katharopoulos et al. 2020)."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k = F.elu(q) + 1, F.elu(k) + 1
        return (q @ (k.mT @ v)) / (q @ k.sum(-2, keepdim=True).mT)


class EfficientAttention(Form):
    """Softmax of queries over features and of keys over positions (Shen et al. 2021)."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return q.softmax(-1) @ (k.softmax(-2).mT @ v)


class SigmoidAttention(Form):
    """No softmax: every weight by itself (Ramapuram et al. 2024)."""

    def weigh(self, scores: Tensor) -> Tensor:
        return scores.sigmoid()


class Gate(Form):
    """A softmax that chooses among features, as experts are chosen."""

    def forward(self, x: Tensor) -> Tensor:
        gate = self.query(x).softmax(-1)
        output: Tensor = self.output(gate * self.value(x))
        return output


NO_ATTENTION: tuple[type[Form], ...] = (LinearAttention, EfficientAttention, SigmoidAttention, Gate)


class Sink(Form):
    """A score that belongs to no key takes part in the softmax, as in GPT-OSS."""

    def weigh(self, scores: Tensor) -> Tensor:
        sink = torch.full((*scores.shape[:-1], 1), 0.3)
        return torch.cat((scores, sink), -1).softmax(-1)[..., :-1]


class SharedKeys(Form):
    """Both heads read the first head's keys and values."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = (x[:, :1].expand_as(x) for x in (k, v))
        return super().attend(q, k, v)


class SharedKeysFused(Form):
    """As :class:`SharedKeys`, left to torch."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k[:, :1], v[:, :1], enable_gqa=True)


class Rotary(Form):
    """Queries and keys are turned by position (Su et al. 2021), as complex numbers."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return super().attend(self.turn(q), self.turn(k), v)

    def turn(self, x: Tensor) -> Tensor:
        angles = torch.arange(x.shape[-2])[:, None] * torch.tensor([1.0, 0.1])
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
        turned = pairs * torch.polar(torch.ones_like(angles), angles)
        return torch.view_as_real(turned).flatten(-2)


class RotaryHalves(Rotary):
    """As :class:`Rotary`, in the halves of Llama's implementation."""

    def turn(self, x: Tensor) -> Tensor:
        angles = torch.arange(x.shape[-2])[:, None] * torch.tensor([1.0, 0.1])
        angles = torch.cat((angles, angles), -1)
        first, second = x.chunk(2, -1)
        return x * angles.cos() + torch.cat((-second, first), -1) * angles.sin()
