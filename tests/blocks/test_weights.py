"""The block against layers that others wrote: transformers' BertLayer, timm's ViT block."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import timm
import torch
from torch import nn
from transformers import BertConfig
from transformers.models.bert.modeling_bert import BertLayer

from isotest.blocks import TransformerBlock
from isotest.blocks.weights import from_bert_layer, from_vit_block
from isotest.errors import BlockError

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

SMALL = {"hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 40}
Block: Any = timm.models.vision_transformer.Block
layers: Any = timm.layers


def randomised(module: nn.Module, seed: int = 0) -> Any:
    """With random weights of a trained model's size, biases and norms among them, in eval mode."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            drawn = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() > 1:
                parameter.copy_(drawn * 0.7 / parameter.shape[1] ** 0.5)
            else:
                is_scale = "norm" in name.lower() and name.endswith("weight")
                parameter.copy_(0.1 * drawn + is_scale)
    return module.eval()


def bert_layer(implementation: str = "sdpa", **changes: Any) -> Any:
    config = BertConfig(**{**SMALL, **changes})
    config._attn_implementation = implementation
    return randomised(BertLayer(config))


def vit_block(width: int = 24, heads: int = 3, **changes: Any) -> Any:
    arguments = {"qkv_bias": True, "norm_layer": _norm, **changes}
    return randomised(Block(width, heads, **arguments))


def _norm(width: int, **_: Any) -> nn.LayerNorm:
    return nn.LayerNorm(width, eps=1e-6)


def inputs(width: int, dtype: torch.dtype = torch.float32) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(3, 16, width, generator=generator).to(dtype)


def padding() -> Tensor:
    """Sequences of full length, of 5 and of 1; the last one is padded on the left."""
    valid = torch.ones(3, 16, dtype=torch.bool)
    valid[1, 5:] = False
    valid[2, :-1] = False
    return valid


def added(valid: Tensor, dtype: torch.dtype) -> Tensor:
    """A mask the way transformers hands it on: added to the scores."""
    lowest = torch.finfo(dtype).min
    return torch.zeros(valid.shape, dtype=dtype).masked_fill(~valid, lowest)[:, None, None, :]


def assert_same(found: Tensor, expected: Tensor) -> None:
    """In float32 up to 1e-6 of the largest entry, in float64 up to 1e-13 of it."""
    tolerance = 1e-6 if expected.dtype is torch.float32 else 1e-13
    scale = expected.abs().max().item()
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance * max(1.0, scale))


