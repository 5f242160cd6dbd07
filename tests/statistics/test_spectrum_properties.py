"""What holds for the spectrum of any representations.

Lengths over many decades leave the smallest eigenvalues few digits, and one at the edge of rounding
is a zero in one order of summation and none in another. So the values are compared to 1e-5.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotest.statistics.layer import LayerStatistics
from isotest.statistics.registry import METRICS
from tests.statistics.test_properties import Drawn, drawn

if TYPE_CHECKING:
    from isotest.estimate import Estimate

NAMES = tuple(name for name, metric in METRICS.items() if metric.covariance)


def widened(data: Drawn, width: int) -> Drawn:
    """The same in more dimensions, as a rotation: too wide for a covariance, and kept instead."""
    generator = np.random.default_rng(0)
    onto = np.linalg.qr(generator.normal(size=(width, data.x.shape[2])))[0].T
    return Drawn(data.x @ torch.from_numpy(onto.copy()), data.units, data.mask)


def measured(data: Drawn, parts: int = 1, order: list[int] | None = None) -> dict[str, Estimate]:
    layers = [LayerStatistics(NAMES, grouped=True) for _ in range(parts)]
    for number, index in enumerate(order or range(len(data.x))):
        one = data.part(slice(index, index + 1))
        layers[number % parts].update(one.x, one.units, one.mask)
    for layer in layers[1:]:
        layers[0].merge(layer)
    return layers[0].estimates()


def same(
    one: dict[str, Estimate], other: dict[str, Estimate], *, but: tuple[str, ...] = ()
) -> None:
    for name in NAMES:
        if name in but or name == "alpha_req":  # logs of the smallest eigenvalues
            continue
        assert one[name].undefined == other[name].undefined, name
        if one[name].value is not None:
            assert one[name].value == pytest.approx(other[name].value, rel=1e-5, abs=1e-9), name


@settings(deadline=None, max_examples=40)
@given(drawn(), st.integers(-200, 200), st.sampled_from([0, 70]))
def test_scale_invariance(data: Drawn, power: int, width: int) -> None:
    data = widened(data, width) if width else data
    scaled = Drawn(data.x * 2.0**power, data.units, data.mask)
    one, other = measured(data), measured(scaled)
    for name in NAMES:  # by a power of two: to the last digit, but for what sums in another order
        assert one[name].undefined == other[name].undefined, name
        if one[name].value is not None:
            assert one[name].value == pytest.approx(other[name].value, rel=1e-12), name


@settings(deadline=None, max_examples=40)
@given(drawn(width=5), st.integers(0, 2**32))
def test_rotation_invariance(data: Drawn, seed: int) -> None:
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(5, 5)))[0]
    turned = torch.stack([row @ torch.from_numpy(rotation) for row in data.x.reshape(-1, 5)])
    same(measured(data), measured(Drawn(turned.reshape(data.x.shape), data.units, data.mask)))


@settings(deadline=None, max_examples=40)
@given(drawn())
def test_covariances_and_kept_representations_agree(data: Drawn) -> None:
    """More dimensions change nothing but the shares of them all."""
    one, other = measured(data), measured(widened(data, 70))
    reason = [one["nesum"].undefined, other["nesum"].undefined]
    if reason[0] == reason[1]:
        same(one, other, but=("isoscore", "isoscore_star"))


@settings(deadline=None, max_examples=40)
@given(drawn(), st.integers(1, 4), st.randoms(use_true_random=False), st.sampled_from([0, 70]))
def test_order_and_shards_change_nothing(
    data: Drawn, parts: int, random: object, width: int
) -> None:
    data = widened(data, width) if width else data
    order = list(range(len(data.x)))
    random.shuffle(order)  # type: ignore[attr-defined]
    same(measured(data), measured(data, parts, order))


@settings(deadline=None, max_examples=80)
@given(drawn(), st.sampled_from([0, 70]))
def test_bounds(data: Drawn, width: int) -> None:
    data = widened(data, width) if width else data
    count = int(data.mask.sum())
    most = min(count, data.x.shape[2])
    for name, estimate in measured(data).items():
        if estimate.value is None:
            assert estimate.undefined, name
            continue
        metric = METRICS[name]
        assert metric.lowest - 1e-12 <= estimate.value <= metric.highest + 1e-12, name
        if name in {"effective_rank_uncentered", "effective_rank", "participation_ratio", "nesum"}:
            assert (
                estimate.value
                <= most - (name != "effective_rank_uncentered") * (count <= data.x.shape[2]) + 1e-9
            ), name
        assert estimate.isotropic is not None, name
        assert math.isfinite(estimate.isotropic), name
        assert estimate.se is None or math.isfinite(estimate.se), name


@settings(deadline=None, max_examples=40)
@given(drawn(), st.sampled_from([0, 70]))
def test_masking_is_removing(data: Drawn, width: int) -> None:
    data = widened(data, width) if width else data
    holes = Drawn(data.x.masked_fill(~data.mask[:, :, None], math.nan), data.units, data.mask)
    removed = LayerStatistics(NAMES, grouped=True)
    for x, unit, mask in zip(data.x, data.units, data.mask, strict=True):
        removed.update(x[mask][None], unit[None])
    same(measured(holes), removed.estimates())


@settings(deadline=None, max_examples=40)
@given(drawn(), st.sampled_from([0, 70]))
def test_spectral_anisotropy_is_one_over_nesum(data: Drawn, width: int) -> None:
    found = measured(widened(data, width) if width else data)
    share, number = found["spectral_anisotropy"].value, found["nesum"].value
    assert (share is None) == (number is None)
    if share is not None and number is not None:
        assert share * number == pytest.approx(1, rel=1e-12)
    score, ratio = found["isoscore"].value, found["participation_ratio"].value
    if score is not None and ratio is not None:
        assert score * ((width or data.x.shape[2]) - 1) + 1 == pytest.approx(ratio, rel=1e-9)
