"""CANINE's attention: local over characters first, then whole (Clark et al. 2022)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isotest.models.attention.call import AttentionCall, AttentionObserver, NotObservable
from isotest.models.attention.modules import ModuleObserver

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from isotest.models.loaded import LoadedModel


def observer(loaded: LoadedModel) -> AttentionObserver | None:
    """The observer of a model with CANINE's layers."""
    return ModuleObserver("transformers.CanineAttention", _seen).of(loaded)


def _seen(module: Any, given: Mapping[str, Any]) -> AttentionCall | NotObservable:
    x, mask = given["hidden_states"], given["attention_mask"]
    heads = (module.self.num_attention_heads, module.self.attention_head_size)
    query = module.self.query(x).unflatten(-1, heads).transpose(1, 2)
    key = module.self.key(x).unflatten(-1, heads).transpose(1, 2)
    scale = module.self.attention_head_size**-0.5
    if module.local:
        return _chunks(module, query, key, scale, mask)
    # Transformers' additive mask: 0 where a key is seen, the least number of the dtype elsewhere.
    allowed = None if mask is None else mask == 0
    return AttentionCall(query, key, scale, bias=None, allowed=allowed, cross=False)


def _chunks(
    module: Any, query: Tensor, key: Tensor, scale: float, mask: Tensor
) -> AttentionCall | NotObservable:
    """Attention within chunks of a few characters, which follow each other without overlap.

    Args:
        module: the layer's attention.
        query: (B, H, L, dk).
        key: (B, H, L, dk).
        scale: of the scores.
        mask: (B, L, L), 1 where a key is no padding, whatever the query.
    """
    from torch.nn.functional import pad

    sizes = {
        module.attend_from_chunk_width,
        module.attend_from_chunk_stride,
        module.attend_to_chunk_width,
        module.attend_to_chunk_stride,
    }
    anchored = module.always_attend_to_first_position or module.first_position_attends_to_all
    if len(sizes) > 1 or anchored:
        return NotObservable(
            "CANINE's local attention is only known with chunks that neither overlap nor share a "
            "first position, as CanineModel makes them"
        )
    width = min(sizes.pop(), query.shape[2])
    # The last chunk may be shorter: what fills it is no query and no key.
    missing = -query.shape[2] % width

    def cut(x: Tensor) -> Tensor:
        """(B, H, L, dk) to (B·chunks, H, width, dk)."""
        chunks: Tensor = pad(x, (0, 0, 0, missing)).unflatten(2, (-1, width))
        return chunks.transpose(1, 2).flatten(0, 1)

    valid = pad(mask[:, 0] == 1, (0, missing)).unflatten(1, (-1, width)).flatten(0, 1)
    return AttentionCall(
        cut(query),
        cut(key),
        scale,
        bias=None,
        allowed=valid[:, None, None, :],
        cross=False,
        queries=valid,
    )
