"""Blocks that nobody here wrote, each as a module (B, L, D) -> (B, L, D), and what holds of it.

Every parameter is moved a little at random, as training would move it: norms with unit weights and
biases of zero would hide what only they break.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from isotest.testing.subject import Claims

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

WIDTH = 32
HEADS = 4


@dataclass(frozen=True)
class RealBlock:
    """A block, what is claimed of it, and the properties that do not apply, with why.

    Attributes:
        name: for messages.
        factory: makes the block, in eval mode.
        claims: the truth about the block, by its source code.
        not_applicable: property ─► why it cannot be demanded; all others hold.
    """

    name: str
    factory: Callable[[], nn.Module]
    claims: Claims
    not_applicable: dict[str, str] = field(default_factory=dict)


def as_trained(make: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    """The module in eval mode, each parameter moved by N(0, 0.1²); the same one every time."""
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        module = make()
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return module.eval()


def added_mask(x: Tensor, valid: Tensor | None, *, causal: bool = False) -> Tensor | None:
    """(B, 1, L, L) zero where a query may see a key, else the most negative number.

    As the models of transformers make it for their blocks; not minus infinity, so that a query
    that may see nothing sees everything alike.
    """
    if valid is None and not causal:
        return None
    batch, length = x.shape[:2]
    seen = torch.ones(batch, 1, length, length, dtype=torch.bool, device=x.device)
    if valid is not None:
        seen = seen & valid[:, None, None, :]
    if causal:
        seen = seen.tril()
    return torch.zeros(seen.shape, dtype=x.dtype, device=x.device).masked_fill(
        ~seen, torch.finfo(x.dtype).min
    )


class Bert(nn.Module):
    """transformers' BertLayer: post-norm, biases everywhere, scores divided by √d_k."""

    def __init__(self, attention: str) -> None:
        super().__init__()
        from transformers import BertConfig
        from transformers.models.bert.modeling_bert import BertLayer

        config = BertConfig(hidden_size=WIDTH, num_attention_heads=HEADS, intermediate_size=64)
        config._attn_implementation = attention
        self.block = BertLayer(config)

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        output: Tensor = self.block(x, added_mask(x, valid))
        return output


class GPT2(nn.Module):
    """transformers' GPT2Block: pre-norm; queries, keys and values are one Conv1D.

    The causal mask is made by the model, not by the block, so it is made here.
    """

    def __init__(self, attention: str) -> None:
        super().__init__()
        from transformers import GPT2Config
        from transformers.models.gpt2.modeling_gpt2 import GPT2Block

        config = GPT2Config(n_embd=WIDTH, n_head=HEADS)
        config._attn_implementation = attention
        self.block = GPT2Block(config, layer_idx=0)

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        output: Tensor = self.block(x, attention_mask=added_mask(x, valid, causal=True))
        return output


class Llama(nn.Module):
    """transformers' LlamaDecoderLayer: RMSNorm first, no biases, two heads share keys and values.

    Rotary embeddings turn queries and keys by their positions; here too the model makes the mask.
    """

    def __init__(self, attention: str) -> None:
        super().__init__()
        from transformers import LlamaConfig
        from transformers.models.llama.modeling_llama import (
            LlamaDecoderLayer,
            LlamaRotaryEmbedding,
        )

        config = LlamaConfig(
            hidden_size=WIDTH,
            num_attention_heads=HEADS,
            num_key_value_heads=HEADS // 2,
            intermediate_size=64,
        )
        config._attn_implementation = attention
        self.block = LlamaDecoderLayer(config, layer_idx=0)
        self.rotary = LlamaRotaryEmbedding(config)

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        positions = torch.arange(x.shape[1], device=x.device)[None]
        output: Tensor = self.block(
            x,
            attention_mask=added_mask(x, valid, causal=True),
            position_embeddings=self.rotary(x, positions),
        )
        return output


class T5(nn.Module):
    """transformers' T5Block of an encoder: RMSNorm first, relative bias, scores not divided.

    Heads are wider than width / heads, as in T5's largest models; the block returns a tuple.
    """

    def __init__(self, attention: str) -> None:
        super().__init__()
        from transformers import T5Config
        from transformers.models.t5.modeling_t5 import T5Block

        config = T5Config(d_model=WIDTH, num_heads=HEADS, d_kv=12, d_ff=64)
        config._attn_implementation = attention
        self.block = T5Block(config, has_relative_attention_bias=True, layer_idx=0)

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        output: Tensor = self.block(x, attention_mask=added_mask(x, valid))[0]
        return output


class Whisper(nn.Module):
    """transformers' WhisperEncoderLayer: pre-norm, no key bias, queries divided, not scores."""

    def __init__(self, attention: str) -> None:
        super().__init__()
        from transformers import WhisperConfig
        from transformers.models.whisper.modeling_whisper import WhisperEncoderLayer

        config = WhisperConfig(d_model=WIDTH, encoder_attention_heads=HEADS, encoder_ffn_dim=64)
        config._attn_implementation = attention
        self.block = WhisperEncoderLayer(config)

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        output: Tensor = self.block(x, added_mask(x, valid))
        return output


class ViT(nn.Module):
    """timm's Block of a vision transformer: pre-norm; queries, keys and values are one Linear."""

    def __init__(self, *, fused: bool) -> None:
        super().__init__()
        from timm.models.vision_transformer import Block

        self.block = Block(WIDTH, HEADS, qkv_bias=True)
        attention: Any = self.block.attn
        attention.fused_attn = fused

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        output: Tensor = self.block(x, attn_mask=added_mask(x, valid))
        return output


