"""The parts of a VAN, from the attention map of a large kernel up to a stage.

Each takes and yields maps, (batch, channels, height, width).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torchvision.ops import StochasticDepth
from transformers.activations import ACT2FN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.models.architectures.van.configuration import VanConfig


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
