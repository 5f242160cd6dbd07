"""Weights of each scheme against its closed form; seeds that decide everything and disturb nothing.

The bounds are five standard errors: with the 400 comparisons here, about one choice of seeds in
four thousand would fail by chance, and the seeds are fixed. A mean of n draws has the standard
error σ/√n; a standard deviation, σ√((κ − 1)/4n), with the kurtosis κ = 3 of the normal distribution
and 9/5 of the uniform one; a correlation of independent draws, 1/√n.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import kstest
from torch import Tensor, nn
from transformers import BertConfig, GPT2Config, GPT2Model

from isotest.blocks import BlockConfig, TransformerBlock, TransformerStack

CONFIG = BlockConfig(width=96, heads=4, hidden=160, depth=3)
MATRICES = (
    "attention.query",
    "attention.key",
    "attention.value",
    "attention.output",
    "mlp.hidden",
    "mlp.output",
)

# Of (query, key, value, output, hidden, output): written out for these sizes.
EXPECTED: dict[str, tuple[float, ...]] = {
    "bert": (0.02,) * 6,
    "xavier": (*4 * ((2 / 192) ** 0.5,), (2 / 256) ** 0.5, (2 / 256) ** 0.5),
    # Three blocks of two sublayers: six maps end a residual branch.
    "depth-scaled": (0.02, 0.02, 0.02, 0.02 / 6**0.5, 0.02, 0.02 / 6**0.5),
    # BERT-base is 8 times as wide, its hidden layer 19.2 times; heads have 64, not 24.
    "mup": (
        0.02 * 8**0.5 * (64 / 24) ** 0.5,
        0.02 * 8**0.5,
        0.02 * 8**0.5,
        0.02 * 8**0.5,
        0.02 * 8**0.5,
        0.02 * 19.2**0.5,
    ),
}


def weights(block: nn.Module) -> dict[str, Tensor]:
    return {
        name: part.weight.detach()
        for name, part in block.named_modules()
        if isinstance(part, nn.Linear)
    }


@pytest.mark.parametrize("scheme", EXPECTED)
def test_mean_and_standard_deviation_are_the_schemes(scheme: Any) -> None:
    drawn = weights(TransformerBlock(replace(CONFIG, initialisation=scheme), seed=3))
    kurtosis = 9 / 5 if scheme == "xavier" else 3
    assert tuple(drawn) == MATRICES
    for sigma, matrix in zip(EXPECTED[scheme], drawn.values(), strict=True):
        values = matrix.double().numpy().ravel()
        assert abs(values.mean()) < 5 * sigma / values.size**0.5
        error = sigma * ((kurtosis - 1) / (4 * values.size)) ** 0.5
        assert abs(values.std() - sigma) < 5 * error


@pytest.mark.parametrize("scheme", EXPECTED)
def test_the_distribution_is_the_schemes(scheme: Any) -> None:
    drawn = weights(TransformerBlock(replace(CONFIG, initialisation=scheme)))
    for sigma, matrix in zip(EXPECTED[scheme], drawn.values(), strict=True):
        values = matrix.double().numpy().ravel() / sigma
        root = 3**0.5
        uniform = kstest(values, "uniform", args=(-root, 2 * root)).pvalue
        normal = kstest(values, "norm").pvalue
        right, wrong = (uniform, normal) if scheme == "xavier" else (normal, uniform)
        assert right > 1e-6
        assert wrong < 1e-20


def test_xavier_stays_in_its_bounds() -> None:
    block = TransformerBlock(replace(CONFIG, initialisation="xavier"))
    for matrix in weights(block).values():
        bound = (6 / sum(matrix.shape)) ** 0.5
        assert 0.99 * bound < matrix.abs().max() <= bound * (1 + 1e-6)


@pytest.mark.parametrize("scheme", EXPECTED)
def test_biases_are_zero_and_norms_pass_on(scheme: Any) -> None:
    stack = TransformerStack(replace(CONFIG, initialisation=scheme))
    for part in stack.modules():
        if isinstance(part, nn.Linear):
            assert torch.equal(part.bias, torch.zeros_like(part.bias))
        elif isinstance(part, nn.LayerNorm):
            assert torch.equal(part.weight, torch.ones(96))
            assert torch.equal(part.bias, torch.zeros(96))
    set_here = 3 * (4 * (96 * 96 + 96) + 2 * 96 * 160 + 160 + 96 + 4 * 96)
    assert sum(parameter.numel() for parameter in stack.parameters()) == set_here


# Of a gated MLP's gate (96 inputs, 160 outputs), as of its hidden map.
GATE = {"bert": 0.02, "xavier": (2 / 256) ** 0.5, "depth-scaled": 0.02, "mup": 0.02 * 8**0.5}


@pytest.mark.parametrize("scheme", GATE)
def test_the_gate_is_drawn_by_its_own_generator(scheme: Any) -> None:
    """As the scheme says, and neither as the hidden map nor in place of it."""
    config = replace(CONFIG, initialisation=scheme)
    plain = weights(TransformerBlock(config, seed=3))
    gated = weights(TransformerBlock(replace(config, gated=True), seed=3))
    assert set(gated) == {*MATRICES, "mlp.gate"}
    assert all(torch.equal(gated[name], plain[name]) for name in MATRICES)
    gate, hidden = (gated[name].double().numpy().ravel() for name in ("mlp.gate", "mlp.hidden"))
    kurtosis = 9 / 5 if scheme == "xavier" else 3
    assert abs(gate.mean()) < 5 * GATE[scheme] / gate.size**0.5
    error = GATE[scheme] * ((kurtosis - 1) / (4 * gate.size)) ** 0.5
    assert abs(gate.std() - GATE[scheme]) < 5 * error
    assert abs(np.corrcoef(gate, hidden)[0, 1]) < 5 / gate.size**0.5


def test_a_modern_stack_begins_with_gains_of_one() -> None:
    stack = TransformerStack(replace(BlockConfig.modern(), width=96, heads=4, hidden=64, depth=2))
    norms = [part for part in stack.modules() if isinstance(part, nn.RMSNorm)]
    assert len(norms) == 4
    assert all(torch.equal(norm.weight, torch.ones(96)) for norm in norms)
    # No bias, no shift: four maps of 96 × 96, three of 96 × 64, two gains a block.
    assert sum(p.numel() for p in stack.parameters()) == 2 * (4 * 96**2 + 3 * 96 * 64 + 2 * 96)


def test_each_matrix_is_the_draw_of_a_generator_named_after_it() -> None:
    """What a seed gives is fixed: weights of old configurations stay what they were."""
    drawn = weights(TransformerBlock(CONFIG, seed=3, number=1))
    for name, matrix in drawn.items():
        digest = hashlib.blake2b(f"3 1 {name}".encode(), digest_size=8).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest, "big"))
        expected = torch.empty(matrix.shape).normal_(0, 0.02, generator=generator)
        assert torch.equal(matrix, expected)


def test_berts_is_that_of_transformers() -> None:
    assert BertConfig().initializer_range == 0.02


def test_depth_scaled_is_gpt2s() -> None:
    """transformers' GPT-2 draws the same two maps with 0.02/√(2·layers)."""
    torch.manual_seed(0)
    shape: dict[str, Any] = {"n_embd": 96, "n_head": 4, "n_layer": 3, "n_inner": 160}
    other: Any = GPT2Model(GPT2Config(vocab_size=5, n_positions=5, **shape)).h[0]
    config = replace(CONFIG, initialisation="depth-scaled")
    own = weights(TransformerBlock(config))
    for name, matrix in (
        ("attention.query", other.attn.c_attn.weight),
        ("attention.output", other.attn.c_proj.weight),
        ("mlp.hidden", other.mlp.c_fc.weight),
        ("mlp.output", other.mlp.c_proj.weight),
    ):
        # Five standard errors of the ratio of two standard deviations of 9,216 draws or more.
        bound = 5 * (1 / (2 * 9216) + 1 / (2 * 9216)) ** 0.5
        assert abs((own[name].std() / matrix.std()).item() - 1) < bound


