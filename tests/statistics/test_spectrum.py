"""Metrics of eigenvalues: closed forms, other implementations, degenerate data, error bars."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

import numpy as np
import pytest
import scipy.linalg
import torch

from isotest.statistics import isoscore
from isotest.statistics.covariance import NARROW
from isotest.statistics.kept import CAPACITY
from isotest.statistics.layer import LayerStatistics, value_of
from isotest.statistics.registry import METRICS
from isotest.statistics.spectrum import Spectrum
from tests.statistics import naive
from tests.statistics.naive_spectrum import STATISTICS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from isotest.estimate import Estimate

NAMES = tuple(name for name, metric in METRICS.items() if metric.covariance)
SHAPES = {
    "narrow": (30, 4, 12),
    "narrow, fewer than dimensions": (12, 2, 40),
    "kept": (40, 5, NARROW + 6),
    "kept, fewer than dimensions": (20, 2, 90),
    "lone": (30, 1, 80),
}


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def clustered(
    count: int, length: int, width: int, *, seed: int = 0, decay: float = 0.5
) -> torch.Tensor:
    """(count, length, width) float64 sequences around offsets of their own, uneven directions."""
    generator = torch.Generator().manual_seed(seed)
    shared = torch.randn(count, 1, width, generator=generator, dtype=torch.float64)
    own = torch.randn(count, length, width, generator=generator, dtype=torch.float64)
    return (0.5 * shared + own) * torch.arange(1, width + 1) ** -decay + 0.3


def estimates(x: torch.Tensor, units: torch.Tensor | None = None) -> dict[str, Estimate]:
    layer = LayerStatistics(NAMES, grouped=units is not None)
    layer.update(x, torch.arange(len(x)) if units is None else units)
    return layer.estimates()


def rows(x: torch.Tensor) -> NDArray[np.float64]:
    return x.reshape(-1, x.shape[2]).double().numpy()


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_values_are_those_of_a_decomposition_of_the_rows(shape: tuple[int, int, int]) -> None:
    x = clustered(*shape)
    found = estimates(x)
    for name, reference in STATISTICS.items():
        assert found[name].value == pytest.approx(reference(rows(x)), rel=1e-9), name


@pytest.mark.parametrize("width", [8, 70])
def test_eigenvalues_are_those_of_scipy(width: int) -> None:
    x = clustered(100, 1, width)
    values = scipy.linalg.svdvals(rows(x) - rows(x).mean(axis=0)) ** 2
    assert value_of("nesum", x) == pytest.approx(values.sum() / values[0], rel=1e-10)
    probabilities = scipy.linalg.svdvals(rows(x))
    probabilities /= probabilities.sum()
    rank = math.exp(-(probabilities * np.log(probabilities)).sum())
    assert value_of("effective_rank_uncentered", x) == pytest.approx(rank, rel=1e-10)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_isoscore_is_that_of_its_authors(shape: tuple[int, int, int]) -> None:
    peer = pytest.importorskip("IsoScore.IsoScore")
    x = clustered(*shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        score = float(peer.IsoScore(rows(x)))
    assert value_of("isoscore", x) == pytest.approx(score, abs=2e-6)  # its roots are in float32


@pytest.mark.parametrize("zeta", [0.0, 0.1, 0.5, 1.0])
def test_isoscore_star_is_that_of_its_authors_at_any_intensity(zeta: float) -> None:
    peer = pytest.importorskip("IsoScore.IsoScore")
    x = rows(clustered(40, 2, 10))
    covariance = np.cov(x.T)
    values = np.linalg.eigvalsh(covariance)[None, ::-1].astype(np.float64)
    spectrum = Spectrum(values, (values**2).sum(axis=1), np.array([80.0]), 10, "")
    reference = torch.eye(10, dtype=torch.float64) * float(np.trace(covariance)) / 10
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        score = float(peer.IsoScore_star(x, reference, zeta))
    found = isoscore.shrunk_score(spectrum, np.array([zeta]))[0]
    assert found == pytest.approx(score, abs=2e-6)


@pytest.mark.parametrize(("times", "score"), [(1, 0.49), (2, 0.65), (10, 0.91)])
@pytest.mark.parametrize("width", [NARROW, 128])
def test_isoscore_of_isotropic_data_is_far_below_one(times: int, score: float, width: int) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(times * width, 1, width, generator=generator)
    found = estimates(x)
    assert found["isoscore"].value == pytest.approx(score, abs=0.02)
    assert found["isoscore"].isotropic == pytest.approx(score, abs=0.02)
    star = found["isoscore_star"].value
    assert star is not None
    assert star > 0.97


def test_equal_eigenvalues_are_counted() -> None:
    """± the first k axes: k equal eigenvalues, in either of the two ways of measuring."""
    for width in (16, 100):
        axes = torch.eye(width)[:5]
        found = estimates(torch.stack([axes, -axes]))
        for name in ("effective_rank", "participation_ratio", "nesum"):
            assert found[name].value == pytest.approx(5, rel=1e-12)
        assert found["spectral_anisotropy"].value == pytest.approx(1 / 5, rel=1e-12)
        assert found["isoscore"].value == pytest.approx(4 / (width - 1), rel=1e-12)
        assert found["alpha_req"].value == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_alpha_is_the_exponent_of_a_power_law(exponent: float) -> None:
    for width in (8, 60, 200):
        axes = torch.diag(torch.arange(1, width + 1).double() ** (-exponent / 2))
        found = estimates(torch.stack([axes, -axes]))["alpha_req"]
        assert found.value == pytest.approx(exponent, rel=1e-9)
        assert found.basis is not None
        last = min(50, max(3, 3 * width // 4))
        assert found.basis.endswith(f"; ranks {1 + last // 5} to {last}")


def test_a_common_direction_is_seen_without_centring_only() -> None:
    x = clustered(64, 4, 20)
    there, moved = estimates(x), estimates(x + 100.0)
    assert moved["effective_rank"].value == pytest.approx(there["effective_rank"].value, rel=1e-9)
    assert moved["effective_rank_uncentered"].value is not None
    assert moved["effective_rank_uncentered"].value < 2.5


@pytest.mark.parametrize("width", [8, 100])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_plus_and_minus_one_direction_is_rank_one(width: int, dtype: torch.dtype) -> None:
    direction = torch.randn(width, generator=torch.Generator().manual_seed(0))
    for axis in (torch.eye(768)[0], direction):
        x = torch.stack([axis, -axis] * 10)[:, None].to(dtype)
        found = estimates(x)
        for name in ("effective_rank", "effective_rank_uncentered", "participation_ratio"):
            assert found[name].value == pytest.approx(1, abs=1e-12), name
        assert found["spectral_anisotropy"].value == 1
        assert found["isoscore"].value == pytest.approx(0, abs=1e-12)
        assert found["alpha_req"].undefined == (
            "a slope needs 3 eigenvalues above rounding, there are 1"
        )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("width", [32, 300])
def test_rounding_of_the_storage_is_no_rank(dtype: torch.dtype, width: int) -> None:
    """Multiples of one direction, each rounded to the dtype: noise in all dimensions."""
    generator = torch.Generator().manual_seed(0)
    direction = torch.randn(width, generator=generator)
    factors = torch.randn(400, 1, 1, generator=generator)
    x = (factors * direction).to(dtype)
    assert np.linalg.matrix_rank(rows(x), tol=1e-10) > 1
    assert value_of("effective_rank", x) == pytest.approx(1, abs=1e-9)


def test_a_massive_dimension_in_half_precision_hides_no_other() -> None:
    x = clustered(100, 4, 100, decay=0.0)
    x[:, :, 3] = 3000.0
    half = x.bfloat16()
    expected = STATISTICS["effective_rank"](rows(half))
    assert expected > 70
    assert value_of("effective_rank", half) == pytest.approx(expected, rel=1e-9)


def test_a_small_spread_far_from_the_origin_keeps_its_digits() -> None:
    """y = 1e4 ± 0.05 in float32, narrow and kept."""
    generator = torch.Generator().manual_seed(0)
    for width in (6, 80):
        x = 1e4 + 0.05 * torch.randn(300, 1, width, generator=generator)
        expected = STATISTICS["participation_ratio"](rows(x - 1e4))
        assert value_of("participation_ratio", x) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("scale", "dtype"),
    [
        (2.0**66, torch.float32),
        (2.0**-130, torch.float32),
        (2.0**700, torch.float64),
        (2.0**-996, torch.float64),
    ],
)
@pytest.mark.parametrize("width", [8, 70])
def test_scale_changes_nothing(scale: float, dtype: torch.dtype, width: int) -> None:
    x = torch.randint(-8, 9, (40, 2, width), generator=torch.Generator().manual_seed(0)).double()
    plain, scaled = estimates(x), estimates((x * scale).to(dtype))
    for name in NAMES:
        assert scaled[name].value == pytest.approx(plain[name].value, rel=1e-12), name
        assert scaled[name].se == pytest.approx(plain[name].se, rel=1e-9), name


@pytest.mark.parametrize("width", [3, 80])
def test_what_has_no_spread_is_undefined(width: int) -> None:
    ones = estimates(torch.full((6, 2, width), 0.1))
    for name in set(NAMES) - {"effective_rank_uncentered", "alpha_req"}:
        assert ones[name].undefined == (
            "all 12 representations are the same, up to the rounding of their dtype"
        ), name
        assert not ones[name].vacuous
    assert ones["effective_rank_uncentered"].value == pytest.approx(1, abs=1e-12)
    assert ones["alpha_req"].undefined is not None
    zeros = estimates(torch.zeros(64, 1, width))
    assert zeros["effective_rank_uncentered"].undefined == (
        "all 64 representations have zero length"
    )
    lone = estimates(torch.ones(1, 1, width))
    assert lone["nesum"].undefined == "there is one representation: nothing varies"
    assert lone["effective_rank_uncentered"].value == 1


def test_width_one() -> None:
    found = estimates(clustered(20, 2, 1))
    for name in set(NAMES) - {"isoscore", "isoscore_star", "alpha_req"}:
        assert found[name].value == pytest.approx(1, abs=1e-12), name
        assert found[name].isotropic == pytest.approx(1, abs=1e-12), name
    for name in ("isoscore", "isoscore_star", "alpha_req"):
        assert found[name].vacuous, name


@pytest.mark.parametrize("width", [10, 90])
def test_copies_weigh_as_often_as_they_occur(width: int) -> None:
    x = clustered(16, 2, width)
    once, twice = estimates(x), estimates(x.repeat(1, 2, 1))
    for name in set(NAMES) - {"isoscore_star"}:  # which is told that there are more of them
        assert twice[name].value == pytest.approx(once[name].value, rel=1e-9), name


def test_two_blocks_of_which_one_is_constant() -> None:
    """Without the other nothing is left: a value and no error bar."""
    for width in (5, 90):
        x = clustered(2, 4, width)
        x[1] = x[1, :1]
        found = estimates(x)
        for name in ("effective_rank", "participation_ratio", "nesum"):
            assert found[name].value is not None
            assert found[name].se is None


def test_fifty_maps_of_two_hundred_thousand() -> None:
    x = torch.randn(50, 1, 200_000, generator=torch.Generator().manual_seed(0))
    found = estimates(x)
    # Nearly orthogonal and of nearly one length: 49 directions after centring.
    assert found["effective_rank"].value == pytest.approx(49, abs=0.01)
    assert found["effective_rank"].isotropic == pytest.approx(49, abs=0.01)
    assert found["participation_ratio"].value == pytest.approx(49, abs=0.05)
    assert found["effective_rank"].basis == "all 50 representations"


def test_a_hundred_thousand_narrow_ones_are_all_measured() -> None:
    generator = torch.Generator().manual_seed(0)
    scale = torch.arange(1, 9) ** -0.5
    layer = LayerStatistics(NAMES, grouped=False)
    parts = [torch.randn(20_000, 1, 8, generator=generator) * scale for _ in range(5)]
    for number, part in enumerate(parts):
        layer.update(part, torch.arange(len(part)) + 20_000 * number)
    found = layer.estimates()["participation_ratio"]
    expected = STATISTICS["participation_ratio"](rows(torch.cat(parts)))
    assert found.value == pytest.approx(expected, rel=1e-10)
    assert found.basis == "covariance of all 100000 representations"


def test_narrow_layers_of_few_groups_have_covariances_however_many_they_are() -> None:
    """What is kept cannot be thinned here; the covariances are of everything all the same."""
    x = clustered(CAPACITY + 100, 1, 4)
    layer = LayerStatistics([*NAMES, "centered_anisotropy"], grouped=True)
    layer.update(x, torch.arange(len(x)) % 7)
    found = layer.estimates()
    assert found["centered_anisotropy"].undefined is not None
    expected = STATISTICS["effective_rank"](rows(x))
    assert found["effective_rank"].value == pytest.approx(expected, rel=1e-10)
    assert found["isoscore"].value is not None


# Without a block: the largest share of its standard error that a metric's may be away from that of
# decomposing again for each block, on sequences around offsets of their own.
EXACT = {"participation_ratio": 1e-8, "isoscore": 1e-8, "isoscore_star": 1e-8}
NEAR = {
    "effective_rank": 0.3,
    "effective_rank_uncentered": 0.3,
    "nesum": 0.02,
    "spectral_anisotropy": 0.02,
    "alpha_req": 0.1,
}


@pytest.mark.parametrize("shape", [(40, 5, 70), (66, 3, 150), (66, 2, 150)])
def test_error_bars_are_near_those_of_decomposing_again(shape: tuple[int, int, int]) -> None:
    x = clustered(*shape)
    found = estimates(x)
    blocks = torch.arange(len(x)) % 64
    for name, tolerance in (EXACT | NEAR).items():
        reference = STATISTICS[name]
        without = [reference(rows(x[blocks != block])) for block in blocks.unique()]
        sizes = [int((blocks == block).sum()) for block in blocks.unique()]
        error = naive.standard_error(reference(rows(x)), without, sizes)
        assert found[name].se == pytest.approx(error, rel=tolerance), name


@pytest.mark.parametrize("shape", [(40, 5, 12), (12, 2, 40), (50, 1, 80)])
def test_error_bars_of_few_eigenvalues_are_exact(shape: tuple[int, int, int]) -> None:
    x = clustered(*shape)
    found = estimates(x)
    blocks = torch.arange(len(x)) % 64
    for name in set(NAMES) - {"alpha_req"}:  # whose window is that of everything
        reference = STATISTICS[name]
        without = [reference(rows(x[blocks != block])) for block in blocks.unique()]
        sizes = [int((blocks == block).sum()) for block in blocks.unique()]
        error = naive.standard_error(reference(rows(x)), without, sizes)
        assert found[name].se == pytest.approx(error, rel=1e-7), name
