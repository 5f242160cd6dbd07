"""A network whose attention maps are held fixed: a sum over paths, exact by length.

What is fixed, as it was in one forward pass: the attention maps, the scaling of every normalisation
at every position (1/σ of a LayerNorm, the inverse of the root mean square of an RMSNorm), and what
each MLP added. What is left is affine in the input,

    x ← leave(x + Σ_h A_h·enter(x)·V_h·O_h),

A_h the map of head h, V_h and O_h its value and output weights, ``enter`` the normalisation of a
pre-norm layer, ``leave`` what is added and normalised behind the attention.

**Constants** (biases, LayerNorm's β, what the MLPs added) do not come from the input, but go
through the same heads above the place where they are added. They are carried by the path that is
past every layer so far. In homogeneous coordinates (x, 1) a layer is the sum of

    past:    (x, s) ↦ (leave(x) + s·c, s)        head h: (x, s) ↦ (A_h·x·V_h·O_h + s·c_h, 0),

so s is 1 on a path until its first head and 0 from then on. Multiplied out, that is every constant
once for every way from it to the output: the sum over all paths is the network's output exactly.
An MLP, gated or not, is thus a fixed addend, and no element of a path.

**By length.** With A the sum of a layer's heads, Π (past_l + t·A_l) is a polynomial in t whose
coefficient of t^k is the sum of all paths of length k. L·(L + 1)/2 layers compute all of them;
nothing is sampled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn

from isotest.errors import BlockError

if TYPE_CHECKING:
    from typing import Self

    from torch import Tensor


@dataclass(frozen=True)
class FixedNorm:
    """A LayerNorm or an RMSNorm with its statistics held fixed, which makes it affine.

    Attributes:
        scale: (B, T, 1), 1/√(variance + ε) of what a LayerNorm was given, 1/√(mean square + ε) of
            what an RMSNorm was.
        weight: (D,) γ.
        bias: (D,) β; an RMSNorm has none.
        centring: whether it takes the mean over entries off, as a LayerNorm does.
    """

    scale: Tensor
    weight: Tensor | None
    bias: Tensor | None
    centring: bool

    @classmethod
    def of(cls, norm: nn.Module, x: Tensor, where: str) -> Self | None:
        """Fixed as it is for (B, T, D) ``x``; ``None`` of an identity.

        Raises:
            BlockError: it is another module than torch's LayerNorm or RMSNorm over the last
                dimension.
        """
        if isinstance(norm, nn.Identity):
            return None
        if not isinstance(norm, nn.LayerNorm | nn.RMSNorm) or norm.normalized_shape != x.shape[-1:]:
            raise BlockError(
                f"paths: expected {where} to be a LayerNorm or an RMSNorm of width {x.shape[-1]}, "
                f"found {norm}"
            )
        weight = None if norm.weight is None else norm.weight.detach()
        if isinstance(norm, nn.RMSNorm):
            eps = torch.finfo(x.dtype).eps if norm.eps is None else norm.eps
            scale = (x.square().mean(-1, keepdim=True) + eps).rsqrt()
            return cls(scale, weight, bias=None, centring=False)
        scale = (x.var(-1, keepdim=True, unbiased=False) + norm.eps).rsqrt()
        bias = None if norm.bias is None else norm.bias.detach()
        return cls(scale, weight, bias, centring=True)

    def __call__(self, x: Tensor, *, constant: bool) -> Tensor:
        """(…, B, T, D) normalised; β only with ``constant``."""
        y = self.of_entries(x) * self.scale
        return y + self.bias if constant and self.bias is not None else y

    def of_entries(self, x: Tensor) -> Tensor:
        """(…, D) as each row comes out but for the scale: without its mean, or with it; times γ."""
        y = x - x.mean(-1, keepdim=True) if self.centring else x
        return y if self.weight is None else y * self.weight


@dataclass(frozen=True)
class Step:
    """What happens to the stream behind the attention: something is added, then it is normalised.

    Attributes:
        addend: broadcastable to (B, T, D): a bias, what an MLP added.
        norm: the normalisation of a post-norm layer.
    """

    addend: Tensor | None
    norm: FixedNorm | None


@dataclass(frozen=True)
class FixedLayer:
    """An attention layer with a skip, its attention maps held fixed.

    Attributes:
        weights: (B, H, T, T) attention maps, row i of query i.
        enter: the normalisation in front of the attention, beside the skip.
        value: (H, D, d) value weights.
        value_bias: (H, d).
        output: (H, d, D) output weights.
        leave: behind the attention and its skip, in order.
    """

    weights: Tensor
    enter: FixedNorm | None
    value: Tensor
    value_bias: Tensor | None
    output: Tensor
    leave: tuple[Step, ...]

    def past(self, x: Tensor, *, constant: bool) -> Tensor:
        """(…, B, T, D) past the layer's heads; with its constants or without."""
        for step in self.leave:
            if constant and step.addend is not None:
                x = x + step.addend
            if step.norm is not None:
                x = step.norm(x, constant=constant)
        return x

    def entering(self, x: Tensor, *, constant: bool) -> Tensor:
        """(B, T, D), what the attention is given of what the layer is given."""
        return x if self.enter is None else self.enter(x, constant=constant)

    def leaving(self, factor: Tensor) -> Tensor:
        """(d, D) what :meth:`past` does to the entries of every row, without constants."""
        for step in self.leave:
            if step.norm is not None:
                factor = step.norm.of_entries(factor)
        return factor

    def heads(self, x: Tensor, *, constant: bool) -> Tensor:
        """(B, T, D) through all heads, with their own constants or without."""
        entering = self.entering(x, constant=constant)
        value = torch.einsum("btw,hwd->bhtd", entering, self.value)
        if constant and self.value_bias is not None:
            value = value + self.value_bias[:, None, :]
        attended = torch.einsum("bhtd,hdw->btw", self.weights @ value, self.output)
        return self.past(attended, constant=False)


