"""A map applied again and again: trajectories, distances, and what has none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from isotest.blocks.tasks.circle import CircleNetwork, starting_pairs
from isotest.blocks.tasks.identity import VARIANTS
from isotest.blocks.tasks.recurrence import (
    measure_recurrence,
    pair_distances,
    roll_out,
)
from isotest.errors import BlockError, NonFiniteError

if TYPE_CHECKING:
    from isotest.blocks.tasks.identity import Variant


def drawn(count: int = 5) -> Tensor:
    return torch.randn(count, 2, 2, generator=torch.Generator().manual_seed(0)).double()


def naive(network: nn.Module, start: Tensor, steps: int) -> list[list[list[float]]]:
    """One pair by itself, step by step, in plain lists."""
    network = network.double()
    x = start
    found = [x.tolist()]
    for _ in range(steps):
        with torch.no_grad():
            x = network(x[None])[0]
        found.append(x.tolist())
    return found


@pytest.mark.parametrize("variant", VARIANTS)
def test_against_a_naive_loop(variant: Variant) -> None:
    network = CircleNetwork("bert", variant, seed=3)
    starts = starting_pairs(4)
    rolled = roll_out(network, starts, 12)
    for number, start in enumerate(starts):
        alone = torch.tensor(naive(network, start, 12), dtype=torch.float64)
        assert torch.allclose(rolled[:, number], alone, rtol=1e-9, atol=1e-12)


def test_the_network_stays_as_it_is() -> None:
    network = CircleNetwork("bert", "both").train()
    roll_out(network, starting_pairs(2), 2)
    assert network.training
    assert network.head.weight.dtype == torch.float32


@given(rate=st.floats(0.05, 1.2), steps=st.integers(0, 40))
def test_a_linear_map_has_the_distance_of_its_rate(rate: float, steps: int) -> None:
    starts = drawn()
    (step,) = measure_recurrence({0: lambda x: rate * x + 1}, starts, [steps])
    before = (starts[:, 0] - starts[:, 1]).norm(dim=-1).mean().item()
    # Up to the rounding of the points themselves, which grow to at most 40·1.2^40 ≈ 6e4.
    assert step.pair_distance[0] == pytest.approx(before * rate**steps, rel=1e-9, abs=1e-9)
    assert step.pair_distance_share[0] == pytest.approx(rate**steps, rel=1e-9, abs=1e-9)


def test_the_identity_keeps_every_distance() -> None:
    starts = drawn()
    rolled = roll_out(lambda x: x, starts, 300)
    assert torch.equal(pair_distances(rolled), pair_distances(starts).expand(301, -1))


def test_a_common_point_is_no_distance() -> None:
    found = measure_recurrence({0: lambda x: x * 0 + 7}, drawn(), [1, 300])
    assert [(step.pair_distance, step.pair_distance_share) for step in found] == [((0,), (0,))] * 2


def test_a_rotation_of_one_point_against_the_other() -> None:
    """Opposite points, of which one is turned by π/2 a step: 2, √2, 0, √2, 2."""
    starts = torch.tensor([[[1.0, 0.0], [-1.0, 0.0]]])

    def turned(x: Tensor) -> Tensor:
        first = torch.stack((-x[:, 0, 1], x[:, 0, 0]), -1)
        return torch.stack((first, x[:, 1]), 1)

    found = measure_recurrence({0: turned}, starts, range(5))
    distances = [step.pair_distance[0] for step in found]
    assert distances == pytest.approx([2, math.sqrt(2), 0, math.sqrt(2), 2])


def test_order_and_batch_do_not_matter() -> None:
    network = CircleNetwork("modern", "mlp", seed=1)
    starts = starting_pairs(7)
    whole = roll_out(network, starts, 20)
    backwards = roll_out(network, starts.flip(0), 20).flip(1)
    parts = torch.cat([roll_out(network, part, 20) for part in starts.split(2)], 1)
    assert torch.allclose(whole, backwards, rtol=1e-9, atol=1e-12)
    assert torch.allclose(whole, parts, rtol=1e-9, atol=1e-12)


def test_each_network_has_its_own_value_in_the_order_given() -> None:
    maps = {7: lambda x: x / 2, 3: lambda x: x * 2}
    found = measure_recurrence(maps, drawn(), [2, 0])
    assert [step.layer for step in found] == ["step.2", "step.0"]
    assert found[0].pair_distance_share == pytest.approx((0.25, 4))
    assert found[1].pair_distance_share == (1, 1)


def test_divergence_names_network_start_and_step() -> None:
    starts = drawn(3)
    starts[1] = 1e200

    def squared(x: Tensor) -> Tensor:
        return x * x

    with pytest.raises(NonFiniteError) as raised:
        measure_recurrence({5: squared}, starts, [0, 3], name="skip")
    message = str(raised.value)
    assert "skip, seed 5: the trajectories from starting pair 1 are inf at step 1" in message
    # Steps before it have values.
    assert measure_recurrence({5: squared}, starts, [0])[0].pair_distance[0] >= 0


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_starting_pair_that_is_not_finite(number: float) -> None:
    starts = drawn(3)
    starts[2, 1, 0] = number
    with pytest.raises(NonFiniteError, match=rf"starting pair 2 has a coordinate that is {number}"):
        roll_out(lambda x: x, starts, 1)


def test_a_map_that_yields_nan() -> None:
    def breaks(x: Tensor) -> Tensor:
        return torch.where(x > 0.5, math.nan, x * 2)

    starts = torch.full((1, 2, 2), 0.4)
    assert roll_out(breaks, starts, 1).isfinite().all()
    with pytest.raises(NonFiniteError, match="starting pair 0 are nan at step 2"):
        roll_out(breaks, starts, 3)


def test_a_distance_that_overflows() -> None:
    starts = torch.tensor([[[1e300, 0.0], [-1e300, 0.0]]], dtype=torch.float64)
    with pytest.raises(NonFiniteError, match="overflows"):
        measure_recurrence({0: lambda x: x * 1.5e8}, starts, [0, 1])


def test_points_that_coincide_have_no_share() -> None:
    with pytest.raises(BlockError, match="the same, so that there is no distance"):
        measure_recurrence({0: lambda x: x}, torch.ones(4, 2, 2), [0])


@pytest.mark.parametrize("steps", [[], [0, -1], [3, 3]], ids=str)
def test_steps_that_cannot_be(steps: list[int]) -> None:
    with pytest.raises(BlockError, match=r"expected different steps.*found"):
        measure_recurrence({0: lambda x: x}, drawn(), steps)


def test_nothing_to_measure() -> None:
    with pytest.raises(BlockError, match="no network of 'skip'"):
        measure_recurrence({}, drawn(), [0], name="skip")
    with pytest.raises(BlockError, match="at least one"):
        roll_out(lambda x: x, torch.zeros(0, 2, 2), 1)
    with pytest.raises(BlockError, match="at least 0 steps"):
        roll_out(lambda x: x, drawn(), -1)


def test_a_map_that_changes_the_shape() -> None:
    with pytest.raises(BlockError, match=r"made \(5, 2\) of \(5, 2, 2\)"):
        roll_out(lambda x: x[..., 0], drawn(), 1)
