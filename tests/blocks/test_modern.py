"""The modern block against a layer of transformers' Llama, its rotary positions the identity.

transformers normalises and takes the softmax in float32 whatever the layer is, so that float64
agrees to 1e-6 of the largest output, some ten times float32's rounding; to 1e-12 the block is
compared with its equations in test_block.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

from isotest.blocks import BlockConfig, TransformerBlock
from tests.blocks.naive import randomise

CONFIG = replace(BlockConfig.modern(), width=24, heads=3, hidden=40, causal=True)
PARTS = {
    "attention_norm": "input_layernorm",
    "attention.query": "self_attn.q_proj",
    "attention.key": "self_attn.k_proj",
    "attention.value": "self_attn.v_proj",
    "attention.output": "self_attn.o_proj",
    "mlp_norm": "post_attention_layernorm",
    "mlp.gate": "mlp.gate_proj",
    "mlp.hidden": "mlp.up_proj",
    "mlp.output": "mlp.down_proj",
}


def llama() -> tuple[Any, LlamaConfig]:
    config = LlamaConfig(
        hidden_size=24,
        num_attention_heads=3,
        num_key_value_heads=3,
        intermediate_size=40,
        rms_norm_eps=1e-6,
        hidden_act="silu",
        attention_bias=False,
        mlp_bias=False,
    )
    config._attn_implementation = "eager"
    layer = LlamaDecoderLayer(config, 0).double().eval()
    randomise(layer, 5)
    return layer, config


def copied(layer: Any, config: BlockConfig) -> TransformerBlock:
    block = TransformerBlock(config).double().eval()
    state = {
        f"{own}.weight": layer.get_parameter(f"{other}.weight") for own, other in PARTS.items()
    }
    block.load_state_dict(state, strict=True)
    return block


def inputs(length: int = 7) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(3, length, 24, generator=generator, dtype=torch.float64)


def output_of(layer: Any, config: LlamaConfig, x: Tensor) -> Tensor:
    """Causal, every position at the place 0: cosines 1, sines 0."""
    length = x.shape[1]
    cos, sin = LlamaRotaryEmbedding(config)(x, torch.zeros(1, length, dtype=torch.long))
    assert torch.equal(cos, torch.ones_like(cos))
    assert torch.equal(sin, torch.zeros_like(sin))
    future = torch.ones(length, length, dtype=torch.bool).triu(1)
    mask = torch.zeros(length, length, dtype=x.dtype).masked_fill(future, torch.finfo(x.dtype).min)
    output: Tensor = layer(x, attention_mask=mask[None, None], position_embeddings=(cos, sin))
    return output


@torch.no_grad()
@pytest.mark.parametrize("length", [1, 2, 7])
def test_it_is_a_layer_of_llama(length: int) -> None:
    layer, config = llama()
    assert {name.removesuffix(".weight") for name in layer.state_dict()} == set(PARTS.values())
    x = inputs(length)
    expected = output_of(layer, config, x)
    allowed = 1e-6 * float(expected.abs().max())
    torch.testing.assert_close(copied(layer, CONFIG)(x), expected, rtol=0, atol=allowed)


@torch.no_grad()
@pytest.mark.parametrize(
    "changes",
    [{"causal": False}, {"activation": "gelu"}, {"layer_norm": "post"}, {"layer_norm_eps": 1e-2}],
    ids=str,
)
def test_another_block_is_not(changes: dict[str, Any]) -> None:
    """So the test above can fail."""
    layer, config = llama()
    other = copied(layer, replace(CONFIG, **changes))
    assert (other(inputs()) - output_of(layer, config, inputs())).abs().max() > 1e-4


@torch.no_grad()
def test_the_gate_and_the_hidden_map_are_not_each_other() -> None:
    layer, config = llama()
    block = copied(layer, CONFIG)
    assert block.mlp is not None
    block.mlp.gate, block.mlp.hidden = block.mlp.hidden, block.mlp.gate
    assert (block(inputs()) - output_of(layer, config, inputs())).abs().max() > 1e-2
