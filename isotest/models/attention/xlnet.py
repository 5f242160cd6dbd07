"""XLNet's relative attention (Dai et al. 2019, section 3.3; Yang et al. 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isotest.models.attention.call import AttentionCall, AttentionObserver, NotObservable
from isotest.models.attention.modules import ModuleObserver

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isotest.models.loaded import LoadedModel


def observer(loaded: LoadedModel) -> AttentionObserver | None:
    """The observer of a model with XLNet's layers."""
    return ModuleObserver("transformers.XLNetRelativeAttention", _seen).of(loaded)


def _seen(module: Any, given: Mapping[str, Any]) -> AttentionCall | NotObservable:
    """One layer's attention.

    With q and k the projections of the content, r that of the relative positions, and learned
    vectors u, v, w and s_same or s_other, the score of key j for query i is
    ``scale · ((q_i + u)·k_j + (q_i + v)·r_{i−j} + (q_i + w)·s)``. The first term is that of query
    and key, where u is to the query what BERT's bias of the projection is; the others are the bias.
    """
    import torch

    if given["g"] is not None:
        return NotObservable(
            "XLNet with a target mapping has two streams of attention; leave target_mapping out"
        )
    h, mems = given["h"], given["mems"]
    past = h if mems is None or mems.dim() < 2 else torch.cat([mems, h])
    content = torch.einsum("lbw,whd->lbhd", h, module.q)
    key = torch.einsum("lbw,whd->bhld", past, module.k)
    places = given["r"].type(module.r.dtype)
    if places.stride(1) == 0:
        # Expanded: the same for the whole batch.
        places = places[:, :1]
    position = torch.einsum("lbw,whd->lbhd", places, module.r)
    bias = module.rel_shift_bnij(
        torch.einsum("ibhd,jbhd->bhij", content + module.r_r_bias, position), klen=len(past)
    )
    if given["seg_mat"] is not None:
        segment = torch.einsum("ibhd,shd->ibhs", content + module.r_s_bias, module.seg_embed)
        bias = bias + torch.einsum("ijbs,ibhs->bhij", given["seg_mat"], segment)
    masked = given["attn_mask_h"]
    return AttentionCall(
        query=(content + module.r_w_bias).permute(1, 2, 0, 3),
        key=key,
        scale=module.scale,
        bias=bias * module.scale,
        allowed=None if masked is None else (masked == 0).permute(2, 3, 0, 1),
        cross=False,
    )