def test_depth_scaled_counts_the_sublayers_that_have_a_skip() -> None:
    config = replace(CONFIG, initialisation="depth-scaled", attention_skip=False)
    drawn = weights(TransformerBlock(config))
    plain = weights(TransformerBlock(CONFIG))
    assert torch.equal(drawn["attention.output"], plain["attention.output"])
    torch.testing.assert_close(drawn["mlp.output"] * 3**0.5, plain["mlp.output"])


def test_mup_is_berts_at_its_base() -> None:
    bert, mup = (
        weights(TransformerBlock(BlockConfig(initialisation=scheme))) for scheme in ("bert", "mup")
    )
    assert all(torch.equal(bert[name], mup[name]) for name in MATRICES)


@pytest.mark.parametrize("width", [64, 256, 1024])
def test_scores_shrink_with_the_heads_width_in_mup(width: int) -> None:
    """For inputs N(0, I), the variance of q·k/√d_k is (D·σ_q²)·(D·σ_k²).

    So its standard deviation is 768·0.02²·√(64/d_k) in µP, whatever the width, and D·0.02² in
    BERT's scheme.
    """
    config = BlockConfig(width=width, heads=4, hidden=8, mlp=False)
    x = torch.randn(4, 64, width, generator=torch.Generator().manual_seed(0))
    for scheme, expected in (
        ("mup", 768 * 0.02**2 * (64 / (width / 4)) ** 0.5),
        ("bert", width * 0.02**2),
    ):
        with torch.no_grad():
            changed: Any = {"initialisation": scheme}
            scores = TransformerBlock(replace(config, **changed)).trace(x).scores
        # 16 maps of 64 × 64 scores that depend on each other: a few percent.
        assert scores.std().item() == pytest.approx(expected, rel=0.1)


