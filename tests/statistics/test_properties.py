"""What holds for any representations at all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from isotest.statistics.layer import LayerStatistics
from isotest.statistics.registry import METRICS, all_metrics

if TYPE_CHECKING:
    from isotest.estimate import Estimate

# Those of spectra lose digits where lengths are over decades: test_spectrum_properties.py.
NAMES = tuple(name for name in all_metrics() if not METRICS[name].covariance)
SCALED = {"mean_norm", "norm_std", "drift_norm", "massive"}
ROTATION_INVARIANT = {
    "anisotropy",
    "anisotropy_all",
    "intra_similarity",
    "mean_norm",
    "norm_std",
    "drift_norm",
    "drift_share",
    "rank_residual",
    "rank_residual_std",
    "duplicate_share",
    "uniformity",
    "twonn",
    "partition_isotropy",
}


@dataclass(frozen=True)
class Drawn:
    x: Tensor
    units: Tensor
    mask: Tensor

    def part(self, chosen: Tensor | slice) -> Drawn:
        return Drawn(self.x[chosen], self.units[chosen], self.mask[chosen])


@st.composite
def drawn(draw: st.DrawFn, *, width: int | None = None, grouped: bool = True) -> Drawn:
    """Sequences with a shared offset, some rows repeated or zero, some masked, units at random."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sequences, length = draw(st.integers(2, 12)), draw(st.integers(1, 6))
    width = width or draw(st.integers(1, 9))
    x = rng.normal(size=(sequences, length, width)) + draw(st.sampled_from([0.0, 0.3, 5.0]))
    x *= 10.0 ** rng.uniform(-3, 3, (sequences, length, 1)) if draw(st.booleans()) else 1.0
    if draw(st.booleans()):
        x[rng.random((sequences, length)) < 0.2] = 0.0
    if draw(st.booleans()):
        x[-1] = x[0]
    mask = rng.random((sequences, length)) < draw(st.sampled_from([0.6, 1.0]))
    mask[0, 0] = True
    units = rng.integers(0, draw(st.sampled_from([3, 200])), sequences)
    if not grouped:
        units = np.arange(sequences)
    return Drawn(torch.from_numpy(x), torch.from_numpy(units), torch.from_numpy(mask))


def _layer(data: Drawn, *, grouped: bool = True) -> LayerStatistics:
    layer = LayerStatistics(NAMES, grouped=grouped)
    layer.update(data.x, data.units, data.mask)
    return layer


def _same(
    one: Estimate, other: Estimate, *, factor: float = 1.0, scale: float = 1.0, name: str = ""
) -> None:
    assert (one.undefined is None, one.vacuous) == (other.undefined is None, other.vacuous), name
    if one.value is not None and other.value is not None:
        tolerance = 1e-11 * scale
        assert one.value * factor == pytest.approx(other.value, rel=1e-9, abs=tolerance), name
        blocks = [block * factor for block in one.blocks]
        # Shares of an anisotropy that vanishes without a block can be anything.
        if name != "dimension_share":
            assert blocks == pytest.approx(other.blocks, rel=1e-7, abs=1e3 * tolerance), name


def _magnitude(name: str, data: Drawn) -> float:
    return max(1.0, float(data.x.abs().max())) if name in SCALED else 1.0


@settings(deadline=None, max_examples=60)
@given(drawn(), st.floats(-8, 8))
def test_scale_invariance(data: Drawn, power: float) -> None:
    factor = 10.0**power
    plain = _layer(data).estimates()
    scaled = _layer(Drawn(data.x * factor, data.units, data.mask)).estimates()
    # Copies are copies of bits; exp(c·x) has a scale.
    for name in set(NAMES) - {"duplicate_share", "partition_isotropy"}:
        by = factor if name in SCALED else 1.0
        _same(plain[name], scaled[name], factor=by, scale=by * _magnitude(name, data), name=name)


@settings(deadline=None, max_examples=60)
@given(drawn(width=5), st.integers(0, 2**32))
def test_rotation_invariance(data: Drawn, seed: int) -> None:
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(5, 5)))[0]
    # Row by row, so that equal rows stay equal to the last bit.
    turned = torch.stack([row @ torch.from_numpy(rotation) for row in data.x.reshape(-1, 5)])
    plain = _layer(data).estimates()
    rotated = _layer(Drawn(turned.reshape(data.x.shape), data.units, data.mask)).estimates()
    for name in ROTATION_INVARIANT:
        _same(plain[name], rotated[name], scale=_magnitude(name, data), name=name)


