"""Counting, enumerating and drawing paths, and what they compute in a synthetic stack."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import comb
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor

from isotest.blocks import BlockConfig, TransformerStack
from isotest.blocks.paths.enumeration import all_paths, count_paths, sample_paths
from isotest.blocks.paths.evaluation import evaluate
from isotest.blocks.paths.network import FixedNorm
from isotest.blocks.paths.stack import fixed_stack
from isotest.errors import BlockError
from tests.blocks.naive import randomise

PURE = BlockConfig(width=12, heads=3, hidden=20, depth=3, mlp=False, layer_norm="none")
VALID = torch.tensor([[True, True, True, False, False], [True] * 5])


def stack_of(config: BlockConfig, seed: int = 0) -> Any:
    """In float64, its biases and norms random as well, so that they matter."""
    stack = TransformerStack(config).double()
    randomise(stack, seed)
    return stack


def inputs(sequences: int = 2, length: int = 5, width: int = 12, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(sequences, length, width, generator=generator, dtype=torch.float64)


# Paths by themselves


@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (1, 4), (3, 1), (3, 2), (4, 3)])
def test_every_path_once(layers: int, heads: int) -> None:
    everything = set(itertools.product(range(heads + 1), repeat=layers))
    paths = all_paths(layers, heads)
    assert len(paths) == len(everything) == count_paths(layers, heads)
    assert set(map(tuple, paths.tolist())) == everything
    for length in range(layers + 1):
        some = all_paths(layers, heads, length)
        expected = [path for path in sorted(everything) if sum(h > 0 for h in path) == length]
        assert list(map(tuple, some.tolist())) == expected
        assert (
            len(some) == count_paths(layers, heads, length) == comb(layers, length) * heads**length
        )


def test_lengths_of_all_paths() -> None:
    """Dong et al. 2021: L·H/(H + 1) on average."""
    counts = [count_paths(12, 12, length) for length in range(13)]
    assert sum(counts) == count_paths(12, 12) == 13**12
    mean = sum(k * count for k, count in enumerate(counts)) / sum(counts)
    assert mean == pytest.approx(12 * 12 / 13)


@pytest.mark.parametrize("length", [None, 2])
def test_every_path_is_drawn_equally_often(length: int | None) -> None:
    everything = list(map(tuple, all_paths(3, 2, length).tolist()))
    drawn = sample_paths(3, 2, 200 * len(everything), length=length, seed=5)
    counts = dict.fromkeys(everything, 0)
    for path in map(tuple, drawn.tolist()):
        counts[path] += 1
    assert chisquare(list(counts.values())).pvalue > 0.01


def test_a_draw_is_its_seed() -> None:
    assert np.array_equal(sample_paths(4, 3, 9, seed=1), sample_paths(4, 3, 9, seed=1))
    assert not np.array_equal(sample_paths(4, 3, 9, seed=1), sample_paths(4, 3, 9, seed=2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: count_paths(0, 2), "at least one layer and one head"),
        (lambda: count_paths(2, 2, 3), "a length from 0 to 2"),
        (lambda: all_paths(12, 12), "23298085122481 paths.*sample_paths"),
        (lambda: sample_paths(2, 2, 0), "at least one path"),
    ],
)
def test_paths_that_cannot_be(call: Any, message: str) -> None:
    with pytest.raises(BlockError, match=message):
        call()


# What they compute

MODERN: dict[str, Any] = {
    "layer_norm": "pre",
    "normalisation": "rmsnorm",
    "mlp": True,
    "gated": True,
    "activation": "silu",
    "bias": False,
    "layer_norm_eps": 1e-6,
}
NETWORKS: dict[str, dict[str, Any]] = {
    "attention and skip": {},
    "no bias": {"bias": False},
    "post-norm": {"layer_norm": "post"},
    "pre-norm": {"layer_norm": "pre"},
    "causal": {"causal": True},
    "one layer": {"depth": 1},
    "one head": {"heads": 1},
    "four layers, two heads": {"depth": 4, "heads": 2},
    "BERT": {"layer_norm": "post", "mlp": True},
    "GPT-2": {"layer_norm": "pre", "mlp": True, "causal": True, "activation": "gelu_tanh"},
    "RMSNorm behind": {"layer_norm": "post", "normalisation": "rmsnorm"},
    "RMSNorm in front": {"layer_norm": "pre", "normalisation": "rmsnorm"},
    "gated": {"mlp": True, "gated": True, "activation": "silu"},
    "modern": MODERN,
    "modern, causal": {**MODERN, "causal": True},
    "modern, one layer": {**MODERN, "depth": 1, "heads": 1},
    "modern, five layers": {**MODERN, "depth": 5, "heads": 2},
    "modern, four heads": {**MODERN, "depth": 2, "heads": 4},
    "modern, post-norm": {**MODERN, "layer_norm": "post", "bias": True},
}


@pytest.mark.parametrize("valid", [None, VALID], ids=["no mask", "masked"])
@pytest.mark.parametrize("changes", NETWORKS.values(), ids=NETWORKS)
def test_all_paths_sum_up_to_the_output(changes: dict[str, Any], valid: Tensor | None) -> None:
    stack = stack_of(replace(PURE, **changes))
    network = fixed_stack(stack, inputs(), valid)
    paths = all_paths(network.depth, network.heads)
    outputs = torch.empty(len(paths), 2, 5, 12, dtype=torch.float64)
    for rows, some in evaluate(network, paths, batch=7):
        outputs[torch.from_numpy(rows)] = some
    with torch.no_grad():
        expected = stack(inputs(), valid)
    torch.testing.assert_close(outputs.sum(0), expected, rtol=0, atol=1e-10)
    # And length by length, which nothing was sampled for.
    lengths = (paths > 0).sum(axis=1)
    for length, exact in enumerate(network.by_length()):
        summed = outputs[torch.from_numpy(lengths == length)].sum(0)
        torch.testing.assert_close(summed, exact, rtol=0, atol=1e-10)


def test_a_path_is_a_product_of_matrices() -> None:
    """Written out for one: past, head 2, past, head 1; biases in front of the first head only."""
    stack = stack_of(replace(PURE, depth=4))
    x = inputs()
    network = fixed_stack(stack, x)
    ((_, (found,)),) = evaluate(network, np.array([[0, 2, 0, 1]]))
    with torch.no_grad():
        entering = [x]
        for block in stack.blocks:
            entering.append(block(entering[-1]))
        y = x + stack.blocks[0].attention.output.bias
        for number, head in ((1, 1), (3, 0)):
            attention = stack.blocks[number].attention
            own = slice(4 * head, 4 * head + 4)
            value = y @ attention.value.weight[own].T
            if number == 1:
                value = value + attention.value.bias[own]
            weights = attention.trace(entering[number]).weights[:, head]
            y = weights @ value @ attention.output.weight[:, own].T
    torch.testing.assert_close(found, y, rtol=0, atol=1e-12)


def test_attention_maps_are_fixed_and_not_those_of_the_path() -> None:
    """So the tests above can fail: maps of another input give another sum."""
    stack = stack_of(PURE)
    network = fixed_stack(stack, inputs(seed=2))
    moved = replace(network, start=inputs())
    with torch.no_grad():
        assert float((moved.output() - stack(inputs())).abs().max()) > 0.1


@pytest.mark.parametrize("normalisation", ["layernorm", "rmsnorm"])
def test_a_fixed_norm_is_the_norm_and_linear(normalisation: Any) -> None:
    """Equal to the module at the point where it was fixed, and homogeneous but for β elsewhere."""
    stack = stack_of(replace(PURE, layer_norm="pre", normalisation=normalisation))
    norm, x, y = stack.blocks[0].attention_norm, inputs() + 1, inputs(seed=2)
    with torch.no_grad():
        fixed = FixedNorm.of(norm, x, "norm")
        assert fixed is not None
        torch.testing.assert_close(fixed(x, constant=True), norm(x), rtol=0, atol=1e-12)
        both, one = fixed(x + 3 * y, constant=False), fixed(x, constant=False)
        torch.testing.assert_close(both, one + 3 * fixed(y, constant=False), rtol=0, atol=1e-12)
        # So it can fail: the module itself is no linear map.
        assert float((norm(x + 3 * y) - norm(x) - 3 * norm(y)).abs().max()) > 0.1


def test_a_fixed_rms_norm_keeps_a_common_shift_of_the_entries() -> None:
    """A LayerNorm takes it off; an RMSNorm scales it as anything else."""
    x, shift = inputs(), torch.ones(12, dtype=torch.float64)
    root = x.square().mean(-1, keepdim=True).sqrt()
    rms = FixedNorm.of(torch.nn.RMSNorm(12, eps=1e-12).double(), x, "norm")
    layer = FixedNorm.of(torch.nn.LayerNorm(12).double(), x, "norm")
    assert rms is not None
    assert layer is not None
    moved = [norm(x + shift, constant=True) - norm(x, constant=True) for norm in (rms, layer)]
    torch.testing.assert_close(moved[0], (1 / root).expand(2, 5, 12))
    assert float(moved[1].abs().max()) < 1e-12


@pytest.mark.parametrize(
    "norm", [torch.nn.RMSNorm(6), torch.nn.RMSNorm((5, 12)), torch.nn.BatchNorm1d(12)], ids=str
)
def test_another_norm_is_refused(norm: torch.nn.Module) -> None:
    with pytest.raises(BlockError, match="expected it to be a LayerNorm or an RMSNorm of width 12"):
        FixedNorm.of(norm, inputs(), "it")


def test_the_eps_of_torchs_rms_norm_is_the_dtypes_by_default() -> None:
    norm, x = torch.nn.RMSNorm(12).double(), 1e-8 * inputs()
    fixed = FixedNorm.of(norm, x, "norm")
    assert fixed is not None
    with torch.no_grad():
        torch.testing.assert_close(fixed(x, constant=True), norm(x), rtol=1e-12, atol=0)


def test_a_mean_over_drawn_paths_is_unbiased() -> None:
    network = fixed_stack(stack_of(replace(PURE, depth=4)), inputs())
    exact = network.by_length()[2]
    paths = sample_paths(4, 3, 2_000, length=2)
    drawn = torch.cat([some for _, some in evaluate(network, paths)])
    estimate = count_paths(4, 3, 2) * drawn.mean(0)
    se = count_paths(4, 3, 2) * drawn.std(0) / len(paths) ** 0.5
    z = (estimate - exact) / se
    # 120 entries that depend on each other: standard normal each.
    assert float(z.abs().max()) < 4.5
    assert 0.5 < float(z.square().mean()) < 2


def test_the_same_path_twice_and_any_batch() -> None:
    network = fixed_stack(stack_of(PURE), inputs())
    paths = np.array([[1, 0, 3], [0, 0, 0], [1, 0, 3], [0, 2, 0], [0, 0, 0]])
    results = []
    for batch in (1, 2, 5):
        outputs = torch.full((5, 2, 5, 12), torch.nan, dtype=torch.float64)
        for rows, some in evaluate(network, paths, batch=batch):
            outputs[torch.from_numpy(rows)] = some
        results.append(outputs)
    assert torch.equal(results[0][0], results[0][2])
    for outputs in results[1:]:
        torch.testing.assert_close(outputs, results[0], rtol=0, atol=1e-13)


def test_one_token() -> None:
    """Each map is the number one; with values and outputs left as they are, C(L, k)·x."""
    stack = stack_of(replace(PURE, heads=1, bias=False))
    with torch.no_grad():
        for block in stack.blocks:
            block.attention.value.weight.copy_(torch.eye(12))
            block.attention.output.weight.copy_(torch.eye(12))
    x = inputs(length=1)
    for length, found in enumerate(fixed_stack(stack, x).by_length()):
        torch.testing.assert_close(found, comb(3, length) * x)


def test_sixty_four_layers_that_overflow() -> None:
    config = replace(PURE, depth=64, bias=False, causal=True)
    stack = TransformerStack(config)
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter.mul_(300)
    with pytest.raises(BlockError, match=r"the output of the stack is not finite"):
        fixed_stack(stack, 1e20 * inputs().float())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attention_skip": False}, "attention_skip = false"),
        ({"mlp": True, "mlp_skip": False}, "mlp_skip = false"),
        ({"mlp": True, "attention": False}, "attention = false"),
    ],
)
def test_networks_that_are_no_sum(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BlockError, match=message):
        fixed_stack(stack_of(replace(PURE, **changes)), inputs())


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (np.zeros((0, 3), dtype=np.int64), "one at least"),
        (np.zeros((2, 4), dtype=np.int64), r"shape \(paths, 3\)"),
        (np.zeros((2, 3)), "whole numbers"),
        (np.array([[0, 4, 0]]), "0, past the layer, to 3"),
        (np.array([[0, -1, 0]]), "found -1 to 0"),
    ],
)
def test_rows_that_are_no_paths(paths: Any, message: str) -> None:
    with pytest.raises(BlockError, match=message):
        evaluate(fixed_stack(stack_of(PURE), inputs()), paths)
