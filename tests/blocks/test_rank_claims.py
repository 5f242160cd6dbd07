"""What slows rank collapse and what does not: claims that need weights no initialisation draws."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from numpy.testing import assert_allclose

from isotest import measure
from isotest.blocks import BlockConfig, TransformerStack
from isotest.statistics.residual import rank_residual

DATA = "embeddings:normal?std=1&vocabulary=1000&length=32"


def stack(seed: int = 0, **config: Any) -> TransformerStack:
    own = {"width": 64, "heads": 4, "hidden": 128, "depth": 6, "initialisation": "xavier"}
    pure = {"attention_skip": False, "mlp": False, "layer_norm": "none", "bias": False}
    return TransformerStack(BlockConfig(**{**own, **pure, **config}), seed=seed).double()


def curve(module: TransformerStack) -> list[float]:
    profile = measure(
        module, DATA, modality="embeddings", samples=8, metrics=["rank_residual"]
    )  # fmt: skip
    values = [layer.estimates["rank_residual"].value for layer in profile.layers]
    return [value for value in values if value is not None]


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_an_mlp_slows_collapse_the_more_the_larger_its_lipschitz_constant(
    activation: Any,
) -> None:
    """Corollary 3.2 of Dong et al.: the bound grows with the constant λ of the MLP.

    Two linear maps times s have s² times the constant. Below 1 the MLP hastens the collapse.
    """
    curves = {}
    for scale in (0.5, 1.0, 1.5, 2.0, 3.0):
        made = stack(mlp=True, mlp_skip=False, activation=activation)
        for name, parameter in made.named_parameters():
            if "mlp" in name:
                parameter.data *= scale
        curves[scale] = curve(made)
    without = curve(stack())
    for slow, fast in pairwise(reversed(curves.values())):
        assert slow[2] > 2 * fast[2]
        assert slow[3] > 100 * fast[3] or fast[3] < 1e-12
    assert curves[0.5][2] < without[2] / 10
    assert curves[3.0][6] > 0.01
    assert without[5] < 1e-12


def identity(layer_norm: str, sharpness: float) -> TransformerStack:
    """Queries are keys times ``sharpness``, values the input times 0.9."""
    made = stack(heads=1, depth=48, layer_norm=layer_norm)
    factors = {"query": sharpness, "key": 1.0, "value": 0.9, "output": 1.0}
    for name, parameter in made.named_parameters():
        part = name.split(".")[-2]
        if part in factors:
            parameter.data = torch.eye(64, dtype=torch.float64) * factors[part]
    return made


def test_layer_norm_can_prevent_collapse() -> None:
    """Wu et al. 2024: there are weights with which it does, for any depth.

    Each position attends to itself the more, the longer its vector is: 0.9 a layer makes all
    attention uniform in the end, and LayerNorm keeps them long.
    """
    with_norm, without = curve(identity("post", 4.0)), curve(identity("none", 4.0))
    assert min(with_norm) > 0.95
    assert max(without[24:]) < 1e-12


def test_layer_norm_does_not_prevent_it_by_itself() -> None:
    for seed in range(3):
        for place in ("post", "pre"):
            assert curve(stack(seed, layer_norm=place))[6] < 1e-12


def test_a_causal_mask_slows_it_at_every_layer() -> None:
    """Wu et al. 2024: to a factor for each layer; the first position never sees another one."""
    for seed in range(3):
        free, masked = curve(stack(seed)), curve(stack(seed, causal=True))
        assert all(slow > fast for slow, fast in zip(masked[1:], free[1:], strict=True))
        factors = [after / before for before, after in pairwise(masked[1:])]
        assert 0.4 < min(factors) <= max(factors) < 0.9
        assert free[5] < 1e-12


def test_with_small_weights_a_skip_keeps_the_residual_and_what_is_added_collapses() -> None:
    """Alman and Song 2025: with small weights a skip does not save what the layers compute.

    The residual stays where the input has it. But what all twelve layers together add is nearly one
    vector for all positions; larger weights add more than that.
    """
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(4, 32, 64, generator=generator, dtype=torch.float64)
    found = {}
    for initialisation in ("bert", "xavier"):
        made = stack(depth=12, attention_skip=True, initialisation=initialisation)
        with torch.inference_mode():
            y = made(x)
        found[initialisation] = (rank_residual(y), rank_residual(y - x))
    kept, added = found["bert"]
    assert_allclose(kept, rank_residual(x), atol=0.01)
    assert added < 0.05
    assert found["xavier"][1] > 3 * added
    assert found["xavier"][0] < 0.4
