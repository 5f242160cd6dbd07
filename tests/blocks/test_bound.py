"""Dong's bound: what can be said of it by hand, and that no stack breaks it where it applies."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from isotest.blocks import BlockConfig, TransformerStack
from isotest.blocks.bound import _outcome, collapse_bound
from isotest.errors import BlockError, NonFiniteError
from isotest.testing.strategies import blocks, token_batches

PURE: dict[str, Any] = {
    "attention_skip": False, "mlp": False, "layer_norm": "none", "causal": False, "moved": 0.0,
}  # fmt: skip


def stack(depth: int = 1, seed: int = 0, **config: Any) -> TransformerStack:
    own = {"width": 16, "heads": 2, "initialisation": "xavier", "bias": False, **config}
    pure = {name: value for name, value in PURE.items() if name != "moved"}
    return TransformerStack(BlockConfig(depth=depth, **{**pure, **own}), seed=seed).double()


def near(seed: int, length: int, width: int, size: float, bias: float = 1.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(length, width, generator=generator, dtype=torch.float64)
    return torch.full((width,), bias, dtype=torch.float64) + size * noise


def residual(x: torch.Tensor) -> float:
    """About the mean, from the definition."""
    rest = (x - x.mean(dim=0)).abs()
    return math.sqrt(float(rest.sum(dim=0).max()) * float(rest.sum(dim=1).max()))


def test_a_stack_by_hand() -> None:
    """One head, two entries, all weights the identity: W_QK = W_V W_O = I, of which β = 1."""
    made = stack(width=2, heads=1)
    for part in ("query", "key", "value", "output"):
        torch.nn.init.eye_(getattr(made.blocks[0].attention, part).weight)
    x = torch.tensor([[0.1, 0.0], [-0.1, 0.0]], dtype=torch.float64)
    found = collapse_bound(made, x)
    # R = X: column sum 0.2, row sum 0.1. E = ±0.01/√2, each row of which spans 0.02/√2.
    size = math.sqrt(0.02)
    c = 4 / math.sqrt(2)
    assert (found.beta, found.heads, found.head_width) == (1.0, 1, 2)
    assert found.score_range == pytest.approx(0.02 / math.sqrt(2))
    # Both rows span it: 0.04/√2, twice the column sum of |E|.
    assert found.gamma == pytest.approx(1.0)
    assert found.contraction == pytest.approx(c * 0.02)
    assert list(found.log10_bounds) == pytest.approx([math.log10(c * size**3)])
    # Weights softmax(±0.01/√2): rows ±0.1·tanh(0.01/√2).
    after = math.sqrt(0.02) * math.tanh(0.01 / math.sqrt(2))
    assert_allclose(found.residuals, [size, after], rtol=1e-12)
    assert found.outcome == "holds"


def test_the_residual_is_that_of_the_stacks_output() -> None:
    for depth in (1, 2):
        made = stack(depth, bias=True)
        for block in made.blocks:
            for part in ("query", "key", "value", "output"):
                torch.nn.init.normal_(getattr(block.attention, part).bias, std=0.3)
        x = near(1, 7, 16, 0.3)
        with torch.inference_mode():
            out = made(x[None])[0]
        # About another common vector than the mean, which is at most twice as near.
        assert residual(out) / 2 <= collapse_bound(made, x).residuals[-1] <= 2.5 * residual(out)


def test_the_exponent_is_three_far_below_the_float_floor() -> None:
    found = collapse_bound(stack(5, width=256, heads=8), near(0, 16, 256, 0.7))
    logs = [math.log(value) for value in found.residuals]
    exponents = [(c - b) / (b - a) for a, b, c in zip(logs, logs[1:], logs[2:], strict=False)]
    assert found.residuals[-1] < 1e-90
    assert_allclose(exponents[1:], 3, atol=0.05)
    assert_allclose(exponents[-1], 3, atol=0.005)


def test_each_outcome() -> None:
    assert collapse_bound(stack(2), near(0, 5, 16, 1e-3)).outcome == "holds"
    vacuous = collapse_bound(stack(2), near(0, 5, 16, 0.2))
    assert vacuous.outcome == "vacuous"
    assert vacuous.contraction > 1
    wide = collapse_bound(stack(2), near(0, 5, 16, 3.0))
    assert wide.outcome == "precondition failed"
    assert f"scores span {wide.score_range:.4g}, and may span 1.256" in wide.reason
    for switch, words in {
        "attention_skip": "a skip", "mlp": "an MLP", "causal": "a causal mask",
    }.items():  # fmt: skip
        other = collapse_bound(stack(2, **{switch: True}), near(0, 5, 16, 1e-3))
        assert other.outcome == "precondition failed"
        assert words in other.reason
    for normalisation, words in {"layernorm": "LayerNorm", "rmsnorm": "RMSNorm"}.items():
        other = collapse_bound(
            stack(layer_norm="post", normalisation=normalisation), near(0, 5, 16, 1e-3)
        )
        assert other.outcome == "precondition failed"
        assert other.reason.endswith(words)


def test_edges_are_values_or_one_message() -> None:
    same = collapse_bound(stack(64), torch.ones(5, 16))
    assert same.outcome == "holds"
    assert set(same.residuals) == {0.0}
    assert collapse_bound(stack(3), torch.ones(1, 16)).residuals == (0.0,) * 4
    deep = collapse_bound(stack(64), near(0, 5, 16, 1e-2))
    assert deep.outcome == "holds"
    assert deep.residuals[-1] == 0.0  # 1e-308 was long ago
    assert deep.log10_bounds[-1] < -1e29
    with pytest.raises(NonFiniteError, match="the residual of the input is not finite"):
        collapse_bound(stack(), torch.full((3, 16), math.inf))
    huge = stack(3)
    for name, parameter in huge.named_parameters():
        if "output" in name:
            parameter.data *= 1e160
    with pytest.raises(NonFiniteError, match="behind layer 2 is not finite"):
        collapse_bound(huge, near(0, 5, 16, 0.5))
    with pytest.raises(BlockError, match=r"expected a sequence of shape \(length, 16\), found"):
        collapse_bound(stack(), torch.ones(2, 3, 16))


def test_it_is_violated_where_any_layer_is_above_it() -> None:
    bounds = (-3.0, -9.0)
    assert _outcome((0.1, 1e-3, 1e-9), 0.1, 0.01, bounds)[0] == "holds"
    assert _outcome((0.1, 1.1e-3, 1e-12), 0.1, 0.01, bounds) == (
        "violated",
        "behind layer 1, log₁₀ of the residual: -2.959, of the bound: -3",
    )
    assert _outcome((0.1, 1e-4, 1e-8), 0.1, 0.01, bounds)[0] == "violated"


def test_the_bound_behind_each_layer_is_that_of_a_stack_of_so_many() -> None:
    x = near(0, 5, 16, 1e-3)
    deep, shallow = (collapse_bound(stack(depth), x) for depth in (3, 1))
    # c is that of all layers, and no smaller than that of one.
    c = deep.contraction / deep.residuals[0] ** 2
    for layer, log10 in enumerate(deep.log10_bounds, start=1):
        power = 3**layer
        expected = (power - 1) / 2 * math.log10(c) + power * math.log10(deep.residuals[0])
        assert log10 == pytest.approx(expected, rel=1e-12)
    assert deep.log10_bounds[0] >= shallow.log10_bounds[0]


def test_weights_of_zero_and_any_depth_are_values() -> None:
    zero = stack(2)
    for parameter in zero.parameters():
        torch.nn.init.zeros_(parameter)
    found = collapse_bound(zero, near(0, 5, 16, 0.3))
    assert (found.outcome, found.beta) == ("holds", 0.0)
    assert found.log10_bounds == (-math.inf, -math.inf)
    # 3^700 is no float.
    deepest = collapse_bound(stack(700, width=4, heads=1), near(0, 3, 4, 1e-4))
    assert deepest.outcome == "holds"
    assert all(map(math.isfinite, deepest.log10_bounds))


@given(st.data())
def test_no_stack_breaks_it_where_it_applies(data: st.DataObject) -> None:
    block = data.draw(blocks(**PURE))
    depth = data.draw(st.integers(1, 4))
    batch = data.draw(token_batches(block.config.width, length=2, scales=(1.0, 0.1, 0.01)))
    made = TransformerStack(BlockConfig(**{**block.config.to_dict(), "depth": depth}))
    for sequence in batch.tensor():
        found = collapse_bound(made, sequence)
        assert found.outcome != "violated", found


def test_near_collapse_it_says_something() -> None:
    for seed in range(10):
        assert collapse_bound(stack(2, seed), near(seed, 5, 16, 1e-3)).outcome == "holds"
