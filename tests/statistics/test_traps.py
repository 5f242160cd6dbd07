"""Inputs on which others went wrong, with the right values."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from isotest.errors import IsotestError, MeasurementError, NonFiniteError
from isotest.estimate import Estimate
from isotest.statistics.batch import first_nonfinite
from isotest.statistics.cosine import anisotropy, anisotropy_all, dimension_share, intra_similarity
from isotest.statistics.layer import LayerStatistics
from isotest.statistics.massive import massive, massive_ratio
from isotest.statistics.norms import drift_norm, drift_share, mean_norm, norm_std
from isotest.statistics.registry import METRICS, all_metrics
from isotest.statistics.residual import (
    rank_residual,
    rank_residual_composite,
    rank_residual_std,
)

NAMES = all_metrics()


def _estimates(x: Tensor, mask: Tensor | None = None) -> dict[str, Estimate]:
    layer = LayerStatistics(NAMES, grouped=False)
    layer.update(x, torch.arange(len(x)), mask)
    return layer.estimates()


def test_pads_are_not_averaged_in() -> None:
    x = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 2.0]]])
    mask = torch.tensor([[True, True, False, False]])
    assert anisotropy_all(x, mask=mask) == 1.0
    assert drift_norm(x, mask=mask) == 1.0  # the mean is (1, 0)
    assert intra_similarity(x, mask=mask) == 1.0


def test_half_precision_norms_do_not_overflow() -> None:
    x = torch.full((10, 1, 768), 300.0, dtype=torch.float16)
    assert anisotropy(x) == pytest.approx(1.0, rel=1e-12)
    assert mean_norm(x) == pytest.approx(300 * math.sqrt(768), rel=1e-12)


def test_one_rogue_dimension_is_named_as_such() -> None:
    x = torch.randn(1000, 1, 64, generator=torch.Generator().manual_seed(0))
    x[:, :, 5] += 20.0
    # Each row is (20 + z, 63 others): the cosine is about 400 / 464.
    assert anisotropy(x) == pytest.approx(400 / 464, abs=0.01)
    assert dimension_share(x) == pytest.approx(1.0, abs=0.01)
    standardised = (x - x.mean(dim=0)) / x.std(dim=0)
    assert anisotropy(standardised) == pytest.approx(0.0, abs=0.005)


def test_collapse_within_sequences_is_seen() -> None:
    generator = torch.Generator().manual_seed(0)
    constants = torch.randn(4, 1, 256, generator=generator).expand(4, 10, 256)
    assert intra_similarity(constants) == pytest.approx(1.0, rel=1e-12)
    assert rank_residual(constants) == 0.0
    assert rank_residual_composite(constants) == 0.0
    assert anisotropy(constants) == pytest.approx(0.0, abs=0.1)


def test_zeros_are_named_and_never_nan() -> None:
    estimates = _estimates(torch.zeros(64, 1, 32))
    for name in ("anisotropy", "anisotropy_all", "intra_similarity", "dimension_share"):
        assert estimates[name] == Estimate(
            None, undefined="all 64 representations have zero length"
        )
    assert estimates["drift_share"].undefined == "all 64 representations have zero length"
    assert not estimates["drift_share"].vacuous
    assert estimates["mean_norm"].value == 0.0
    assert estimates["massive"].value == 0.0
    assert estimates["massive_ratio"].undefined is not None
    assert estimates["duplicate_share"].value == pytest.approx(63 / 64)


def test_zero_sequences_have_no_residual() -> None:
    estimates = _estimates(torch.zeros(3, 4, 8))
    reason = "all representations of the 3 sequences have zero length"
    assert estimates["rank_residual"] == Estimate(None, undefined=reason)


def test_the_spread_of_residuals_is_over_sequences_and_never_over_blocks() -> None:
    """Two sequences of residual 0.6 and 0.8, from (4, ±3) and (3, ±4); ÷ N: half the difference."""
    x = torch.tensor([[[4.0, 3.0], [4.0, -3.0]], [[3.0, 4.0], [3.0, -4.0]]])
    assert rank_residual(x) == pytest.approx(0.7, rel=1e-12)
    assert rank_residual_std(x) == pytest.approx(0.1, rel=1e-12)
    # Of one block, as of two; a padded third position and a sequence of one change nothing.
    assert rank_residual_std(x, units=torch.tensor([0, 64])) == pytest.approx(0.1, rel=1e-12)
    padded = torch.cat([x, torch.full((2, 1, 2), 9.0)], dim=1)
    lone = torch.cat([padded, torch.ones(1, 3, 2)])
    mask = torch.tensor([[True, True, False]] * 2 + [[True, False, False]])
    assert rank_residual_std(lone, mask=mask) == pytest.approx(0.1, rel=1e-12)


def test_the_spread_of_equal_residuals_is_zero() -> None:
    one = torch.randn(1, 6, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    # As norm_std, the spread of one is 0, and has no error bar.
    alone = _estimates(one)["rank_residual_std"]
    assert (alone.value, alone.se) == (0.0, None)
    # The same sequence, longer or shorter, turned or not, has the same residual.
    same = torch.cat([one, 1e6 * one, -one, one.flip(1), 1e-6 * one])
    assert rank_residual_std(same) == pytest.approx(0.0, abs=1e-15)
    # Far from zero, ever so little apart: residuals of about 1e-7, half of them twice the other.
    far = 1e7 + torch.cat([one, 2 * one])
    assert rank_residual_std(far) == pytest.approx(rank_residual(far) / 3, rel=1e-6)
    assert _estimates(torch.ones(4, 1, 8))["rank_residual_std"].vacuous


def test_spread_of_lengths_far_from_zero() -> None:
    """Lengths of 1e4 ± 0.05 in float32: a one-pass variance gives 54.8."""
    lengths = torch.tensor([1e4 - 0.05, 1e4 + 0.05]).repeat(500)
    stored = float((lengths.double() - 1e4).abs().mean())  # 0.05 as float32 can have it
    x = lengths[:, None, None] * torch.tensor([1.0, 0.0])
    assert stored == pytest.approx(0.05, rel=0.05)
    assert norm_std(x) == pytest.approx(stored, rel=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_huge_entry_does_not_overflow(dtype: torch.dtype) -> None:
    x = torch.tensor([[[1e20, 1.0, 1.0]], [[1e20, 1.0, -1.0]]], dtype=dtype)
    assert anisotropy(x) == pytest.approx(1.0, rel=1e-12)
    assert mean_norm(x) == pytest.approx(1e20, rel=1e-6)
    assert massive_ratio(x) == pytest.approx(1e20, rel=1e-6)
    assert drift_share(x) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(
    ("scale", "dtype"),
    [
        (1e-9, torch.float32),
        (1e-40, torch.float32),
        (1e200, torch.float64),
        (1e-200, torch.float64),
        (1e-310, torch.float64),
    ],
)
def test_scale_invariance_at_the_ends_of_the_range(scale: float, dtype: torch.dtype) -> None:
    # Small integers times a power of two are exact, subnormals included.
    power = 2.0 ** round(math.log2(scale))
    plain = torch.randint(-8, 9, (6, 3, 5), generator=torch.Generator().manual_seed(0)).double()
    plain[:, :, 0] += 20.0
    expected, scaled = _estimates(plain), _estimates((plain * power).to(dtype))
    for name in NAMES:
        if name == "partition_isotropy":
            continue  # exponentials of lengths have a scale, by definition
        if "attention" in METRICS[name].accumulator:
            assert scaled[name].vacuous  # of scores, which there are none of here
            continue
        value, reference = scaled[name].value, expected[name].value
        assert value is not None
        assert reference is not None
        if name in {"mean_norm", "norm_std", "drift_norm", "massive"}:
            value /= power
        assert value == pytest.approx(reference, rel=1e-10), name


def test_tiny_rows_beside_huge_ones_keep_their_direction() -> None:
    x = torch.tensor([[[1e200, 0.0]], [[1e-200, 1e-200]], [[0.0, 0.0]]], dtype=torch.float64)
    assert anisotropy(x) == pytest.approx(math.sqrt(0.5), rel=1e-12)
    assert mean_norm(x) == pytest.approx(1e200 / 3, rel=1e-12)
    layer = LayerStatistics(["anisotropy"], grouped=False)
    layer.update(x, torch.arange(3))
    assert (layer.representations, layer.zero_length) == (3, 1)


def test_lengths_beyond_float64_are_no_infinity() -> None:
    x = torch.full((2, 1, 4), 1.7e308, dtype=torch.float64)
    estimates = _estimates(x)
    assert estimates["mean_norm"].undefined == "the value is beyond the range of float64"
    assert estimates["anisotropy"].value == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("width", [2, 1 << 14])
def test_what_is_not_finite_is_refused_and_counted(
    dtype: torch.dtype, bad: float, width: int
) -> None:
    x = torch.ones(2, 1, width, dtype=dtype)
    x[1, 0, 1] = bad
    layer = LayerStatistics(NAMES, grouped=False)
    kind = "NaN" if math.isnan(bad) else "Inf"
    found = (
        f"1 {kind} among {2 * width} entries, the first in sequence 1 of the batch, position 0, "
        f"dimension 1"
    )
    assert first_nonfinite(x) == found
    with pytest.raises(NonFiniteError, match=f"1 {kind} among"):
        layer.update(x, torch.arange(2))


@pytest.mark.parametrize("width", [3, 1 << 14])
def test_what_is_masked_may_be_anything(width: int) -> None:
    x = torch.randn(4, 1, width, generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[True], [False], [True], [True]])
    expected = LayerStatistics(NAMES, grouped=False)
    expected.update(x[[0, 2, 3]], torch.tensor([0, 2, 3]))
    x[1] = math.nan
    assert first_nonfinite(x, mask) is None
    layer = LayerStatistics(NAMES, grouped=False)
    layer.update(x, torch.arange(4), mask)
    assert layer.estimates() == expected.estimates()
    assert layer.sequences == 3


def test_isotropy_has_nothing_to_share_out() -> None:
    x = torch.eye(4)[:, None]
    estimate = _estimates(x)["dimension_share"]
    assert estimate.value is None
    assert estimate.vacuous
    assert estimate.undefined == "|anisotropy| is below 0.01: there is nothing to share out"


def test_one_unit_has_no_pair_between_units() -> None:
    layer = LayerStatistics(["anisotropy", "intra_similarity"], grouped=True)
    layer.update(torch.ones(2, 3, 4), torch.tensor([5, 5]))
    estimates = layer.estimates()
    reason = "all 6 representations with a direction are of one independent unit"
    assert estimates["anisotropy"] == Estimate(None, undefined=reason)
    assert estimates["intra_similarity"].value == pytest.approx(1.0)
    assert estimates["intra_similarity"].se is None


def test_massive_is_over_everything_and_its_ratio_within_a_sequence() -> None:
    x = torch.ones(3, 4, 5)
    x[0] *= 100.0
    x[1, 2, 3] = -50.0
    assert massive(x) == 100.0
    assert massive_ratio(x) == 50.0  # 100 is the median of its own sequence


def test_a_median_of_zero_is_no_division() -> None:
    x = torch.zeros(2, 1, 8)
    x[:, :, :3] = 1.0
    assert _estimates(x)["massive_ratio"] == Estimate(
        None,
        undefined="at least one sequence has a median |x| of zero: most of its entries are zero",
    )


def test_malformed_input_is_refused() -> None:
    layer = LayerStatistics(["anisotropy"], grouped=False)
    with pytest.raises(MeasurementError, match="shape \\(2, 3\\)"):
        layer.update(torch.ones(2, 3), torch.arange(2))
    with pytest.raises(MeasurementError, match="int64"):
        layer.update(torch.ones(2, 3, 4, dtype=torch.int64), torch.arange(2))
    with pytest.raises(MeasurementError, match="one unit number"):
        layer.update(torch.ones(2, 3, 4), torch.arange(3))
    with pytest.raises(MeasurementError, match="boolean mask"):
        layer.update(torch.ones(2, 3, 4), torch.arange(2), torch.ones(2, 4, dtype=torch.bool))
    layer.update(torch.ones(2, 3, 4), torch.arange(2))
    with pytest.raises(MeasurementError, match="width 4, found 5"):
        layer.update(torch.ones(2, 3, 5), torch.arange(2))


def test_nothing_measured_is_an_error() -> None:
    layer = LayerStatistics(["anisotropy"], grouped=False)
    layer.update(torch.ones(2, 3, 4), torch.arange(2), torch.zeros(2, 3, dtype=torch.bool))
    with pytest.raises(MeasurementError, match="found none"):
        layer.estimates()


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(IsotestError, match="did you mean 'anisotropy'"):
        LayerStatistics(["anisotropi"], grouped=False)


def test_an_undefined_function_value_says_why() -> None:
    with pytest.raises(MeasurementError, match="every sequence has one representation"):
        intra_similarity(torch.ones(3, 1, 2))