@dataclass(frozen=True)
class FixedNetwork:
    """A network with fixed attention maps, at one batch of inputs.

    Attributes:
        start: (B, T, D), what enters the first layer.
        layers: in forward order, all with the same number of heads.
        final: the normalisation behind the last layer.
        valid: (B, T) bool, true where a position is no padding.
    """

    start: Tensor
    layers: tuple[FixedLayer, ...]
    final: FixedNorm | None
    valid: Tensor

    @property
    def depth(self) -> int:
        """L."""
        return len(self.layers)

    @property
    def heads(self) -> int:
        """H."""
        return self.layers[0].weights.shape[1]

    @torch.no_grad()
    def output(self) -> Tensor:
        """(B, T, D): layer after layer, which is the sum over all paths."""
        x = self.start
        for layer in self.layers:
            x = layer.past(x, constant=True) + layer.heads(x, constant=True)
        return self._finished(x, constant=True)

    @torch.no_grad()
    def by_length(self) -> Tensor:
        """(L + 1, B, T, D): the sum of all paths of length 0, 1, … L, exactly.

        Raises:
            BlockError: it overflows the network's dtype, naming the layer.
        """
        sums = [self.start]
        for number, layer in enumerate(self.layers, start=1):
            past = [layer.past(x, constant=k == 0) for k, x in enumerate(sums)]
            through = [layer.heads(x, constant=k == 0) for k, x in enumerate(sums)]
            sums = [past[0], *(a + b for a, b in zip(past[1:], through, strict=False)), through[-1]]
            if not all(bool(x.isfinite().all()) for x in sums):
                raise BlockError(
                    f"paths: a sum over paths through layers 1 to {number} of {self.depth} is no "
                    f"finite {_name(self.start.dtype)}; use float64 or smaller weights"
                )
        return torch.stack([self._finished(x, constant=k == 0) for k, x in enumerate(sums)])

    def _finished(self, x: Tensor, *, constant: bool) -> Tensor:
        return x if self.final is None else self.final(x, constant=constant)


def require_same(network: FixedNetwork, output: Tensor, where: str) -> None:
    """That a network computes what the model did from which it was taken.

    Args:
        network: with everything fixed.
        output: (B, T, D) of the model.
        where: what it is, for the message.

    Raises:
        BlockError: it does not, at a position that is no padding, or something is not finite.
    """
    dtype = output.dtype
    if dtype not in (torch.float32, torch.float64):
        raise BlockError(
            f"paths: {where} runs in {_name(dtype)}; paths are taken apart in float32 or float64"
        )
    expected, found = output[network.valid], network.output()[network.valid]
    if not expected.numel():
        raise BlockError(f"paths: {where} was given no position that is no padding")
    if not bool(expected.isfinite().all()):
        raise BlockError(f"paths: the output of {where} is not finite")
    # Rounding, of a sum of some hundred terms a layer; a part that was overlooked is far above it.
    # Some of transformers' attention functions compute the softmax of float64 scores in float32.
    allowed = (1e-3 if dtype == torch.float32 else 1e-6) * float(expected.abs().max())
    difference = float((expected - found).abs().max())
    if not difference <= allowed:
        raise BlockError(
            f"paths: the sum over all paths of {where} differs from its output by "
            f"{difference:.2g}, where at most {allowed:.2g} is rounding; it has a part that is not "
            "known here"
        )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
