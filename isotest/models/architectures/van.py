"""VAN, the visual attention network of Guo et al. (2022), https://arxiv.org/abs/2202.09741.

Four stages; each halves the resolution (the first divides it by four) with an overlapping patch
embedding, runs L blocks and ends in a layer norm over the channels. A block is

    x ← x + λ₁ ⊙ attention(BN(x))
    x ← x + λ₂ ⊙ mlp(BN(x))

with learnt λ per channel. Names of modules, spelling included, are those of transformers' former
``VanModel``, so that the checkpoints published under ``Visual-Attention-Network/van-*`` load.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torchvision.ops import StochasticDepth
from transformers import PreTrainedConfig, PreTrainedModel
from transformers import initialization as init
from transformers.activations import ACT2FN
from transformers.modeling_outputs import (
    BaseModelOutputWithPoolingAndNoAttention,
    ImageClassifierOutputWithNoAttention,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


class VanConfig(PreTrainedConfig):
    """The architecture of a VAN; the default is VAN-Base (VAN-B2 in the paper's later versions).

    Args:
        image_size: edge of the images it is trained on; the network takes any.
        num_channels: of an image.
        patch_sizes: kernel of each stage's patch embedding.
        strides: stride of each stage's patch embedding.
        hidden_sizes: channels of each stage.
        depths: blocks of each stage.
        mlp_ratios: hidden channels of the MLP as multiples of a stage's channels.
        hidden_act: activation after the first projections of attention and MLP.
        initializer_range: standard deviation of the classifier's weights.
        layer_norm_eps: of the norm at the end of a stage.
        layer_scale_init_value: what every λ is at first.
        drop_path_rate: stochastic depth of the last block; rises linearly from 0.
        dropout_rate: in the MLP.

    Raises:
        ValueError: the lists are not of one length.
    """

    model_type = "van"

    def __init__(
        self,
        image_size: int = 224,
        num_channels: int = 3,
        patch_sizes: Sequence[int] = (7, 3, 3, 3),
        strides: Sequence[int] = (4, 2, 2, 2),
        hidden_sizes: Sequence[int] = (64, 128, 320, 512),
        depths: Sequence[int] = (3, 3, 12, 3),
        mlp_ratios: Sequence[int] = (8, 8, 4, 4),
        hidden_act: str = "gelu",
        initializer_range: float = 0.02,
        layer_norm_eps: float = 1e-6,
        layer_scale_init_value: float = 1e-2,
        drop_path_rate: float = 0.0,
        dropout_rate: float = 0.0,
        **kwargs: Any,
    ) -> None:
        self.image_size = image_size
        self.num_channels = num_channels
        self.patch_sizes = list(patch_sizes)
        self.strides = list(strides)
        self.hidden_sizes = list(hidden_sizes)
        self.depths = list(depths)
        self.mlp_ratios = list(mlp_ratios)
        self.hidden_act = hidden_act
        self.initializer_range = initializer_range
        self.layer_norm_eps = layer_norm_eps
        self.layer_scale_init_value = layer_scale_init_value
        self.drop_path_rate = drop_path_rate
        self.dropout_rate = dropout_rate
        lists = ("patch_sizes", "strides", "hidden_sizes", "depths", "mlp_ratios")
        lengths = {name: len(getattr(self, name)) for name in lists}
        if len(set(lengths.values())) != 1:
            raise ValueError(f"expected one entry a stage in each list, found {lengths}")
        super().__init__(**kwargs)


class LargeKernelAttention(nn.Module):
    """The attention map of Guo et al., equation 2: a 21×21 convolution taken apart.

    Depthwise 5×5, depthwise 7×7 with dilation 3, and 1×1: ``Conv₁ₓ₁(DW-D-Conv(DW-Conv(x)))``.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.depth_wise = nn.Conv2d(channels, channels, 5, padding=2, groups=channels)
        self.depth_wise_dilated = nn.Conv2d(
            channels, channels, 7, padding=9, dilation=3, groups=channels
        )
        self.point_wise = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, channels, height, width) to the same."""
        attention: Tensor = self.point_wise(self.depth_wise_dilated(self.depth_wise(x)))
        return attention


class AttentionGate(nn.Module):
    """Guo et al., equation 3: the attention map times its input, elementwise."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.attention = LargeKernelAttention(channels)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, channels, height, width) to the same."""
        gated: Tensor = self.attention(x) * x
        return gated


