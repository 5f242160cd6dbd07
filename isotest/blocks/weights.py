"""Real layers, copied into the synthetic block, which then computes what they do in eval mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import torch
from torch import nn

from isotest.blocks.block import TransformerBlock, activated
from isotest.blocks.config import Activation, BlockConfig
from isotest.errors import BlockError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

_Map = tuple["Tensor", "Tensor | None"]
"""Weight and bias."""


def from_bert_layer(layer: nn.Module) -> TransformerBlock:
    """A layer of a BERT in transformers, as a synthetic block.

    Args:
        layer: a ``BertLayer``, such as ``BertModel.encoder.layer[0]``; it is not changed.

    Returns:
        The block, in eval mode, with copies of the weights in their dtype and on their device.
        Where a query may see no key at all the two differ: BERT, whose masks are large negative
        numbers, then attends to all keys alike, the block to none.

    Raises:
        BlockError: it is no ``BertLayer``, or has parts that the block lacks.
    """
    from transformers.models.bert.modeling_bert import BertLayer

    if not isinstance(layer, BertLayer):
        raise BlockError(f"from_bert_layer: expected a BertLayer, found {type(layer).__name__}")
    part: Any = layer
    if part.add_cross_attention:
        raise BlockError("from_bert_layer: the layer has cross-attention, which the block lacks")
    attention = part.attention.self
    config = BlockConfig(
        width=attention.query.in_features,
        heads=attention.num_attention_heads,
        hidden=part.intermediate.dense.out_features,
        causal=attention.is_causal,
        activation=_activation(part.intermediate.intermediate_act_fn, "from_bert_layer"),
        layer_norm_eps=_eps(
            part.attention.output.LayerNorm, part.output.LayerNorm, "from_bert_layer"
        ),
    )
    return _block(
        config,
        {
            "attention.query": _of(attention.query),
            "attention.key": _of(attention.key),
            "attention.value": _of(attention.value),
            "attention.output": _of(part.attention.output.dense),
            "attention_norm": _of(part.attention.output.LayerNorm),
            "mlp.hidden": _of(part.intermediate.dense),
            "mlp.output": _of(part.output.dense),
            "mlp_norm": _of(part.output.LayerNorm),
        },
    )


def from_vit_block(block: nn.Module) -> TransformerBlock:
    """A block of a vision transformer in timm, as a synthetic block.

    Args:
        block: a ``timm.models.vision_transformer.Block``, such as ``model.blocks[0]``; it is not
            changed.

    Returns:
        As :func:`from_bert_layer`. A missing bias becomes zeros.

    Raises:
        BlockError: it is no such block, or has parts that the synthetic block lacks: LayerScale,
            norms of queries and keys, gates, another MLP.
    """
    import timm

    timm_vit: Any = timm.models.vision_transformer
    if not isinstance(block, timm_vit.Block):
        raise BlockError(f"from_vit_block: expected timm's Block, found {type(block).__name__}")
    part: Any = block
    for path, expected in {"attn": timm_vit.Attention, "mlp": timm_vit.Mlp}.items():
        found = getattr(part, path)
        if not isinstance(found, expected):
            raise BlockError(
                f"from_vit_block: expected its {path} to be {expected.__name__}, found "
                f"{type(found).__name__}, which the synthetic block lacks"
            )
    for path in ("ls1", "ls2", "attn.q_norm", "attn.k_norm", "attn.norm", "attn.gate", "mlp.norm"):
        owner, _, name = path.rpartition(".")
        # Releases of timm differ in which of them there are.
        found = getattr(part.get_submodule(owner), name, None)
        if not (found is None or isinstance(found, nn.Identity)):
            raise BlockError(
                f"from_vit_block: its {path} is {type(found).__name__}, which the synthetic block "
                "lacks"
            )
    qkv = part.attn.qkv
    biases = (None, None, None) if qkv.bias is None else qkv.bias.chunk(3)
    query, key, value = zip(qkv.weight.chunk(3), biases, strict=True)
    config = BlockConfig(
        width=qkv.in_features,
        heads=part.attn.num_heads,
        hidden=part.mlp.fc1.out_features,
        layer_norm="pre",
        activation=_activation(part.mlp.act, "from_vit_block"),
        layer_norm_eps=_eps(part.norm1, part.norm2, "from_vit_block"),
    )
    return _block(
        config,
        {
            "attention_norm": _of(part.norm1),
            "attention.query": query,
            "attention.key": key,
            "attention.value": value,
            "attention.output": _of(part.attn.proj),
            "mlp_norm": _of(part.norm2),
            "mlp.hidden": _of(part.mlp.fc1),
            "mlp.output": _of(part.mlp.fc2),
        },
    )


def _of(module: Any) -> _Map:
    return module.weight, module.bias


def _eps(first: Any, second: Any, where: str) -> float:
    """The ε that both norms have."""
    for norm in (first, second):
        if not isinstance(norm, nn.LayerNorm) or norm.weight is None or norm.eps != first.eps:
            raise BlockError(
                f"{where}: expected two LayerNorms with weights and the same eps, found {first} "
                f"and {second}"
            )
    eps: float = first.eps
    return eps


def _activation(function: Any, where: str) -> Activation:
    """Which activation a function is, by what it computes: libraries have several names for each.

    The exact GELU and its approximation are up to 5e-4 apart, all others further.
    """
    x = torch.linspace(-5, 5, 101, dtype=torch.float64)
    with torch.no_grad():
        y = function(x)
    for name in get_args(Activation):
        if torch.allclose(activated(x, name), y, rtol=0, atol=1e-6):
            known: Activation = name
            return known
    raise BlockError(
        f"{where}: its activation, {type(function).__name__}, is none of "
        f"{', '.join(get_args(Activation))}"
    )


def _block(config: BlockConfig, maps: Mapping[str, _Map]) -> TransformerBlock:
    weight = maps["attention.query"][0]
    block = TransformerBlock(config).to(device=weight.device, dtype=weight.dtype).eval()
    state: dict[str, Tensor] = {}
    for name, (matrix, bias) in maps.items():
        state[f"{name}.weight"] = matrix
        outputs = matrix.shape[0]
        state[f"{name}.bias"] = matrix.new_zeros(outputs) if bias is None else bias
    block.load_state_dict(state)
    return block
