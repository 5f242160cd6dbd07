"""What ``python:`` sources in the tests point at: good models, and everything that goes wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from transformers import ViTConfig, ViTForImageClassification, ViTModel

from isotest.models.preprocess import ImagePreprocess
from isotest.models.seeding import seeded
from tests.models.tiny import VIT

if TYPE_CHECKING:
    from torch import Tensor

NOT_CALLABLE = 3


def vit() -> nn.Module:
    with seeded(1):
        return ViTModel(ViTConfig(**VIT))


def head_model() -> nn.Module:
    with seeded(1):
        return ViTForImageClassification(ViTConfig(**VIT))


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.linear(x)
        return out


class Plain(nn.Module):
    """Patches of 8 × 8, blocks, a norm: nothing that any library knows."""

    def __init__(self, width: int = 8, depth: int = 3) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 8, 8)
        self.tokens = nn.Flatten(2)
        self.body = nn.ModuleList(Block(width) for _ in range(depth))
        self.last = nn.LayerNorm(width)
        self.unused = nn.Linear(2, 2)
        self.twice = nn.Identity()
        self.scalar = nn.Flatten(0)

    def forward(self, image: Tensor) -> Tensor:
        x = self.tokens(self.stem(image)).transpose(1, 2)
        for block in self.body:
            x = block(x)
        x = self.twice(self.twice(self.last(x)))
        self.scalar(x)
        out: Tensor = x.mean(1)
        return out


def plain(width: int = 8, depth: int = 3) -> nn.Module:
    with seeded(1):
        return Plain(width, depth)


def with_preprocess() -> tuple[nn.Module, ImagePreprocess]:
    return plain(), ImagePreprocess(size=(16, 16), mean=(0.1,) * 3, input_name="image")


def with_a_bad_preprocess() -> tuple[nn.Module, Any]:
    return plain(), lambda images: images


def no_layers() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 8, 8), nn.ReLU(), nn.Flatten())


def raises() -> nn.Module:
    raise RuntimeError("no such\nluck")


def a_number() -> int:
    return 3


def a_triple() -> tuple[int, int, int]:
    return (1, 2, 3)


def from_the_hub() -> nn.Module:
    return ViTModel.from_pretrained("owner/not-cached")


class Broken(Plain):
    def forward(self, image: Tensor) -> Tensor:
        raise ValueError("broken forward")


def broken() -> nn.Module:
    return Broken()


class Shared(nn.Module):
    """One block run four times, as ALBERT does it, in a list of one."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 8, 8)
        self.body = nn.ModuleList([Block(8)])

    def forward(self, image: Tensor) -> Tensor:
        x = self.stem(image).flatten(2).transpose(1, 2)
        for _ in range(4):
            x = self.body[0](x)
        out: Tensor = x
        return out


def shared() -> nn.Module:
    return Shared()


class Grey(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 8, 8)


def grey() -> nn.Module:
    return Grey()


class Perceptron(nn.Module):
    """Vectors, one an input."""

    def __init__(self) -> None:
        super().__init__()
        self.flatten = nn.Flatten()
        self.body = nn.Sequential(Block(192), Block(192))

    def forward(self, image: Tensor) -> Tensor:
        out: Tensor = self.body(self.flatten(torch.nn.functional.adaptive_avg_pool2d(image, 8)))
        return out


def perceptron() -> nn.Module:
    return Perceptron()
