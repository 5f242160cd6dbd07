"""What is said of blocks that nobody here wrote is what their source code says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import nn

from isotest.testing import Result, check_block
from tests.testing.real_blocks import (
    HEADS,
    REAL_BLOCKS,
    T5,
    WIDTH,
    RealBlock,
    TorchEncoder,
    as_trained,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor


@pytest.mark.parametrize("real", REAL_BLOCKS, ids=lambda real: real.name)
def test_a_real_block(real: RealBlock) -> None:
    """Every property holds, but for those that the table says cannot be demanded."""
    report = check_block(
        real.factory,
        width=WIDTH,
        heads=HEADS,
        positions=real.claims.positions,
        masked=real.claims.masked,
        scaled=real.claims.scaled,
        examples=10,
    )
    assert report.claims == real.claims
    assert {outcome.property for outcome in report.not_applicable} == set(real.not_applicable), str(
        report
    )
    assert report, str(report)


def test_each_property_holds_of_real_blocks() -> None:
    """One that applies to none of the table would have been tried by nobody."""
    tried = check_block(
        REAL_BLOCKS[0].factory, width=WIDTH, heads=HEADS, masked=True, examples=0
    ).outcomes
    for outcome in tried:
        assert any(outcome.property not in real.not_applicable for real in REAL_BLOCKS)


def test_gpt2s_block_by_itself_is_not_causal() -> None:
    """The model makes the mask; without it, eager attention sees everything."""
    from transformers import GPT2Config
    from transformers.models.gpt2.modeling_gpt2 import GPT2Block

    def factory() -> nn.Module:
        config = GPT2Config(n_embd=WIDTH, n_head=HEADS)
        config._attn_implementation = "eager"
        return GPT2Block(config, layer_idx=0)

    claimed = check_block(factory, width=WIDTH, heads=HEADS, causal=True, examples=5)
    assert [outcome.property for outcome in claimed.violated] == ["causal"]
    found = check_block(factory, width=WIDTH, heads=HEADS, examples=5)
    assert not found.claims.causal
    assert found, str(found)


def test_torchs_encoder_layer_takes_the_batch_second_unless_told() -> None:
    """Given (B, L, D) it attends to the other sequences of the batch."""
    report = check_block(
        lambda: nn.TransformerEncoderLayer(WIDTH, HEADS, 64), width=WIDTH, heads=HEADS, examples=5
    )
    assert "batch_independence" in {outcome.property for outcome in report.violated}


def test_t5s_scores_are_not_divided() -> None:
    """What is claimed of it wrongly is found: that they are, and that positions are all alike."""
    report = check_block(
        lambda: as_trained(lambda: T5("eager")), width=WIDTH, heads=HEADS, examples=5
    )
    assert {outcome.property for outcome in report.violated} == {
        "attention_scale",
        "permutation_equivariance",
    }
    assert report["constant_rows"].result is Result.HOLDS


SCALED = [
    real
    for real in REAL_BLOCKS
    if real.name.startswith(("Bert", "GPT2", "Llama", "Whisper"))
    # With torch's fused attention, timm's scale is not read.
    or real.name == "ViT Block, eager, masked"
]


@pytest.mark.parametrize("real", SCALED, ids=lambda real: real.name)
def test_a_real_block_with_another_scale(real: RealBlock) -> None:
    """Whether the scale goes into eager attention, into torch's fused one, or into the queries."""

    def factory() -> nn.Module:
        block = real.factory()
        for module in block.modules():
            for name in ("scale", "scaling"):
                if hasattr(module, name):
                    setattr(module, name, 1.0)
        return block

    assert violated(factory, real, "attention_scale")


MASKED = [real for real in REAL_BLOCKS if real.claims.masked]


@pytest.mark.parametrize("real", MASKED, ids=lambda real: real.name)
def test_a_real_block_that_is_given_no_mask(real: RealBlock) -> None:
    """Whoever wraps it forgot to hand the mask on."""

    class Forgetful(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = real.factory()

        def forward(self, x: Tensor, valid: Tensor) -> Tensor:
            output: Tensor = self.block(x)
            return output

    assert violated(Forgetful, real, "masked_keys")


CAUSAL = [real for real in REAL_BLOCKS if real.claims.causal]


@pytest.mark.parametrize("real", CAUSAL, ids=lambda real: real.name)
def test_a_causal_block_is_not_causal_backwards(real: RealBlock) -> None:
    """The sequence was turned around on the way, as for a reader from right to left."""

    class Backwards(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = real.factory()

        def forward(self, x: Tensor, valid: Tensor | None = None) -> Tensor:
            turned = (x.flip(1),) if valid is None else (x.flip(1), valid.flip(1))
            output: Tensor = self.block(*turned)
            return output.flip(1)

    assert violated(Backwards, real, "causal")


def violated(factory: Callable[[], nn.Module], real: RealBlock, name: str) -> bool:
    """Whether one property, which holds of the block as it is, is violated."""
    holds, broken = (
        check_block(
            made,
            width=WIDTH,
            heads=HEADS,
            examples=5,
            properties=[name],
            **vars(real.claims),
        )[name].result
        for made in (real.factory, factory)
    )
    assert holds is Result.HOLDS
    return broken is Result.VIOLATED


@pytest.mark.parametrize(("bias", "fast"), [(True, True), (False, False)])
def test_torchs_fast_path_is_what_is_tried(
    monkeypatch: pytest.MonkeyPatch, *, bias: bool, fast: bool
) -> None:
    """Nothing that watches the block keeps torch from taking it, where torch would."""
    calls = 0
    fused: Callable[..., Tensor] = torch._transformer_encoder_layer_fwd

    def counted(*arguments: object) -> Tensor:
        nonlocal calls
        calls += 1
        return fused(*arguments)

    monkeypatch.setattr(torch, "_transformer_encoder_layer_fwd", counted)
    report = check_block(
        lambda: as_trained(lambda: TorchEncoder(bias=bias)),
        width=WIDTH,
        heads=HEADS,
        examples=5,
        properties=["permutation_equivariance"],
    )
    assert report
    assert (calls > 0) == fast
