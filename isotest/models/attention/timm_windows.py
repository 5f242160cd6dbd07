"""Attention within windows of an image, in timm's Swin, Swin v2 and Hiera."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from isotest.models.attention.call import AttentionCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from isotest.models.attention.timm import Running


def shifted_windows(running: Sequence[Running], call: AttentionCall) -> AttentionCall:
    """Swin (Liu et al. 2021): what a shift brings into one window without being neighbours.

    timm adds −100 to the scores between those, together with the bias of relative positions.
    """
    allowed = _neighbours(running, len(call.query))
    bias = call.bias
    if bias is not None and allowed is not None:
        bias = bias.masked_fill(~allowed, 0.0)
    return replace(call, bias=bias, allowed=allowed, queries=_inside(running, len(call.query)))


def cosine_windows(running: Sequence[Running]) -> AttentionCall:
    """Swin v2 (Liu et al. 2022): scores are cosines, times a learned factor of each head.

    So queries and keys are those unit vectors, and the factor, at most 100, goes with the queries.
    """
    module, x = running[-1].module, running[-1].args[0]
    bias = None
    if module.q_bias is not None:
        bias = torch.cat((module.q_bias, module.k_bias, module.v_bias))
    projected = functional.linear(x, module.qkv.weight, bias)
    query, key, _ = projected.unflatten(2, (3, module.num_heads, -1)).permute(2, 0, 3, 1, 4)
    factor = module.logit_scale.clamp(max=torch.tensor(100.0).log()).exp()
    table = module.cpb_mlp(module.relative_coords_table).flatten(0, -2)
    position = 16 * table[module.relative_position_index].permute(2, 0, 1).sigmoid()
    return AttentionCall(
        functional.normalize(query, dim=-1) * factor,
        functional.normalize(key, dim=-1),
        scale=1.0,
        bias=position[None],
        allowed=_neighbours(running, len(x)),
        cross=False,
        queries=_inside(running, len(x)),
    )


def mask_units(_running: Sequence[Running], call: AttentionCall) -> AttentionCall:
    """Hiera (Ryali et al. 2023): windows stand behind the heads, (B, H, windows, L, dk)."""
    if call.query.dim() == 4:
        return call
    query, key = (x.transpose(1, 2).flatten(0, 1) for x in (call.query, call.key))
    return replace(call, query=query, key=key)


def _neighbours(running: Sequence[Running], rows: int) -> Tensor | None:
    """(rows, 1, area, area), or ``None`` where nothing is shifted."""
    args, kwargs = running[-1].args, running[-1].kwargs
    mask: Tensor | None = kwargs.get("mask", args[1] if len(args) > 1 else None)
    if mask is None:
        return None
    allowed: Tensor = (mask == 0).repeat(rows // len(mask), 1, 1)
    return allowed[:, None]


def _inside(running: Sequence[Running], rows: int) -> Tensor | None:
    """(rows, area), false for what fills windows up at the edge; ``None``: nothing does."""
    module, block = running[-1].module, running[-2]
    image = block.args[0]
    height, width = image.shape[1:3]
    tall, wide = module.window_size
    missing = (0, -width % wide, 0, -height % tall)
    if not any(missing):
        return None
    # It is filled up after the shift, so its place does not depend on that.
    filled = functional.pad(torch.ones(height, width, device=image.device), missing) > 0
    windows = filled.unflatten(0, (-1, tall)).unflatten(2, (-1, wide)).transpose(1, 2)
    inside: Tensor = windows.reshape(-1, tall * wide)
    return inside.repeat(rows // len(inside), 1)
