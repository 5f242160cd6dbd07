"""A fault in one head of the attention of the middle block."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from isotest.faults.blocks import middle_block, rewritten_output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor, nn

    from isotest.data.dataset import Dataset
    from isotest.models.loaded import LoadedModel, ObservedLayer
    from isotest.profile import Profile

SHARPER = 64.0
"""What the full fault multiplies scores by."""

# In all of these, also those that make queries, keys and values at once, what comes first are the
# queries of the first head.
_PROJECTIONS = ("query", "q_proj", "q_lin", "q", "c_attn", "qkv", "query_key_value")
_HEAD_WIDTHS = ("head_dim", "attention_head_size", "key_value_proj_dim", "head_size")


@contextmanager
def saturated_head(
    loaded: LoadedModel, dataset: Dataset, strength: float
) -> Iterator[tuple[LoadedModel, Dataset]]:
    """One head attends to ever fewer keys: its queries become ``SHARPER ** strength`` as long.

    Its scores are multiplied by as much, without the additive biases that some models have; the
    entropy of its softmax falls (Zhai et al. 2023).
    """
    layer = middle_block(loaded)
    projection, width = _queries(loaded, layer)

    def rewrite(queries: Tensor) -> Tensor:
        altered = queries.clone()
        altered[..., :width] *= SHARPER**strength
        return altered

    with rewritten_output(projection, rewrite, call=layer.call, calls=layer.calls):
        yield loaded, dataset


def no_attention(loaded: LoadedModel, profile: Profile) -> str | None:
    """Why no head can be saturated, or why it would not matter; ``None`` where it can and would."""
    metrics = {name for layer in profile.layers for name in layer.estimates}
    if not any(name.startswith("attention_") for name in metrics):
        return (
            "attention is not measured, so the gate would miss it; a check on an attention_… "
            "metric measures it"
        )
    if _found(loaded, middle_block(loaded)) is None:
        return "the model has no projection to queries that could be altered"
    return None


def _queries(loaded: LoadedModel, layer: ObservedLayer) -> tuple[nn.Module, int]:
    found = _found(loaded, layer)
    if found is None:
        raise ValueError(f"layer {layer.name!r} has no projection to queries")
    return found


def _found(loaded: LoadedModel, layer: ObservedLayer) -> tuple[nn.Module, int] | None:
    """The first projection to queries in the layer's module, and the width of a head."""
    block = loaded.module.get_submodule(layer.path)
    for path, module in block.named_modules():
        parent, _, name = path.rpartition(".")
        if name not in _PROJECTIONS:
            continue
        attention: Any = block.get_submodule(parent)
        for attribute in _HEAD_WIDTHS:
            width = getattr(attention, attribute, None)
            if isinstance(width, int):
                return module, width
    return None