def test_matrices_blocks_and_seeds_are_independent() -> None:
    config = replace(CONFIG, hidden=96)
    drawn = [
        matrix.double().numpy().ravel()
        for seed, number in ((0, 0), (0, 1), (1, 0), (1, 1))
        for matrix in weights(TransformerBlock(config, seed=seed, number=number)).values()
    ]
    correlations = np.corrcoef(drawn)[np.triu_indices(24, k=1)]
    assert np.abs(correlations).max() < 5 / (96 * 96) ** 0.5


def test_a_seed_repeats() -> None:
    first, again = (TransformerStack(CONFIG, seed=5).state_dict() for _ in range(2))
    assert all(torch.equal(first[name], again[name]) for name in first)


def test_torchs_generator_neither_matters_nor_moves() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = TransformerBlock(CONFIG)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(2)
    second = TransformerBlock(CONFIG)
    assert all(torch.equal(a, b) for a, b in zip(*map(_parameters, (first, second)), strict=True))


def test_torchs_default_dtype_does_not_matter() -> None:
    first = TransformerBlock(CONFIG).double()
    torch.set_default_dtype(torch.float64)
    try:
        second = TransformerBlock(CONFIG)
    finally:
        torch.set_default_dtype(torch.float32)
    assert all(torch.equal(a, b) for a, b in zip(*map(_parameters, (first, second)), strict=True))


@pytest.mark.parametrize(
    "changes",
    [
        {"mlp": False},
        {"attention": False},
        {"attention_skip": False, "mlp_skip": False},
        {"layer_norm": "none", "bias": False},
        {"depth": 7, "causal": True},
        {"normalisation": "rmsnorm"},
    ],
    ids=str,
)
def test_switches_leave_the_remaining_weights_as_they_are(changes: dict[str, Any]) -> None:
    """An ablation compares the same weights with and without a part."""
    full = weights(TransformerBlock(CONFIG, seed=2, number=1))
    ablated = weights(TransformerBlock(replace(CONFIG, **changes), seed=2, number=1))
    assert ablated
    assert all(torch.equal(ablated[name], full[name]) for name in ablated)


def _parameters(block: nn.Module) -> list[Tensor]:
    return [parameter.detach() for parameter in block.parameters()]