class ConvNeXt(nn.Module):
    """timm's ConvNeXtBlock on a picture one pixel high: no attention, neighbours are mixed.

    The layer scale starts at 1, not at 10⁻⁶, at which the block is the identity.
    """

    def __init__(self) -> None:
        super().__init__()
        from timm.models.convnext import ConvNeXtBlock

        self.block = ConvNeXtBlock(WIDTH, ls_init_value=1.0)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.block(x.mT[:, :, None, :])
        return output[:, :, 0].mT


class TorchEncoder(nn.Module):
    """torch's TransformerEncoderLayer.

    In eval mode and without gradients it is one fused operation (the fast path), unless something
    rules that out, such as queries, keys and values without bias.
    """

    def __init__(self, *, bias: bool, norm_first: bool = False, causal: bool = False) -> None:
        super().__init__()
        self.block = nn.TransformerEncoderLayer(
            WIDTH, HEADS, 64, batch_first=True, bias=bias, norm_first=norm_first
        )
        self.causal = causal

    def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
        length = x.shape[1]
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        output: Tensor = self.block(
            x,
            src_mask=future if self.causal else None,
            src_key_padding_mask=None if valid is None else ~valid,
        )
        return output


def claims(
    *,
    causal: bool = False,
    normalised: bool = False,
    skip: bool = True,
    positions: bool = False,
    masked: bool = False,
    scaled: bool = True,
) -> Claims:
    return Claims(causal, normalised, skip, positions, masked, scaled)


NOT_CAUSAL = {"causal": "every position sees every other"}
NO_MASK = {"masked_keys": "takes no mask"}
PRE_NORM = {
    "output_norm": "the output is a sum behind the last norm",
    "expectation": "a norm comes before the queries, so they are no affine map of the input",
}
CAUSAL_ORDER = {"permutation_equivariance": "who sees whom goes by position"}
NO_ATTENTION = dict.fromkeys(
    ("softmax_rows", "attention_scale", "convex_hull", "key_shift", "rotation_equivariance"),
    "there is no softmax",
)
ROTARY = dict.fromkeys(
    ("key_shift", "rotation_equivariance"),
    "keys are turned by position, so a bias turns too, and other rotations do not commute with it",
)
POSITIONS = dict.fromkeys(("permutation_equivariance", "constant_rows"), "positions are told apart")


def _variants(
    name: str, make: Callable[[str], nn.Module], said: dict[str, bool], exempt: dict[str, str]
) -> list[RealBlock]:
    """With eager attention and a mask, with torch's fused attention and without."""
    return [
        RealBlock(
            f"{name}, eager, masked",
            lambda: as_trained(lambda: make("eager")),
            claims(masked=True, **said),
            exempt,
        ),
        RealBlock(
            f"{name}, fused",
            lambda: as_trained(lambda: make("sdpa")),
            claims(**said),
            exempt | NO_MASK,
        ),
    ]


def _torch_encoders() -> list[RealBlock]:
    """The fast path, the slow path (without biases), pre-norm, and a causal one with a mask."""
    name = "TransformerEncoderLayer"
    return [
        RealBlock(
            f"{name}, fast path",
            lambda: as_trained(lambda: TorchEncoder(bias=True)),
            claims(normalised=True),
            NOT_CAUSAL | NO_MASK,
        ),
        RealBlock(
            f"{name}, slow path",
            lambda: as_trained(lambda: TorchEncoder(bias=False)),
            claims(normalised=True),
            NOT_CAUSAL | NO_MASK,
        ),
        RealBlock(
            f"{name}, fast path, masked",
            lambda: as_trained(lambda: TorchEncoder(bias=True)),
            claims(normalised=True, masked=True),
            NOT_CAUSAL,
        ),
        RealBlock(
            f"{name}, fast path, norm first, causal",
            lambda: as_trained(lambda: TorchEncoder(bias=True, norm_first=True, causal=True)),
            claims(causal=True),
            PRE_NORM | CAUSAL_ORDER | NO_MASK,
        ),
    ]


REAL_BLOCKS: tuple[RealBlock, ...] = (
    *_variants("BertLayer", Bert, {"normalised": True}, NOT_CAUSAL),
    *_variants("GPT2Block", GPT2, {"causal": True}, PRE_NORM | CAUSAL_ORDER),
    *_variants(
        "LlamaDecoderLayer",
        Llama,
        {"causal": True, "positions": True},
        PRE_NORM | POSITIONS | ROTARY,
    ),
    *_variants(
        "T5Block",
        T5,
        {"positions": True, "scaled": False},
        PRE_NORM | NOT_CAUSAL | POSITIONS | {"attention_scale": "scores are q·k"},
    ),
    *_variants("WhisperEncoderLayer", Whisper, {}, PRE_NORM | NOT_CAUSAL),
    *_variants(
        "ViT Block",
        lambda attention: ViT(fused=attention == "sdpa"),
        {},
        PRE_NORM | NOT_CAUSAL,
    ),
    RealBlock(
        "ConvNeXtBlock",
        lambda: as_trained(ConvNeXt),
        claims(positions=True),
        PRE_NORM | NOT_CAUSAL | NO_MASK | POSITIONS | NO_ATTENTION,
    ),
    *_torch_encoders(),
)