class SpatialAttention(nn.Module):
    """1×1 projection, activation, gate, 1×1 projection, and the input added."""

    def __init__(self, config: VanConfig, channels: int) -> None:
        super().__init__()
        self.pre_projection = nn.Sequential()
        self.pre_projection.add_module("conv", nn.Conv2d(channels, channels, 1))
        self.pre_projection.add_module("act", ACT2FN[config.hidden_act])
        self.attention_layer = AttentionGate(channels)
        self.post_projection = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, channels, height, width) to the same."""
        attended: Tensor = self.post_projection(self.attention_layer(self.pre_projection(x)))
        return x + attended


class ConvolutionalMlp(nn.Module):
    """1×1, depthwise 3×3, activation, 1×1 (the feed-forward network of PVTv2)."""

    def __init__(self, config: VanConfig, channels: int, ratio: int) -> None:
        super().__init__()
        width = channels * ratio
        self.in_dense = nn.Conv2d(channels, width, 1)
        self.depth_wise = nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.activation = ACT2FN[config.hidden_act]
        self.dropout = nn.Dropout(config.dropout_rate)
        self.out_dense = nn.Conv2d(width, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, channels, height, width) to the same."""
        hidden = self.dropout(self.activation(self.depth_wise(self.in_dense(x))))
        mixed: Tensor = self.dropout(self.out_dense(hidden))
        return mixed


class LayerScale(nn.Module):
    """λ ⊙ x with one learnt λ a channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, channels, height, width) to the same."""
        return self.weight[:, None, None] * x


class VanBlock(nn.Module):
    """Attention and MLP, each behind a batch norm, scaled, and added to what came in."""

    def __init__(self, config: VanConfig, channels: int, ratio: int, drop_path: float) -> None:
        super().__init__()
        self.pre_normomalization = nn.BatchNorm2d(channels)  # sic
        self.attention = SpatialAttention(config, channels)
        self.attention_scaling = LayerScale(channels)
        self.post_normalization = nn.BatchNorm2d(channels)
        self.mlp = ConvolutionalMlp(config, channels, ratio)
        self.mlp_scaling = LayerScale(channels)
        self.drop_path = StochasticDepth(drop_path, mode="row")

    def forward(self, x: Tensor) -> Tensor:
        """(batch, channels, height, width) to the same."""
        attended = self.attention_scaling(self.attention(self.pre_normomalization(x)))
        x = x + self.drop_path(attended)
        mixed = self.mlp_scaling(self.mlp(self.post_normalization(x)))
        output: Tensor = x + self.drop_path(mixed)
        return output


