"""Every statistic equals loops over all pairs, however the data are cut, ordered and merged."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from isotest.statistics.batch import WIDE
from isotest.statistics.blocks import BLOCKS
from isotest.statistics.layer import LayerStatistics
from tests.statistics import naive
from tests.statistics.cases import NAMES, SAMPLES, assert_as_naive, measured, random_sample
from tests.statistics.naive import Sample


@pytest.mark.parametrize("name", SAMPLES)
def test_float64_input(name: str) -> None:
    assert_as_naive(measured(SAMPLES[name]), SAMPLES[name])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", SAMPLES)
def test_narrower_input_is_computed_in_float64(name: str, dtype: torch.dtype) -> None:
    """Of the stored values everything is known exactly, so the tolerance is that of float64."""
    largest = torch.finfo(dtype).max / 2
    sequences = [
        torch.from_numpy(s).clamp(-largest, largest).to(dtype).double().numpy()
        for s in SAMPLES[name].sequences
    ]
    stored = Sample(sequences, SAMPLES[name].units)
    assert_as_naive(measured(stored, dtype=dtype), stored)


@pytest.mark.parametrize("batch", [1, 3, 9])
@pytest.mark.parametrize("shards", [1, 2, 5])
@pytest.mark.parametrize("order", [None, [8, 0, 7, 1, 6, 2, 5, 3, 4]])
def test_cuts_and_orders_do_not_matter(batch: int, shards: int, order: list[int] | None) -> None:
    sample = SAMPLES["shared units"]
    assert_as_naive(measured(sample, batch=batch, shards=shards, order=order), sample)


@pytest.mark.parametrize("shards", [1, 3])
def test_without_groups_each_sequence_is_its_own_unit(shards: int) -> None:
    sequences = random_sample(11, sequences=12).sequences
    sample = Sample(sequences, [0, 1, 2, 64, 65, 5, 6, 7, 128, 9, 10, 192])
    assert_as_naive(measured(sample, grouped=False, shards=shards), sample)


def test_any_merge_tree_gives_the_same() -> None:
    sample = SAMPLES["shared units"]

    def leaf(index: int) -> LayerStatistics:
        return measured(Sample([sample.sequences[index]], [sample.units[index]]))

    left = leaf(0)
    for index in range(1, 9):
        left.merge(leaf(index))
    pairs = [leaf(index) for index in (8, 6, 4, 2, 0)]
    for layer, index in zip(pairs[1:], (7, 5, 3, 1), strict=True):
        layer.merge(leaf(index))
    right = pairs[-1]
    for layer in pairs[:-1]:
        layer.merge(right)
        right = layer
    assert_as_naive(left, sample)
    assert_as_naive(right, sample)


def test_merging_with_nothing_changes_nothing() -> None:
    sample = SAMPLES["random"]
    layer = measured(sample)
    layer.merge(LayerStatistics(NAMES, grouped=True))
    empty = LayerStatistics(NAMES, grouped=True)
    empty.merge(layer)
    assert empty.estimates() == layer.estimates()
    assert_as_naive(empty, sample)


def _flattened(count: int, seed: int = 0) -> torch.Tensor:
    """(count, 1, D) feature maps wide enough to be worked on in slices, as after a ReLU."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(count, 1, WIDE + 3, generator=generator) + 0.5).relu()


def centred_mean_cosine(rows: torch.Tensor, units: torch.Tensor) -> float:
    """Of (N, D) float64, over pairs of different units."""
    directions = torch.nn.functional.normalize(rows - rows.mean(dim=0), dim=1)
    apart = units[:, None] != units[None, :]
    return float((directions @ directions.T)[apart].mean())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize("shards", [1, 2])
def test_flattened_maps(dtype: torch.dtype, grouped: bool, shards: int) -> None:
    """Wide rows take their own path; float64 matrix algebra on the whole is the reference."""
    count = BLOCKS + 9  # enough to be folded at least once
    x = _flattened(count).to(dtype)
    units = torch.arange(count) // 2 if grouped else torch.arange(count)
    layers = [LayerStatistics(NAMES, grouped=grouped) for _ in range(shards)]
    for number, start in enumerate(range(0, count, 10)):
        part = slice(start, start + 10)
        layers[number % shards].update(x[part], units[part])
    for layer in layers[1:]:
        layers[0].merge(layer)
    estimates = layers[0].estimates()

    rows = x[:, 0].double()
    lengths = rows.norm(dim=1)
    cosines = (rows / lengths[:, None]) @ (rows / lengths[:, None]).T
    apart = units[:, None] != units[None, :]

    def between(kept: torch.Tensor) -> float:
        return float(cosines[kept][:, kept][apart[kept][:, kept]].mean())

    everything = torch.ones(count, dtype=torch.bool)
    blocks = units % BLOCKS
    value = between(everything)
    without = [between(blocks != block) for block in blocks.unique()]
    sizes = [int((blocks == block).sum()) for block in blocks.unique()]
    assert estimates["anisotropy"].value == pytest.approx(value, rel=1e-10)
    error = naive.standard_error(value, without, sizes)
    assert estimates["anisotropy"].se == pytest.approx(error, rel=1e-7)
    off_diagonal = ~torch.eye(count, dtype=torch.bool)
    expected = {
        "anisotropy_all": float(cosines[off_diagonal].mean()),
        "mean_norm": float(lengths.mean()),
        "norm_std": float(lengths.std(correction=0)),
        "drift_norm": float(rows.mean(dim=0).norm()),
        "drift_share": float(rows.mean(dim=0).norm() ** 2 / (lengths**2).mean()),
        "massive": float(rows.max()),
        "massive_ratio": max(float(row.max() / np.median(row.numpy())) for row in rows),
        "duplicate_share": 0.0,
        "centered_anisotropy": centred_mean_cosine(rows, units),
    }
    for name, reference in expected.items():
        assert estimates[name].value == pytest.approx(reference, rel=1e-10), name
    for name in ("intra_similarity", "rank_residual", "rank_residual_composite"):
        assert estimates[name].undefined == "every sequence has one representation"


@pytest.mark.parametrize("count", [20, BLOCKS + 9])
def test_the_dimension_share_of_flattened_maps(count: int) -> None:
    x = _flattened(count, seed=1)
    x[:, :, 77] += 300.0
    layer = LayerStatistics(["dimension_share"], grouped=False)
    layer.update(x, torch.arange(count))
    directions = torch.nn.functional.normalize(x[:, 0].double(), dim=1)
    between = directions.sum(dim=0) ** 2 - (directions**2).sum(dim=0)
    share = float(between[77] / between.sum())
    estimate = layer.estimates()["dimension_share"]
    assert estimate.value == pytest.approx(share, rel=1e-10)
    assert estimate.se is not None
    assert math.isfinite(estimate.se)


def test_the_layer_may_write_over_its_output_afterwards() -> None:
    x = _flattened(5)
    layer, untouched = (LayerStatistics(NAMES, grouped=False) for _ in range(2))
    untouched.update(x.clone(), torch.arange(5))
    layer.update(x, torch.arange(5))
    x.zero_()
    assert layer.estimates() == untouched.estimates()


def test_lengths_may_differ_between_batches() -> None:
    sample = random_sample(4, sequences=6)
    layer = LayerStatistics(NAMES, grouped=True)
    for sequence, unit in zip(sample.sequences, sample.units, strict=True):
        layer.update(torch.from_numpy(sequence)[None], torch.tensor([unit]))
    assert_as_naive(layer, sample)
    assert layer.sequences == 6
    assert layer.units == len(set(sample.units))
    assert layer.representations == sum(layer.block_representations)
    assert layer.width == 7
