"""Blocks of other libraries under drift: the numbers of the synthetic block of their weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import nn

from isotest.blocks.drift import FIGURES, drift
from isotest.blocks.weights import from_bert_layer, from_vit_block
from isotest.models.seeding import seeded

if TYPE_CHECKING:
    from isotest.profile import Profile

WIDTH = 32


def bert_layer() -> nn.Module:
    from transformers import BertConfig
    from transformers.models.bert.modeling_bert import BertLayer

    config = BertConfig(hidden_size=WIDTH, num_attention_heads=4, intermediate_size=48)
    config._attn_implementation = "sdpa"
    with seeded(1):
        layer: nn.Module = BertLayer(config).eval()
    return layer


def vit_block() -> nn.Module:
    from timm.models.vision_transformer import Block

    with seeded(1):
        block: nn.Module = Block(WIDTH, 4, qkv_bias=True).eval()
    return block


class Wrapped(nn.Module):
    """Somebody's own module around a block of a library."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, None]:
        return self.inner(x), None


def run(block: nn.Module) -> Profile:
    return drift(block, norms=[0, 3], replicates=2, sequences=2, length=40, vocabulary=30, std=0.3)


@pytest.mark.parametrize("library", ["transformers", "timm"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_library_s_block_gives_the_numbers_of_the_synthetic_one(
    library: str, wrapped: bool
) -> None:
    foreign = bert_layer() if library == "transformers" else vit_block()
    own = from_bert_layer(foreign) if library == "transformers" else from_vit_block(foreign)
    found, expected = run(Wrapped(foreign) if wrapped else foreign), run(own)
    compared = 0
    for here, there in zip(found.layers, expected.layers, strict=True):
        for metric in FIGURES:
            value, wanted = here.estimates[metric], there.estimates[metric]
            if wanted.value is None:
                assert value.undefined == wanted.undefined
                continue
            tolerance = 1e-6 if metric.endswith("gap") else 1e-5
            assert value.value == pytest.approx(wanted.value, rel=2e-5, abs=tolerance), metric
            compared += 1
    # 3 metrics in front, all behind; queries and keys of a block that normalises first have no gap
    assert compared == 2 * (3 + len(FIGURES) - (2 if library == "timm" else 0))