class PatchEmbedding(nn.Module):
    """A strided convolution whose kernel is wider than its stride, and a batch norm."""

    def __init__(self, channels: int, width: int, patch_size: int, stride: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(
            channels, width, patch_size, stride=stride, padding=patch_size // 2
        )
        self.normalization = nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, channels, height, width) to (batch, width, ⌈height/stride⌉, ⌈width/stride⌉)."""
        embedded: Tensor = self.normalization(self.convolution(x))
        return embedded


class VanStage(nn.Module):
    """Patch embedding, blocks, and a layer norm over the channels of each position."""

    def __init__(self, config: VanConfig, stage: int, drop_paths: Sequence[float]) -> None:
        super().__init__()
        channels = (config.num_channels, *config.hidden_sizes)
        width = config.hidden_sizes[stage]
        self.embeddings = PatchEmbedding(
            channels[stage], width, config.patch_sizes[stage], config.strides[stage]
        )
        self.layers = nn.Sequential(
            *(VanBlock(config, width, config.mlp_ratios[stage], drop) for drop in drop_paths)
        )
        self.normalization = nn.LayerNorm(width, eps=config.layer_norm_eps)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, channels, height, width) to the stage's map."""
        x = self.layers(self.embeddings(x))
        normalised: Tensor = self.normalization(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return normalised


class VanEncoder(nn.Module):
    """The stages; stochastic depth rises linearly over all blocks."""

    def __init__(self, config: VanConfig) -> None:
        super().__init__()
        blocks = sum(config.depths)
        rates = [config.drop_path_rate * k / max(blocks - 1, 1) for k in range(blocks)]
        starts = [sum(config.depths[:stage]) for stage in range(len(config.depths))]
        self.stages = nn.ModuleList(
            VanStage(config, stage, rates[start : start + depth])
            for stage, (start, depth) in enumerate(zip(starts, config.depths, strict=True))
        )

    def forward(self, x: Tensor) -> list[Tensor]:
        """(batch, channels, height, width) to one map a stage."""
        maps: list[Tensor] = []
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        return maps


class VanPreTrainedModel(PreTrainedModel):
    """What a VAN has in common with its classifier: names and initial weights."""

    config_class = VanConfig
    base_model_prefix = "van"
    main_input_name = "pixel_values"
    input_modalities = "image"

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """As the authors' code: convolutions by their fan-out, N(0, 2 / fan-out)."""
        if isinstance(module, nn.Conv2d):
            fan_out = math.prod(module.kernel_size) * module.out_channels // module.groups
            init.normal_(module.weight, std=math.sqrt(2.0 / fan_out))
            if module.bias is not None:
                init.zeros_(module.bias)
        elif isinstance(module, nn.Linear):
            init.trunc_normal_(module.weight, std=self.config.initializer_range)
            init.zeros_(module.bias)
        elif isinstance(module, LayerScale):
            init.constant_(module.weight, self.config.layer_scale_init_value)
        else:
            super()._init_weights(module)  # type: ignore[no-untyped-call]


class VanModel(VanPreTrainedModel):
    """The stages, and the mean over the positions of the last one's map.

    ``hidden_states`` holds one (batch, channels, height, width) map a stage; there is no entry for
    the embedding of the image, which is the first part of the first stage.
    """

    def __init__(self, config: VanConfig) -> None:
        super().__init__(config)
        self.encoder = VanEncoder(config)
        # Published checkpoints hold this norm, and nothing ever read it: the last stage has its
        # own. It is here so that what they hold and what is built are the same.
        self.layernorm = nn.LayerNorm(config.hidden_sizes[-1], eps=config.layer_norm_eps)
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(
        self,
        pixel_values: Tensor,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> BaseModelOutputWithPoolingAndNoAttention | tuple[Any, ...]:
        """One forward pass.

        Args:
            pixel_values: (batch, channels, height, width).
            output_hidden_states: whether to return each stage's map.
            return_dict: whether to return named outputs; the configuration's choice by default.
        """
        maps = self.encoder(pixel_values)
        wanted = _choice(output_hidden_states, self.config.output_hidden_states)
        output = BaseModelOutputWithPoolingAndNoAttention(
            last_hidden_state=maps[-1],
            pooler_output=maps[-1].mean(dim=(-2, -1)),
            hidden_states=tuple(maps) if wanted else None,
        )
        return output if _choice(return_dict, self.config.return_dict) else output.to_tuple()


class VanForImageClassification(VanPreTrainedModel):
    """A VAN with a linear classifier on the pooled map."""

    def __init__(self, config: VanConfig) -> None:
        super().__init__(config)
        self.van = VanModel(config)
        self.classifier = nn.Linear(config.hidden_sizes[-1], config.num_labels or 0)
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(
        self,
        pixel_values: Tensor,
        labels: Tensor | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> ImageClassifierOutputWithNoAttention | tuple[Any, ...]:
        """One forward pass.

        Args:
            pixel_values: (batch, channels, height, width).
            labels: (batch,), for a loss.
            output_hidden_states: whether to return each stage's map.
            return_dict: whether to return named outputs; the configuration's choice by default.
        """
        features = self.van(pixel_values, output_hidden_states, return_dict=True)
        logits = self.classifier(features.pooler_output)
        output = ImageClassifierOutputWithNoAttention(
            loss=None
            if labels is None
            else self.loss_function(labels=labels, pooled_logits=logits, config=self.config),
            logits=logits,
            hidden_states=features.hidden_states,
        )
        return output if _choice(return_dict, self.config.return_dict) else output.to_tuple()


def _choice(asked: bool | None, configured: bool | None) -> bool:
    return bool(configured if asked is None else asked)
