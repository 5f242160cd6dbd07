"""What the diagnosis reads: rogue dimensions and copied pairs, against loops and closed forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from isotest.statistics.copies import duplicate_pairs
from isotest.statistics.duplicates import duplicate_pairs_within
from isotest.statistics.layer import LayerStatistics
from isotest.statistics.registry import METRICS
from isotest.statistics.rogue import rogue_dimensions, rogue_share
from isotest.statistics.rogue_threshold import threshold
from tests.statistics import naive, naive_causes
from tests.statistics.cases import SAMPLES, random_sample

if TYPE_CHECKING:
    from tests.statistics.naive import Sample


def measured(sample: Sample, *, shards: int) -> LayerStatistics:
    layers = [LayerStatistics(tuple(naive_causes.CAUSES), grouped=True) for _ in range(shards)]
    for number, (rows, unit) in enumerate(zip(sample.sequences, sample.units, strict=True)):
        layers[number % shards].update(torch.from_numpy(rows)[None], torch.tensor([unit]))
    for other in layers[1:]:
        layers[0].merge(other)
    return layers[0]


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("case", SAMPLES)
def test_values_and_errors_are_those_of_loops(case: str, shards: int) -> None:
    sample = SAMPLES[case]
    layer = measured(sample, shards=shards)
    blocks = sorted({unit % 64 for unit in sample.units})
    for name, reference in naive_causes.CAUSES.items():
        estimate = layer.estimates()[name]
        if estimate.vacuous:  # no anisotropy to share out
            assert naive_causes.vacuous(sample)
            continue
        value = reference(sample)
        assert estimate.value == pytest.approx(value, rel=1e-10, abs=1e-14), name
        without = [reference(sample.without_block(block)) for block in blocks]
        defined = [other for other in without if other is not None]
        if len(defined) < len(without):
            assert estimate.se is None
            continue
        assert value is not None
        sizes = layer.block_representations
        error = naive.standard_error(value, defined, sizes)
        assert estimate.se == pytest.approx(error, rel=1e-7, abs=1e-11), name


def test_rogue_dimensions_are_counted_and_their_shares_add_up() -> None:
    """Of (20, 20, 20, noise …) the three carry 3·400 of the 1,200 that representations share."""
    x = torch.randn(40, 4, 64, generator=torch.Generator().manual_seed(0))
    x[:, :, :3] += 20.0
    assert rogue_dimensions(x) == 3
    assert rogue_share(x) == pytest.approx(1.0, abs=0.01)
    x[:, :, :3] -= 20.0
    x += torch.where(torch.randn(64, generator=torch.Generator().manual_seed(1)) > 0, 1.0, -1.0)
    assert rogue_dimensions(x) == 0  # drift, but along no axis


def test_a_random_direction_has_no_rogue_dimension_but_for_one_in_a_hundred() -> None:
    rng = np.random.default_rng(0)
    for width in (16, 64, 384, 768):
        directions = rng.normal(size=(2000, width))
        shares = directions**2 / (directions**2).sum(axis=1, keepdims=True)
        assert (shares.max(axis=1) > threshold(width)).mean() <= 0.01


def test_wide_layers_are_the_same_as_narrow_ones() -> None:
    """Slices, held rows and the dimensions that are not looked at change nothing."""
    x = torch.randn(70, 1, 20_000, generator=torch.Generator().manual_seed(0))
    x[:, :, [3, 9_000, 15_000]] += 200.0
    layer = LayerStatistics(["rogue_share", "rogue_dimensions", "anisotropy"], grouped=False)
    layer.update(x, torch.arange(70))
    rows = (x / x.norm(dim=2, keepdim=True))[:, 0].double()
    by_dimension = rows.sum(dim=0) ** 2 - (rows**2).sum(dim=0)
    shares = by_dimension / by_dimension.sum()
    found = layer.estimates()
    assert found["rogue_dimensions"].value == 3
    assert found["rogue_share"].value == pytest.approx(float(shares[[3, 9_000, 15_000]].sum()))


def test_half_of_the_rows_one_copy_make_a_quarter_of_the_pairs() -> None:
    """Of 2n rows of 2n units, n are one: n(n − 1) of 2n(2n − 1) ordered pairs."""
    x = torch.randn(40, 1, 8, generator=torch.Generator().manual_seed(0))
    x[::2] = x[0]
    assert duplicate_pairs(x) == pytest.approx(20 * 19 / (40 * 39))
    # In groups of two, a copy and another each, every pair of copies still has two units.
    assert duplicate_pairs(x, torch.arange(40) // 2) == pytest.approx(20 * 19 / (40 * 38))


def test_copies_within_a_sequence_are_no_pairs_between_units() -> None:
    x = torch.randn(6, 4, 8, generator=torch.Generator().manual_seed(0))
    x[:, 2:] = x[:, :1]  # three of four positions are equal: 6 of 12 ordered pairs
    assert duplicate_pairs(x) == 0
    assert duplicate_pairs_within(x) == 0.5
    assert duplicate_pairs_within(random_rows()) == 0


def random_rows() -> torch.Tensor:
    return torch.from_numpy(np.stack(random_sample(0, sequences=1).sequences))


def test_rows_without_a_direction_are_in_no_pair() -> None:
    x = torch.zeros(4, 3, 5)
    x[:, 0] = torch.eye(5)[:4]
    x[:, 1] = 1.0
    assert duplicate_pairs_within(x) == 0
    assert duplicate_pairs(x) == pytest.approx(1 / 4)


def test_the_gate_knows_them() -> None:
    assert set(naive_causes.CAUSES) <= set(METRICS)
