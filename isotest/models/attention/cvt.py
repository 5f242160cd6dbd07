"""CvT's attention, whose queries and keys come out of convolutions (Wu et al. 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isotest.models.attention.call import AttentionCall, AttentionObserver
from isotest.models.attention.modules import ModuleObserver

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isotest.models.loaded import LoadedModel


def observer(loaded: LoadedModel) -> AttentionObserver | None:
    """The observer of a model with CvT's layers."""
    return ModuleObserver("transformers.CvtSelfAttention", _seen).of(loaded)


def _seen(module: Any, given: Mapping[str, Any]) -> AttentionCall:
    """One layer's attention: fewer keys than queries, for the keys' convolution has a stride.

    The scale is that of the layer's whole width, not of a head's, as in the authors' code.
    """
    import torch

    height, width = given["height"], given["width"]
    # The class token, which the last stage has, passes the convolutions by.
    prefix = 1 if module.with_cls_token else 0
    token, patches = given["hidden_state"].split([prefix, height * width], 1)
    image = patches.transpose(1, 2).unflatten(2, (height, width))
    query = torch.cat((token, module.convolution_projection_query(image)), 1)
    key = torch.cat((token, module.convolution_projection_key(image)), 1)
    return AttentionCall(
        query=module.rearrange_for_multi_head_attention(module.projection_query(query)),
        key=module.rearrange_for_multi_head_attention(module.projection_key(key)),
        scale=module.scale,
        bias=None,
        allowed=None,
        cross=False,
    )