@settings(deadline=None, max_examples=100)
@given(drawn())
def test_bounds(data: Drawn) -> None:
    layer = _layer(data)
    value = {name: estimate.value for name, estimate in layer.estimates().items()}
    rounding = 1e-12
    # Pairs between S units of equal size sum to at least −(N/S)·N: −1/(S−1) is the floor then;
    # with any sizes it is −Σn² / (N² − Σn²).
    directed = data.mask & (data.x.abs().amax(dim=2) > 0)
    sizes = torch.zeros(200).index_add_(0, data.units, directed.sum(dim=1).float()).double()
    own = float((sizes**2).sum())
    pairs = float(sizes.sum() ** 2) - own
    if value["anisotropy"] is not None:
        assert -own / pairs - rounding <= value["anisotropy"] <= 1 + rounding
    count = float(sizes.sum())
    if value["anisotropy_all"] is not None:
        assert -1 / (count - 1) - rounding <= value["anisotropy_all"] <= 1 + rounding
    for name in ("drift_share", "rank_residual", "duplicate_share"):
        number = value[name]
        assert number is None or -rounding <= number <= 1 + rounding, name
    for name, number in value.items():
        assert number is None or math.isfinite(number), name


@settings(deadline=None, max_examples=60)
@given(drawn(), st.integers(1, 11), st.integers(1, 11))
def test_merging_is_associative_and_commutative(data: Drawn, first: int, second: int) -> None:
    low, high = sorted((first, second))
    parts = [slice(0, low), slice(low, high), slice(high, None)]

    def layers() -> list[LayerStatistics]:
        return [_layer(data.part(part)) for part in parts]

    whole = _layer(data).estimates()
    a, b, c = layers()
    a.merge(b)
    a.merge(c)
    d, e, f = layers()
    e.merge(f)
    d.merge(e)
    g, h, i = layers()
    i.merge(h)
    i.merge(g)
    for merged in (a, d, i):
        for name, estimate in merged.estimates().items():
            _same(whole[name], estimate, scale=_magnitude(name, data), name=name)


@settings(deadline=None, max_examples=60)
@given(drawn())
def test_masking_is_removing(data: Drawn) -> None:
    masked = _layer(
        Drawn(data.x.masked_fill(~data.mask[:, :, None], math.nan), data.units, data.mask)
    )
    removed = LayerStatistics(NAMES, grouped=True)
    for x, unit, mask in zip(data.x, data.units, data.mask, strict=True):
        removed.update(x[mask][None], unit[None])
    assert masked.representations == removed.representations == int(data.mask.sum())
    assert masked.block_sequences == removed.block_sequences
    for name, estimate in removed.estimates().items():
        _same(masked.estimates()[name], estimate, scale=_magnitude(name, data), name=name)


@settings(deadline=None, max_examples=60)
@given(drawn(grouped=False), st.integers(2, 4))
def test_copies_within_their_unit_change_no_value_and_no_certainty(data: Drawn, times: int) -> None:
    """Every sequence measured again, as part of the same unit: nothing new was learned."""
    again = Drawn(data.x.repeat(times, 1, 1), data.units.repeat(times), data.mask.repeat(times, 1))
    once, often = _layer(data).estimates(), _layer(again).estimates()
    for name in ("anisotropy", "mean_norm", "drift_norm", "drift_share", "rank_residual"):
        _same(once[name], often[name], scale=_magnitude(name, data), name=name)
        if once[name].se is not None:
            error = often[name].se
            assert error == pytest.approx(
                once[name].se, rel=1e-7, abs=1e-8 * _magnitude(name, data)
            )


@pytest.mark.parametrize("times", [2, 8, 64])
def test_copies_as_units_of_their_own_vanish_in_the_limit_only_for_many_units(times: int) -> None:
    """If the copies claim to be independent, pairs of copies enter: the excess is 1/S-th."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(50, 1, 16, generator=generator) + 0.3
    once = LayerStatistics(["anisotropy"], grouped=False)
    once.update(x, torch.arange(50))
    often = LayerStatistics(["anisotropy"], grouped=False)
    often.update(x.repeat(times, 1, 1), torch.arange(50 * times))
    value, repeated = (layer.estimates()["anisotropy"].value for layer in (once, often))
    assert value is not None
    # Of (50t)² − 50t pairs 50 t (t − 1) are of copies, with cosine 1.
    excess = (times - 1) / (50 * times - 1)
    assert repeated == pytest.approx(excess + (1 - excess) * value, rel=1e-10)


@settings(deadline=None, max_examples=60)
@given(drawn(grouped=False))
def test_all_pairs_are_those_between_and_those_within(data: Drawn) -> None:
    estimates = _layer(data, grouped=False).estimates()
    sizes = (data.mask & (data.x.abs().amax(dim=2) > 0)).sum(dim=1).double()
    count, own = float(sizes.sum()), float((sizes**2).sum())
    weights = {"anisotropy": count**2 - own, "intra_similarity": own - count}
    total = 0.0
    for name, weight in weights.items():
        value = estimates[name].value
        assert (value is None) == (weight == 0)
        total += weight * (value or 0.0)
    everything = estimates["anisotropy_all"].value
    assert (everything or 0.0) * count * (count - 1) == pytest.approx(total, rel=1e-9, abs=1e-9)
