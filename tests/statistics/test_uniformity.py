"""How evenly directions cover the sphere: closed forms, a peer's formula, what has no direction."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.special import gammaln

from isotest.errors import MeasurementError
from isotest.statistics.layer import LayerStatistics
from isotest.statistics.uniformity import isotropic, uniformity

NAME = "uniformity"


def layer_of(x: torch.Tensor) -> LayerStatistics:
    layer = LayerStatistics([NAME], grouped=False)
    layer.update(x, torch.arange(len(x)))
    return layer


def test_two_opposite_directions_are_the_least_there_is() -> None:
    assert uniformity(torch.tensor([[[2.0, 0.0]], [[-7.0, 0.0]]])) == pytest.approx(-8, abs=1e-14)


def test_one_direction_is_the_most_there_is() -> None:
    lengths = torch.tensor([1.0, 3.0, 0.1, 7.0])[:, None, None]
    assert uniformity(lengths * torch.tensor([0.3, -0.1, 0.7])) == pytest.approx(0, abs=1e-14)


def test_a_collapse_is_worse_than_what_was() -> None:
    x = torch.randn(64, 1, 16, generator=torch.Generator().manual_seed(0))
    assert uniformity(x + 5) > uniformity(x) + 2


@pytest.mark.parametrize("count", [2, 5, 40])
def test_the_corners_of_a_simplex(count: int) -> None:
    """Cosines are all −1/(N − 1), so ‖u − v‖² = 2N/(N − 1)."""
    x = torch.eye(count, dtype=torch.float64)[:, None] - 1 / count
    assert uniformity(x) == pytest.approx(-4 * count / (count - 1), rel=1e-12)


@pytest.mark.parametrize("shape", [(40, 1, 12), (5, 8, 3), (30, 2, 70)])
def test_the_formula_of_wang_and_isola(shape: tuple[int, int, int]) -> None:
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(1)).double() + 0.2
    rows = torch.nn.functional.normalize(x.reshape(-1, shape[2]), dim=1)
    expected = torch.pdist(rows).square().mul(-2).exp().mean().log()
    assert uniformity(x) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("width", [2, 3, 10, 768, 200_000])
def test_what_isotropic_directions_give(width: int) -> None:
    """A direction's coordinate t has the density (1 − t²)^((D − 3)/2) Γ(D/2) / √π Γ((D − 1)/2)."""
    constant = gammaln(width / 2) - gammaln((width - 1) / 2) - math.log(math.pi) / 2

    def integrand(angle: float) -> float:  # t = sin(angle), so that the ends are smooth
        power = (width - 2) * math.log(math.cos(angle)) if width > 2 else 0.0
        return math.exp(constant + power + 4 * math.sin(angle) - 4)

    end = min(math.pi / 2 - 1e-12, 40 / math.sqrt(width))
    assert isotropic(width) == pytest.approx(math.log(quad(integrand, -end, end)[0]), abs=1e-7)


@pytest.mark.parametrize("width", [1, 2, 16])
def test_a_sample_of_isotropic_directions_agrees_with_it(width: int) -> None:
    x = torch.randn(1000, 1, width, generator=torch.Generator().manual_seed(width))
    estimate = layer_of(x).estimates()[NAME]
    assert estimate.isotropic == isotropic(width)
    assert estimate.value is not None
    assert estimate.se is not None
    assert estimate.value == pytest.approx(estimate.isotropic, abs=3 * estimate.se)
    assert estimate.se < 0.1


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e300])
def test_any_scale(scale: float) -> None:
    x = torch.randn(20, 2, 5, generator=torch.Generator().manual_seed(2)).double()
    assert uniformity(x * scale) == pytest.approx(uniformity(x), rel=1e-12)


def test_each_length_may_be_of_another_scale() -> None:
    x = torch.randn(20, 1, 5, generator=torch.Generator().manual_seed(3)).double()
    powers = torch.linspace(-300, 0, 20).double()[:, None, None]
    assert uniformity(x * 10**powers) == pytest.approx(uniformity(x), rel=1e-12)


def test_what_has_no_length_is_left_out() -> None:
    x = torch.randn(20, 1, 5, generator=torch.Generator().manual_seed(4))
    with_zeros = torch.cat([x, torch.zeros(3, 1, 5)])
    assert uniformity(with_zeros) == uniformity(x)
    layer = layer_of(with_zeros)
    assert layer.zero_length == 3
    basis = layer.estimates()[NAME].basis
    assert basis == "all 23 representations", "what weights decide is no condition"


@pytest.mark.parametrize("x", [torch.zeros(4, 2, 3), torch.ones(1, 1, 3), torch.eye(2)[:1, None]])
def test_without_a_pair_it_is_undefined(x: torch.Tensor) -> None:
    with pytest.raises(MeasurementError, match="there is no pair"):
        uniformity(x)


def test_where_a_block_holds_all_but_one_direction_there_is_no_error_bar() -> None:
    x = torch.zeros(3, 1, 2)
    x[0] = x[1] = 1.0
    estimate = layer_of(x).estimates()[NAME]
    assert estimate.value == pytest.approx(0, abs=1e-14)
    assert estimate.se is None


@pytest.mark.parametrize("shape", [(50, 1, 200_000), (1000, 1000, 32)])
def test_wide_and_many(shape: tuple[int, int, int]) -> None:
    layer = LayerStatistics([NAME], grouped=False)
    generator = torch.Generator().manual_seed(5)
    for unit in range(0, shape[0], 50):
        x = torch.randn(50, *shape[1:], generator=generator)
        layer.update(x, unit + torch.arange(50))
    estimate = layer.estimates()[NAME]
    assert estimate.value == pytest.approx(isotropic(shape[2]), abs=0.01)
    assert estimate.se is not None


def test_error_bars_are_as_wide_as_values_spread() -> None:
    rng = np.random.default_rng(6)
    found = []
    for _ in range(60):
        offsets = rng.normal(size=(64, 1, 8)) + np.eye(8)[0]
        x = torch.from_numpy(offsets + rng.normal(size=(64, 4, 8)))
        found.append(layer_of(x).estimates()[NAME])
    spread = np.std([each.value for each in found if each.value is not None], ddof=1)
    error = math.sqrt(np.mean([each.se**2 for each in found if each.se is not None]))
    # The spread of 60 values is itself known to a tenth.
    assert 0.75 * spread < error < 1.35 * spread
