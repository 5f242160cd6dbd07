"""Samples that statistics have gone wrong on, and the comparison with the naive loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isotest.statistics.layer import LayerStatistics
from isotest.statistics.registry import METRICS
from tests.statistics import naive, naive_neighbours
from tests.statistics.naive import Array, Sample

REFERENCES = {**naive.STATISTICS, **naive_neighbours.STATISTICS}
NAMES = tuple(name for name in METRICS if name in REFERENCES)
"""Those with a reference that also holds without a block; others have tests of their own."""


def random_sample(seed: int, *, sequences: int = 9, width: int = 7, offset: float = 0.4) -> Sample:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 6, sequences)
    shared = rng.normal(size=(sequences, width)) * 0.5
    return Sample(
        [rng.normal(size=(n, width)) + offset + s for n, s in zip(lengths, shared, strict=True)],
        [int(unit) for unit in rng.integers(0, 200, sequences)],
    )


def _adversarial() -> dict[str, Sample]:
    rng = np.random.default_rng(5)
    plain = random_sample(3)
    copies = [np.repeat(s[:1], 3, axis=0) for s in plain.sequences]
    antipodal = [np.stack([s[0], -s[0]]) for s in plain.sequences]
    mixed = [s * 10.0 ** rng.uniform(-6, 6, (len(s), 1)) for s in plain.sequences]
    rogue = [s + 50.0 * (np.arange(7) == 2) for s in plain.sequences]
    far = [s * 1e-4 + 1e4 for s in plain.sequences]
    sparse = [np.where(np.arange(7) < 5, s, 0.0) for s in plain.sequences]
    units = plain.units
    return {
        "random": plain,
        "unequal blocks": Sample(plain.sequences, [0, 1, 2, 3, 64, 128, 192, 1, 4]),
        "two units": Sample(plain.sequences, [0, 1] * 4 + [1]),
        "shared units": Sample(plain.sequences, [0, 0, 1, 1, 1, 2, 66, 66, 3]),
        "copies": Sample(copies, units),
        "antipodal": Sample(antipodal, units),
        "lengths over twelve decades": Sample(mixed, units),
        "rogue dimension": Sample(rogue, units),
        "far from the origin": Sample(far, units),
        "sparse": Sample(sparse, units),
        "single dimension": Sample([s[:, :1] for s in plain.sequences], units),
    }


SAMPLES = _adversarial()


def _pad(sequences: list[Array], dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(len(sequence) for sequence in sequences)
    x = torch.full((len(sequences), longest, sequences[0].shape[1]), float("nan"), dtype=dtype)
    mask = torch.zeros(len(sequences), longest, dtype=torch.bool)
    for row, sequence in enumerate(sequences):
        x[row, : len(sequence)] = torch.from_numpy(sequence).to(dtype)
        mask[row, : len(sequence)] = True
    return x, mask


def measured(
    sample: Sample,
    *,
    dtype: torch.dtype = torch.float64,
    batch: int = 4,
    shards: int = 1,
    order: list[int] | None = None,
    grouped: bool = True,
) -> LayerStatistics:
    """The sample through batches that are dealt out to ``shards`` accumulators, then merged."""
    order = order or list(range(len(sample.units)))
    layers = [LayerStatistics(NAMES, grouped=grouped) for _ in range(shards)]
    for number, start in enumerate(range(0, len(order), batch)):
        chosen = order[start : start + batch]
        x, mask = _pad([sample.sequences[i] for i in chosen], dtype)
        units = torch.tensor([sample.units[i] for i in chosen])
        layers[number % shards].update(x, units, mask)
    while len(layers) > 1:  # a lopsided tree, last onto second to last
        layers[-2].merge(layers.pop())
    return layers[0]


def assert_as_naive(
    layer: LayerStatistics, sample: Sample, relative: float = 1e-10, absolute: float = 1e-14
) -> None:
    """Compare values and errors.

    ``absolute`` is for quantities that cancel: a mean cosine near 0 is a difference of sums near
    1, good to some 1e-16, but not relative to itself. Pseudo-values multiply a rounding error by
    n / m, so standard errors get a tolerance that is a thousand times wider.
    """
    estimates = layer.estimates()
    blocks = sorted({unit % 64 for unit in sample.units})
    for name in NAMES:
        estimate = estimates[name]
        if name == "dimension_share" and estimate.vacuous:
            value = naive.anisotropy(sample)
            assert value is not None
            assert abs(value) < 0.01
            continue
        reference = REFERENCES[name](sample)
        if reference is None:
            assert estimate.value is None, name
            continue
        per_sequence = METRICS[name].weight == "sequences"
        sizes = layer.block_sequences if per_sequence else layer.block_representations
        scaled = "norm" in name or name == "massive"
        tolerance = absolute * (max(1.0, naive.massive(sample)) if scaled else 1.0)
        assert estimate.value == pytest.approx(reference, rel=relative, abs=tolerance), name
        without = [REFERENCES[name](sample.without_block(block)) for block in blocks]
        defined = [value for value in without if value is not None]
        if len(defined) < len(without):
            assert estimate.se is None
            continue
        error = naive.standard_error(reference, defined, sizes)
        assert estimate.se == pytest.approx(error, rel=1e3 * relative, abs=1e3 * tolerance), name
