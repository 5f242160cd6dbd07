"""The partition function along eigenvectors: closed forms, naive loops, the choices it leaves."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotest.errors import MeasurementError
from isotest.statistics.layer import LayerStatistics
from isotest.statistics.partition import partition_isotropy
from tests.statistics import naive, naive_neighbours
from tests.statistics.cases import SAMPLES

NAME = "partition_isotropy"


def layer_of(x: torch.Tensor) -> LayerStatistics:
    layer = LayerStatistics([NAME], grouped=False)
    layer.update(x, torch.arange(len(x)))
    return layer


@pytest.mark.parametrize("name", SAMPLES)
def test_loops_over_eigenvectors(name: str) -> None:
    sample = SAMPLES[name]
    layer = LayerStatistics([NAME], grouped=True)
    for sequence, unit in zip(sample.sequences, sample.units, strict=True):
        layer.update(torch.from_numpy(sequence)[None], torch.tensor([unit]))
    estimate = layer.estimates()[NAME]
    directions = naive_neighbours.eigenvectors(sample)
    value = naive_neighbours.partition_isotropy(sample, directions)
    if value is None:
        assert estimate.undefined is not None
        assert "below the range of float64" in estimate.undefined
        return
    # exp turns a rounding error of the length into a relative one.
    rounding = 1e-14 * max(naive.mean_norm(sample), 1)
    assert estimate.value == pytest.approx(value, rel=max(1e-10, rounding))
    without = [
        naive_neighbours.partition_isotropy(sample.without_block(block), directions)
        for block in sorted({unit % 64 for unit in sample.units})
    ]
    defined = [each for each in without if each is not None]
    assert len(defined) == len(without)
    error = naive.standard_error(value, defined, layer.block_representations)
    assert estimate.se == pytest.approx(error, rel=1e-7)


@pytest.mark.parametrize("length", [1e-3, 1.0, 20.0, 300.0])
@pytest.mark.parametrize("count", [1, 3, 50])
def test_equal_representations(count: int, length: float) -> None:
    """Z is N e^r and N e^−r along them and N across: the ratio is e^−2r, whatever N."""
    x = torch.tensor([0.6, 0.0, 0.8], dtype=torch.float64).expand(count, 1, 3) * length
    value = partition_isotropy(x)
    assert math.log(value) == pytest.approx(-2 * length, rel=1e-9)


def test_opposite_representations() -> None:
    """±r e₁ and ±s e₂: Z ÷ 2 is cosh r + 1 and cosh s + 1, and 2 in other directions."""
    x = torch.tensor([[3.0, 0, 0], [-3, 0, 0], [0, 2, 0], [0, -2, 0]]).double()[:, None]
    assert partition_isotropy(x[..., :2]) == pytest.approx((math.cosh(2) + 1) / (math.cosh(3) + 1))
    assert partition_isotropy(x) == pytest.approx(2 / (math.cosh(3) + 1))


@pytest.mark.parametrize("sign", [1, -1])
def test_the_sign_of_an_eigenvector_does_not_matter(sign: int) -> None:
    x = torch.tensor([[1.0], [2.0], [-0.5]]).double()[:, None] * sign
    plus, minus = (sum(math.exp(s * v) for v in (1, 2, -0.5)) for s in (1, -1))
    assert partition_isotropy(x) == pytest.approx(minus / plus, rel=1e-12)


def test_a_common_direction_is_worse() -> None:
    x = torch.randn(400, 1, 16, generator=torch.Generator().manual_seed(0)) * 0.5
    isotropic, drifting = (layer_of(each).estimates()[NAME] for each in (x, x + 0.5))
    assert isotropic.value is not None
    assert drifting.value is not None
    assert isotropic.isotropic == pytest.approx(isotropic.value, abs=0.1)
    assert drifting.value < 0.1 < isotropic.value
    assert drifting.isotropic is not None
    assert drifting.isotropic > 0.5


@pytest.mark.parametrize(("count", "width"), [(60, 20), (20, 60), (1, 5), (40, 40), (500, 1)])
def test_the_isotropic_value_is_of_the_same_length(count: int, width: int) -> None:
    x = torch.randn(count, 1, width, generator=torch.Generator().manual_seed(1)).double()
    for scale in (1e-3, 0.2, 1.0):
        estimate = layer_of(x * scale).estimates()[NAME]
        assert estimate.value is not None
        assert estimate.isotropic is not None
        assert math.log(estimate.isotropic) == pytest.approx(
            math.log(estimate.value), rel=0.6, abs=0.3
        )


@pytest.mark.parametrize("scale", [0.1, 3.0])
def test_fewer_than_dimensions(scale: float) -> None:
    """Those of eigenvalue 0, too: the right singular vectors are all of them."""
    # Drawn so that, scaled by 3, nowhere is Z less than where nothing lies.
    x = torch.randn(4, 1, 7, generator=torch.Generator().manual_seed(5)).double() * scale
    few = math.log(partition_isotropy(x))
    vectors = torch.linalg.svd(x[:, 0])[2]
    logs = [float((s * x[:, 0] @ v).logsumexp(0)) for v in vectors for s in (1, -1)]
    assert few == pytest.approx(min(logs) - max(logs), rel=1e-9)


def test_all_zero_is_undefined() -> None:
    with pytest.raises(MeasurementError, match="zero length"):
        partition_isotropy(torch.zeros(4, 2, 3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_too_long_is_undefined_and_not_zero(dtype: torch.dtype) -> None:
    """Zero cannot get any worse, so a check of it would be green whatever happens."""
    largest = torch.finfo(dtype).max
    for length in (1e3, 1e30, largest):
        x = torch.full((4, 1, 3), length, dtype=dtype)
        x[1] *= 0.5
        estimate = layer_of(x).estimates()[NAME]
        assert estimate.value is None
        assert estimate.undefined is not None
        assert "too long" in estimate.undefined
        assert not estimate.vacuous


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-30, 1e-9])
def test_what_is_short_looks_isotropic(scale: float) -> None:
    x = torch.randn(20, 1, 5, generator=torch.Generator().manual_seed(3)).double() + 5
    assert partition_isotropy(x * scale) == pytest.approx(1, abs=1e-7)


def test_a_single_block_has_no_error_bar() -> None:
    layer = LayerStatistics([NAME], grouped=True)
    layer.update(torch.rand(5, 2, 3), torch.zeros(5, dtype=torch.int64))
    estimate = layer.estimates()[NAME]
    assert estimate.value is not None
    assert estimate.se is None


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 30), st.integers(1, 4), st.integers(1, 9))
def test_batches_shards_and_turns_change_nothing(
    seed: int, batch: int, shards: int, width: int
) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(30, 2, width)) + 1) * rng.uniform(0.1, 2)
    turn = np.linalg.qr(rng.normal(size=(width, width)))[0]
    turned = torch.from_numpy(x @ turn)
    layers = [LayerStatistics([NAME], grouped=False) for _ in range(shards)]
    order = rng.permutation(30)
    for number, start in enumerate(range(0, 30, batch)):
        chosen = torch.from_numpy(order[start : start + batch])
        layers[number % shards].update(turned[chosen], chosen)
    for other in layers[1:]:
        layers[0].merge(other)
    one, cut = (layer.estimates()[NAME] for layer in (layer_of(torch.from_numpy(x)), layers[0]))
    assert cut.value == pytest.approx(one.value, rel=1e-9)
    assert cut.blocks == pytest.approx(one.blocks, rel=1e-7)


@pytest.mark.parametrize("shape", [(50, 1, 200_000), (1000, 1000, 32)])
def test_wide_and_many(shape: tuple[int, int, int]) -> None:
    layer = LayerStatistics([NAME], grouped=False)
    generator = torch.Generator().manual_seed(5)
    for unit in range(0, shape[0], 50):
        x = torch.randn(50, *shape[1:], generator=generator) / math.sqrt(shape[2])
        layer.update(x, unit + torch.arange(50))
    estimate = layer.estimates()[NAME]
    assert estimate.value == pytest.approx(estimate.isotropic, rel=0.1)
    assert estimate.se is not None


def test_error_bars_are_as_wide_as_values_spread() -> None:
    rng = np.random.default_rng(6)
    found = []
    for _ in range(60):
        offsets = rng.normal(size=(64, 1, 8)) + np.eye(8)[0]
        x = torch.from_numpy(offsets + rng.normal(size=(64, 4, 8))) * 0.5
        found.append(layer_of(x).estimates()[NAME])
    spread = np.std([each.value for each in found if each.value is not None], ddof=1)
    error = math.sqrt(np.mean([each.se**2 for each in found if each.se is not None]))
    assert 0.75 * spread < error < 1.35 * spread
