"""What paths of each length contribute: shares, sizes, residuals, and their error bars."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from isotest.blocks import BlockConfig, TransformerStack
from isotest.blocks.paths.enumeration import all_paths, sample_paths
from isotest.blocks.paths.evaluation import evaluate
from isotest.blocks.paths.length import contributions, residuals
from isotest.blocks.paths.stack import fixed_stack
from isotest.errors import BlockError
from isotest.estimate import Estimate
from isotest.statistics.residual import rank_residual
from tests.blocks.test_paths import PURE, VALID, inputs, stack_of


def value(estimate: Estimate | None) -> float:
    assert estimate is not None
    assert estimate.value is not None
    return estimate.value


@pytest.mark.parametrize("valid", [None, VALID], ids=["no mask", "masked"])
def test_against_their_definitions(valid: Tensor | None) -> None:
    network = fixed_stack(stack_of(PURE), inputs(), valid)
    sums = network.by_length().numpy()
    rows = [slice(0, 3), slice(0, 5)] if valid is not None else [slice(0, 5)] * 2
    parts = [[sums[k, b, rows[b]] for b in range(2)] for k in range(4)]
    whole: list[Any] = [sum(parts[k][b] for k in range(4)) for b in range(2)]
    for found in contributions(network):
        own = parts[found.length]
        shares = [(c * y).sum() / (y**2).sum() for c, y in zip(own, whole, strict=True)]
        sizes = [np.linalg.norm(c) / np.linalg.norm(y) for c, y in zip(own, whole, strict=True)]
        ranks = [np.linalg.norm(c - c.mean(0)) / np.linalg.norm(c) for c in own]
        for estimate, each in (
            (found.share, shares),
            (found.size, sizes),
            (found.residual, ranks),
        ):
            assert value(estimate) == pytest.approx(np.mean(each), rel=1e-9)
            # Of a mean, the jackknife is the standard error of the mean.
            assert estimate.se == pytest.approx(np.std(each, ddof=1) / 2**0.5, rel=1e-9)
            assert estimate.dropped is None
        assert found.path_residual is None


def test_shares_add_up_to_one() -> None:
    found = contributions(fixed_stack(stack_of(replace(PURE, layer_norm="post")), inputs()))
    assert sum(value(length.share) for length in found) == pytest.approx(1, abs=1e-10)


def test_residual_of_each_path() -> None:
    network = fixed_stack(stack_of(PURE), inputs())
    found = contributions(network, paths=30)
    for length, bases in enumerate(["all 1 paths", "all 9 paths", "all 27 paths", "all 27 paths"]):
        estimate = found[length].path_residual
        assert estimate is not None
        assert estimate.basis == bases
        each = [
            rank_residual(output)
            for _, some in evaluate(network, all_paths(3, 3, length))
            for output in some
        ]
        assert value(estimate) == pytest.approx(np.mean(each), rel=1e-9)


def test_drawn_paths() -> None:
    network = fixed_stack(stack_of(PURE), inputs())
    estimate = contributions(network, paths=8, seed=4)[2].path_residual
    assert estimate is not None
    assert estimate.basis == "8 of 27 paths, drawn with seed 6"
    drawn = sample_paths(3, 3, 8, length=2, seed=6)
    each = [rank_residual(out) for _, some in evaluate(network, drawn, batch=3) for out in some]
    assert value(estimate) == pytest.approx(np.mean(each), rel=1e-9)


def test_long_paths_collapse() -> None:
    """Dong et al. 2021: a path is a product of its attention maps, which average."""
    config = BlockConfig(width=32, heads=4, hidden=8, depth=8, mlp=False, layer_norm="none")
    network = fixed_stack(TransformerStack(config).double(), inputs(4, 16, 32))
    found = [value(length.path_residual) for length in contributions(network, paths=20)]
    assert found[0] > 0.9
    assert all(later < 0.1 * earlier for earlier, later in pairwise(found[:3]))
    assert max(found[3:]) < 1e-3


def test_a_causal_mask_keeps_residuals_up() -> None:
    config = BlockConfig(width=32, heads=4, hidden=8, depth=4, mlp=False, layer_norm="none")
    x = inputs(4, 16, 32)
    full, causal = (
        contributions(fixed_stack(TransformerStack(replace(config, causal=mask)).double(), x))
        for mask in (False, True)
    )
    for one, other in zip(full[1:], causal[1:], strict=True):
        assert value(other.residual) > 10 * value(one.residual)


@pytest.mark.parametrize("normalisation", ["layernorm", "rmsnorm"])
@pytest.mark.parametrize("place", ["post", "pre", "none"])
def test_with_a_norm_long_paths_become_multiples_of_one_row(place: Any, normalisation: Any) -> None:
    """Of rank one, but not equal rows: a norm's fixed 1/σ differ between positions.

    Attention maps leave equal rows equal, for each of their rows adds up to one; scales do not.
    """
    own = {"layer_norm": place, "normalisation": normalisation}
    config = BlockConfig(width=32, heads=4, hidden=8, depth=8, mlp=False, **own)
    network = fixed_stack(TransformerStack(config).double(), inputs(4, 16, 32))
    ((_, (output,)),) = evaluate(network, np.full((1, 8), 2))
    values = torch.linalg.svdvals(output)
    assert float((values[:, 1] / values[:, 0]).max()) < 1e-12
    found = residuals(output, network.valid)
    if place == "none":
        assert found.max() < 1e-12
    else:
        assert found.min() > 1e-5


def test_identical_tokens_have_no_residual() -> None:
    x = inputs(length=1).expand(2, 5, 12).contiguous()
    for found in contributions(fixed_stack(stack_of(PURE), x), paths=5):
        assert value(found.residual) < 1e-14
        assert value(found.path_residual) < 1e-14


def test_one_token_has_no_residual_to_speak_of() -> None:
    for found in contributions(fixed_stack(stack_of(PURE), inputs(length=1)), paths=5):
        assert found.residual.value is None
        assert found.residual.vacuous
        assert found.residual.undefined == "every sequence has one representation"
        assert found.path_residual is not None
        assert found.path_residual.vacuous
        assert np.isfinite(value(found.share))


def test_paths_that_are_zero() -> None:
    """Heads that write nothing: a reason, never a NaN."""
    stack: Any = stack_of(replace(PURE, bias=False))
    with torch.no_grad():
        for block in stack.blocks:
            block.attention.output.weight.zero_()
    found = contributions(fixed_stack(stack, inputs()), paths=3)
    assert [value(length.share) for length in found] == [1, 0, 0, 0]
    assert [value(length.size) for length in found] == [1, 0, 0, 0]
    assert found[2].residual == Estimate(
        None, undefined="the sum over paths of length 2 is zero", dropped=2
    )
    assert found[2].path_residual is not None
    assert found[2].path_residual.undefined == "every path of length 2 is zero"


def test_a_sequence_that_is_zero_is_left_out_and_counted() -> None:
    stack = stack_of(replace(PURE, bias=False))
    x = inputs(3)
    x[1] = 0
    found = contributions(fixed_stack(stack, x))
    assert {length.share.dropped for length in found} == {1}
    others = contributions(fixed_stack(stack, x[[0, 2]]))
    for length, other in zip(found, others, strict=True):
        assert value(length.residual) == pytest.approx(value(other.residual), rel=1e-12)
        assert length.share.se == pytest.approx(other.share.se, rel=1e-9)


def test_residuals_of_the_very_small() -> None:
    """A product of many maps is as small as 1e-200, the square of which float64 does not hold."""
    x = inputs()
    everything = torch.ones(2, 5, dtype=torch.bool)
    plain = residuals(x, everything)
    np.testing.assert_allclose(residuals(1e-200 * x, everything), plain, rtol=1e-12)
    np.testing.assert_allclose(
        residuals(torch.stack([x, 1e150 * x]), everything), [plain] * 2, rtol=1e-12
    )


def test_an_output_as_large_as_float64_holds() -> None:
    network = fixed_stack(stack_of(replace(PURE, bias=False)), inputs())
    plain, large = (
        contributions(network),
        contributions(replace(network, start=1e200 * network.start)),
    )
    for one, other in zip(plain, large, strict=True):
        assert value(other.share) == pytest.approx(value(one.share), rel=1e-9)
        assert value(other.size) == pytest.approx(value(one.size), rel=1e-9)


def test_a_negative_number_of_paths() -> None:
    with pytest.raises(BlockError, match="found -1"):
        contributions(fixed_stack(stack_of(PURE), inputs()), paths=-1)
