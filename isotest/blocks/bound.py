"""How fast pure attention collapses at least: the bound of Dong, Cordonnier and Loukas 2021.

In the composite norm ‖X‖ = √(‖X‖₁ ‖X‖_∞), L layers of pure attention with H heads of width d_qk
leave of the residual ‖res(X)‖ no more than

    c^((3^L − 1)/2) · ‖res(X)‖^(3^L),    c = 4γβH/√d_qk,

where β is at least the size of every head's weights, ‖W_QK‖ ‖W_V W_O‖ (theorem 2.2). The published
lemma needs two corrections: within a row the scores that differ between queries span at most 1.256
(beyond, e^x > 1 + 2x), and γ ≥ 1, which says how much larger the sum over queries of such spans is
than the published proof took it for. Both are measured here on the sequence itself, as is β on the
weights. The bound says something only where c·‖res(X)‖² < 1; elsewhere it is vacuous. The first l
of L layers are l layers, so that it is held against the residual behind each of them.

The residual is followed layer by layer, as what is added to a common vector: X = 1yᵀ + R. With r
the softmax that the common vector gives, and P that of the scores,

    R ← Σ_h (P_h − 1r_hᵀ) R W_h,    P_ij − r_j = r_j (e_ij − ē_i) / (1 + ē_i),

e_ij = exp(E_ij) − 1, E = R W_QK Rᵀ / √d_qk and ē_i = Σ_j r_j e_ij: nothing cancels, so that the
residual is known to its last digits far below the float floor of the representations, down to
1e-308.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch

from isotest.errors import BlockError, NonFiniteError
from isotest.statistics.residual import centred, composite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from isotest.blocks.attention import SelfAttention
    from isotest.blocks.block import TransformerBlock
    from isotest.blocks.config import Normalisation
    from isotest.blocks.stack import TransformerStack

SCORE_RANGE = 1.256
"""The largest D with e^D ≤ 1 + 2D, as published."""

_NORM_NAMES: Mapping[Normalisation, str] = {"layernorm": "LayerNorm", "rmsnorm": "RMSNorm"}

Outcome = Literal["holds", "violated", "vacuous", "precondition failed"]


@dataclass(frozen=True)
class CollapseBound:
    """What the bound says of a stack and a sequence, and what happened.

    Attributes:
        outcome: "holds" or "violated" where the preconditions hold and the bound says something.
        reason: why, in words.
        beta: β, over all layers and heads.
        gamma: γ, over all layers and heads.
        heads: H.
        head_width: d_qk.
        score_range: the widest span of a row of E, over all layers, heads and queries.
        contraction: c·‖res(X)‖² of the input; the bound contracts below 1.
        residuals: ‖R‖ of the input and behind each layer; empty where the stack is more than pure
            attention.
        log10_bounds: the bound behind each layer, as a logarithm: it leaves the range of floats
            soon. Minus infinity where it is zero.
    """

    outcome: Outcome
    reason: str
    beta: float
    gamma: float
    heads: int
    head_width: int
    score_range: float
    contraction: float
    residuals: tuple[float, ...]
    log10_bounds: tuple[float, ...]


def collapse_bound(stack: TransformerStack, x: Tensor) -> CollapseBound:
    """Hold the bound against what a stack makes of a sequence.

    Args:
        stack: blocks of pure attention; biases do not matter, since they move all positions alike.
        x: (L, D) a sequence, in any floating dtype; everything is computed in float64.

    Raises:
        BlockError: ``x`` has another shape.
        NonFiniteError: the input, or a layer's residual, is not finite.

    >>> from isotest.blocks import BlockConfig, TransformerStack
    >>> stack = TransformerStack(BlockConfig.san())
    >>> collapse_bound(stack, torch.ones(3, 768)).reason
    'all representations are the same already'
    """
    config = stack.config
    if x.dim() != 2 or x.shape[1] != config.width or not len(x):
        raise BlockError(
            f"collapse_bound: expected a sequence of shape (length, {config.width}), found "
            f"{tuple(x.shape)}"
        )
    other = [
        text
        for text, there in {
            "a skip": config.attention and config.attention_skip,
            "an MLP": config.mlp,
            _NORM_NAMES[config.normalisation]: config.layer_norm != "none",
            "a causal mask": config.causal,
            "no attention": not config.attention,
        }.items()
        if there
    ]
    nan = math.nan
    if other:
        reason = f"it is about pure attention, and the stack has {', '.join(other)}"
        shape = (config.heads, config.head_width)
        return CollapseBound("precondition failed", reason, nan, nan, *shape, nan, nan, (), ())
    steps, residuals = _followed(stack, x)
    beta = max(step.beta for step in steps)
    gamma = max(step.gamma for step in steps)
    widest = max(step.score_range for step in steps)
    c = 4 * gamma * beta * config.heads / math.sqrt(config.head_width)
    contraction = c * residuals[0] ** 2
    bounds = tuple(_log10_bound(c, residuals[0], layer) for layer in range(1, len(residuals)))
    outcome, reason = _outcome(residuals, widest, contraction, bounds)
    return CollapseBound(
        outcome,
        reason,
        beta,
        gamma,
        config.heads,
        config.head_width,
        widest,
        contraction,
        residuals,
        bounds,
    )


_DEEPEST = 600
"""3^600 is about the largest power of 3 that is a float."""


def _log10_bound(c: float, residual: float, layers: int) -> float:
    """log₁₀ of c^((3^l − 1)/2) · ‖res(X)‖^(3^l) behind l layers.

    Deeper than floats reach the bound is that of the last layer within reach, which is no smaller
    where it contracts.
    """
    if not c or not residual:
        return -math.inf
    contraction = math.log10(c) + 2 * math.log10(residual)
    return (3.0 ** min(layers, _DEEPEST) - 1) / 2 * contraction + math.log10(residual)


def _outcome(
    residuals: tuple[float, ...], widest: float, contraction: float, bounds: tuple[float, ...]
) -> tuple[Outcome, str]:
    if residuals[0] == 0:
        return "holds", "all representations are the same already"
    if widest > SCORE_RANGE:
        return "precondition failed", f"scores span {widest:.4g}, and may span {SCORE_RANGE}"
    if contraction >= 1:
        return "vacuous", f"c·‖res(X)‖² = {contraction:.4g}: it contracts only below 1"
    logs = [math.log10(each) if each > 0 else -math.inf for each in residuals[1:]]
    # What is below the smallest float has become zero, or lost digits, and refutes nothing.
    smallest = math.log10(torch.finfo(torch.float64).smallest_normal)
    for layer, (log10, bound) in enumerate(zip(logs, bounds, strict=True), start=1):
        if log10 > max(bound, smallest) + 1e-9:
            where = f"behind layer {layer}, "
            return (
                "violated",
                f"{where}log₁₀ of the residual: {log10:.4g}, of the bound: {bound:.4g}",
            )
    return "holds", f"log₁₀ of the residual: {logs[-1]:.4g}, of the bound: {bounds[-1]:.4g}"


@dataclass(frozen=True)
class _Step:
    beta: float
    gamma: float
    score_range: float


def _followed(stack: TransformerStack, x: Tensor) -> tuple[list[_Step], tuple[float, ...]]:
    """The sizes of each layer, and the residuals."""
    with torch.no_grad():
        x = x.detach().to("cpu", torch.float64)
        residual = centred(x[None], torch.ones(1, len(x), dtype=torch.bool))[0]
        common = x.mean(dim=0)
        residuals = [_finite(residual, "of the input")]
        steps: list[_Step] = []
        for number, block in enumerate(stack.blocks, start=1):
            step, common, residual = _layer(block, common, residual)  # type: ignore[arg-type]
            steps.append(step)
            residuals.append(_finite(residual, f"behind layer {number}"))
    return steps, tuple(residuals)


def _finite(residual: Tensor, where: str) -> float:
    size = _composite(residual)
    if not math.isfinite(size):
        raise NonFiniteError(f"collapse_bound: the residual {where} is not finite")
    return size


def _layer(
    block: TransformerBlock, common: Tensor, residual: Tensor
) -> tuple[_Step, Tensor, Tensor]:
    """One layer of pure attention on 1yᵀ + R."""
    attention = block.attention
    assert attention is not None  # or the stack is no pure attention
    root = math.sqrt(attention.head_width)
    after = torch.zeros_like(residual)
    ones: list[float] = []
    infinities: list[float] = []
    beta, gamma, widest = 0.0, 1.0, 0.0
    for qk, vo, query in _heads(attention, common):
        prior = (residual @ query / root).softmax(dim=0)
        scores = residual @ qk @ residual.T / root
        excess = torch.expm1(scores)
        mean = excess @ prior
        difference = prior * (excess - mean[:, None]) / (1 + mean)[:, None]
        after += difference @ residual @ vo
        spans = scores.amax(dim=1) - scores.amin(dim=1)
        widest = max(widest, float(spans.max()))
        columns = float(scores.abs().sum(dim=0).max())
        if columns > 0:
            gamma = max(gamma, math.sqrt(float(spans.sum()) / (2 * columns)))
        ones.append(_one(qk) * _one(vo))
        infinities.append(_one(qk.T) * _one(vo.T))
        beta = max(beta, _one(qk) * _composite(vo))
    # With norms that differ between heads, their sum is bounded by the largest of either kind.
    beta = max(beta, math.sqrt(max(ones) * max(infinities)))
    mapped = attention.output(attention.value(common.to(attention.value.weight.dtype)))
    return _Step(beta, gamma, widest), mapped.to(torch.float64), after


def _heads(attention: SelfAttention, common: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Of each head W_QK and W_V W_O, (D, D), and what the common query makes of keys, (D,)."""

    def weight(name: str) -> Tensor:
        matrix: Tensor = getattr(attention, name).weight
        return matrix.detach().to("cpu", torch.float64)

    bias = attention.query.bias
    asked = weight("query") @ common
    if bias is not None:
        asked = asked + bias.detach().to("cpu", torch.float64)
    found = []
    for head in range(attention.head_count):
        own = slice(head * attention.head_width, (head + 1) * attention.head_width)
        query, key, value = (weight(name)[own] for name in ("query", "key", "value"))
        output = weight("output")[:, own]
        found.append((query.T @ key, value.T @ output.T, key.T @ asked[own]))
    return found


def _one(matrix: Tensor) -> float:
    """‖·‖₁: the largest column sum of absolute values."""
    return float(matrix.abs().sum(dim=0).max())


def _composite(matrix: Tensor) -> float:
    return float(composite(matrix[None]))