BASE = {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("size", [SMALL, BASE], ids=["small", "base"])
def test_it_is_berts_layer(size: dict[str, int], implementation: str, dtype: torch.dtype) -> None:
    layer = bert_layer(implementation, **size).to(dtype)
    block = from_bert_layer(layer)
    x, valid = inputs(size["hidden_size"], dtype), padding()
    with torch.inference_mode():
        assert_same(block(x), layer(x, None))
        assert_same(block(x, valid), layer(x, added(valid, dtype)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("width", "heads"), [(24, 3), (768, 12)])
def test_it_is_timms_vit_block(width: int, heads: int, dtype: torch.dtype) -> None:
    other = vit_block(width, heads).to(dtype)
    block = from_vit_block(other)
    x, valid = inputs(width, dtype), padding()
    with torch.inference_mode():
        assert_same(block(x), other(x))
        assert_same(block(x, valid), other(x, attn_mask=valid[:, None, None, :]))


def test_a_causal_block_is_a_decoders_layer_of_bert() -> None:
    layer = bert_layer(is_decoder=True)
    block = from_bert_layer(layer)
    assert block.config.causal
    x = inputs(24)
    with torch.inference_mode():
        assert_same(block(x), layer(x, None))
        # Without causality it would be another.
        assert (layer(x, None) - from_bert_layer(_copy(layer))(x)).abs().max() > 1e-3


def _copy(layer: Any) -> Any:
    other = bert_layer()
    other.load_state_dict(layer.state_dict())
    return other


def test_a_causal_block_is_timms_with_a_causal_mask() -> None:
    other = vit_block()
    full = from_vit_block(other)
    block = TransformerBlock(replace(full.config, causal=True))
    block.load_state_dict(full.state_dict())
    x = inputs(24)
    with torch.inference_mode():
        assert_same(block(x), other(x, is_causal=True))


@pytest.mark.parametrize(
    ("name", "activation"),
    [
        ("gelu", "gelu"),
        ("gelu_python", "gelu"),
        ("gelu_new", "gelu_tanh"),
        ("gelu_pytorch_tanh", "gelu_tanh"),
        ("relu", "relu"),
        ("silu", "silu"),
        ("swish", "silu"),
    ],
)
def test_activations_are_recognised_by_what_they_compute(name: str, activation: str) -> None:
    layer = bert_layer(hidden_act=name)
    block = from_bert_layer(layer)
    assert block.config.activation == activation
    x = inputs(24)
    with torch.inference_mode():
        assert_same(block(x), layer(x, None))


def test_of_a_sequence_without_keys_bert_makes_a_mean_and_the_block_nothing() -> None:
    """The one difference, as the documentation says."""
    layer, x, valid = bert_layer(), inputs(24), torch.zeros(3, 16, dtype=torch.bool)
    own = layer.attention.self
    block = from_bert_layer(layer)
    with torch.inference_mode():
        mean = own.value(x).mean(1, keepdim=True).expand(3, 16, 24)
        assert_same(own(x, added(valid, x.dtype))[0], mean)
        assert torch.equal(block.trace(x, valid).heads, torch.zeros(3, 3, 16, 8))


def test_a_missing_bias_is_zero() -> None:
    other = vit_block(qkv_bias=False)
    x = inputs(24)
    with torch.inference_mode():
        assert_same(from_vit_block(other)(x), other(x))


def test_weights_are_copies() -> None:
    layer = bert_layer()
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    block = from_bert_layer(layer)
    assert not block.training
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.zero_()
    assert all(torch.equal(before[name], value) for name, value in layer.state_dict().items())


def _different_eps() -> nn.Module:
    layer = bert_layer()
    layer.output.LayerNorm.eps = 1e-3
    return layer  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("copy", "make", "message"),
    [
        (from_bert_layer, lambda: nn.Linear(2, 2), "expected a BertLayer, found Linear"),
        (from_bert_layer, vit_block, "expected a BertLayer, found Block"),
        (
            from_bert_layer,
            lambda: bert_layer(is_decoder=True, add_cross_attention=True),
            "has cross-attention, which the block lacks",
        ),
        (
            from_bert_layer,
            lambda: bert_layer(hidden_act="quick_gelu"),
            "its activation, QuickGELUActivation, is none of gelu, gelu_tanh, relu, silu",
        ),
        (from_bert_layer, _different_eps, "two LayerNorms with weights and the same eps"),
        (from_vit_block, bert_layer, "expected timm's Block, found BertLayer"),
        (from_vit_block, lambda: vit_block(init_values=0.1), "its ls1 is LayerScale"),
        (from_vit_block, lambda: vit_block(qk_norm=True), "its attn.q_norm is LayerNorm"),
        (
            from_vit_block,
            lambda: vit_block(mlp_layer=layers.SwiGLU),
            "expected its mlp to be Mlp, found SwiGLU",
        ),
        (
            from_vit_block,
            lambda: vit_block(norm_layer=layers.RmsNorm),
            "two LayerNorms with weights and the same eps, found RmsNorm",
        ),
    ],
)
def test_what_the_block_cannot_be_is_refused(
    copy: Callable[[nn.Module], TransformerBlock], make: Callable[[], nn.Module], message: str
) -> None:
    with pytest.raises(BlockError) as caught:
        copy(make())
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
