"""A synthetic stack as a sum over paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from isotest.blocks.paths.network import (
    FixedLayer,
    FixedNetwork,
    FixedNorm,
    Step,
    require_same,
)
from isotest.errors import BlockError

if TYPE_CHECKING:
    from torch import Tensor

    from isotest.blocks.block import TransformerBlock
    from isotest.blocks.stack import TransformerStack


@torch.no_grad()
def fixed_stack(stack: TransformerStack, x: Tensor, valid: Tensor | None = None) -> FixedNetwork:
    """A stack with its attention maps held fixed as they are for an input.

    Without MLP and normalisation nothing else is fixed: the stack is then linear but for its maps.

    Args:
        stack: of blocks with an attention and its skip; an MLP needs its skip, too.
        x: (B, T, D), in the stack's dtype, float32 or float64.
        valid: (B, T) bool, true where a position is no padding.

    Returns:
        The network, which was compared with the stack's output.

    Raises:
        BlockError: the blocks have no attention or lack a skip, or something is not finite.

    >>> from isotest.blocks import BlockConfig, TransformerStack
    >>> stack = TransformerStack(BlockConfig(width=8, heads=2, hidden=16, depth=3, mlp=False))
    >>> x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
    >>> network = fixed_stack(stack, x)
    >>> torch.allclose(network.by_length().sum(0), stack(x), atol=1e-5)
    True
    """
    config = stack.config
    if not config.attention:
        raise BlockError("paths: the stack has attention = false; paths go through its heads")
    for part, wanted in (("attention_skip", True), ("mlp_skip", config.mlp)):
        if wanted and not getattr(config, part):
            raise BlockError(
                f"paths: the stack has {part} = false; only a network with skips is a sum over "
                "paths of every length"
            )
    layers = []
    y = x
    for module in stack.blocks:
        block: Any = module
        layer, y = _fixed(block, y, valid)
        layers.append(layer)
    positions = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
    network = FixedNetwork(x, tuple(layers), None, positions if valid is None else valid)
    require_same(network, stack(x, valid), "the stack")
    return network


def _fixed(block: TransformerBlock, x: Tensor, valid: Tensor | None) -> tuple[FixedLayer, Tensor]:
    """A block with everything fixed as it is for ``x``, and what it makes of it."""
    attention, place = block.attention, block.config.layer_norm
    assert attention is not None
    trace = block.trace(x, valid)
    enter = FixedNorm.of(block.attention_norm, x, "attention_norm") if place == "pre" else None
    bias = attention.output.bias
    y = x + trace.contributions.sum(1)
    if bias is not None:
        y = y + bias
    after = FixedNorm.of(block.attention_norm, y, "attention_norm") if place == "post" else None
    steps = [Step(None if bias is None else bias.detach(), after)]
    if after is not None:
        y = block.attention_norm(y)
    if block.mlp is not None:
        added = block.mlp(block.mlp_norm(y) if place == "pre" else y)
        y = y + added
        after = FixedNorm.of(block.mlp_norm, y, "mlp_norm") if place == "post" else None
        steps.append(Step(added, after))
        if after is not None:
            y = block.mlp_norm(y)
    heads, size = attention.head_count, attention.head_width
    value, value_bias = attention.value.weight.detach(), attention.value.bias
    layer = FixedLayer(
        weights=trace.weights,
        enter=enter,
        value=value.unflatten(0, (heads, size)).transpose(1, 2),
        value_bias=None if value_bias is None else value_bias.detach().unflatten(0, (heads, size)),
        output=trace.projection.detach(),
        leave=tuple(steps),
    )
    return layer, y
