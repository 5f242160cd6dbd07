"""The equations of a VAN in numpy, one image and one tap of a kernel at a time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import erf

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    from isotest.models.architectures.van import VanConfig

    Array = NDArray[np.float64]

STAGE = "encoder.stages.{}."
BLOCK = "encoder.stages.{}.layers.{}."


def convolve(
    x: Array, weight: Array, bias: Array, *, stride: int = 1, padding: int = 0, dilation: int = 1
) -> Array:
    """One image (channels, h, w) with weights (out, in / groups, k, k), a kernel tap at a time."""
    out, per_group, k, _ = weight.shape
    groups = x.shape[0] // per_group
    reach = dilation * (k - 1) + 1
    x = np.pad(x, ((0, 0), (padding, padding), (padding, padding)))
    height, width = ((edge - reach) // stride + 1 for edge in x.shape[1:])
    result = np.zeros((out, height, width)) + bias[:, None, None]
    for channel in range(out):
        first = channel // (out // groups) * per_group
        for source in range(per_group):
            for row in range(k):
                for column in range(k):
                    top, left = row * dilation, column * dilation
                    window = x[
                        first + source,
                        top : top + stride * (height - 1) + 1 : stride,
                        left : left + stride * (width - 1) + 1 : stride,
                    ]
                    result[channel] += weight[channel, source, row, column] * window
    return result


class NaiveVan:
    """Guo et al. 2022, section 3, one image at a time, from the parameters by name."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.state = {key: value.double().numpy() for key, value in model.state_dict().items()}

    def conv(self, name: str, x: Array, **how: int) -> Array:
        return convolve(x, self.state[f"{name}.weight"], self.state[f"{name}.bias"], **how)

    def batch_norm(self, name: str, x: Array) -> Array:
        mean, variance, weight, bias = (
            self.state[f"{name}.{part}"][:, None, None]
            for part in ("running_mean", "running_var", "weight", "bias")
        )
        result: Array = (x - mean) / np.sqrt(variance + 1e-5) * weight + bias
        return result

    def attention_map(self, name: str, x: Array) -> Array:
        local = self.conv(f"{name}depth_wise", x, padding=2)
        wide = self.conv(f"{name}depth_wise_dilated", local, padding=9, dilation=3)
        return self.conv(f"{name}point_wise", wide)

    def block(self, name: str, x: Array) -> Array:
        y = self.batch_norm(f"{name}pre_normomalization", x)
        z = gelu(self.conv(f"{name}attention.pre_projection.conv", y))
        z = z * self.attention_map(f"{name}attention.attention_layer.attention.", z)
        z = y + self.conv(f"{name}attention.post_projection", z)
        x = x + self.state[f"{name}attention_scaling.weight"][:, None, None] * z
        y = self.batch_norm(f"{name}post_normalization", x)
        z = self.conv(f"{name}mlp.depth_wise", self.conv(f"{name}mlp.in_dense", y), padding=1)
        z = self.conv(f"{name}mlp.out_dense", gelu(z))
        result: Array = x + self.state[f"{name}mlp_scaling.weight"][:, None, None] * z
        return result

    def embedding(self, name: str, x: Array, patch: int, stride: int) -> Array:
        x = self.conv(f"{name}embeddings.convolution", x, stride=stride, padding=patch // 2)
        return self.batch_norm(f"{name}embeddings.normalization", x)

    def stages(self, x: Array, config: VanConfig) -> list[Array]:
        maps = []
        for stage, depth in enumerate(config.depths):
            name = STAGE.format(stage)
            x = self.embedding(name, x, config.patch_sizes[stage], config.strides[stage])
            for block in range(depth):
                x = self.block(BLOCK.format(stage, block), x)
            centred = x - x.mean(axis=0)
            x = centred / np.sqrt((centred**2).mean(axis=0) + config.layer_norm_eps)
            weight, bias = (
                self.state[f"{name}normalization.{part}"] for part in ("weight", "bias")
            )
            x = x * weight[:, None, None] + bias[:, None, None]
            maps.append(x)
        return maps


def gelu(x: Array) -> Array:
    activated: Array = x * (1 + erf(x / math.sqrt(2))) / 2
    return activated
