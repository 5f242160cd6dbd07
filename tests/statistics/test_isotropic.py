"""Spectra drawn without data have the distribution of those of data."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isotest.statistics.isotropic import isotropic
from isotest.statistics.layer import LayerStatistics
from isotest.statistics.registry import METRICS
from tests.statistics.naive_spectrum import STATISTICS

NAMES = tuple(name for name, metric in METRICS.items() if metric.covariance)


@pytest.mark.parametrize("about_mean", [True, False])
@pytest.mark.parametrize(("count", "width"), [(40, 6), (9, 30), (12, 12), (2, 5), (500, 1)])
def test_the_mean_spectrum_is_that_of_simulated_data(
    count: int, width: int, about_mean: bool
) -> None:
    generator = np.random.default_rng(0)
    drawn = isotropic(count, width, about_mean=about_mean)
    simulated = []
    for _ in range(400):
        rows = generator.normal(size=(count, width))
        if about_mean:
            rows = rows - rows.mean(axis=0)
        simulated.append(np.linalg.svd(rows, compute_uv=False)[: drawn.values.shape[1]] ** 2)
    values = np.array(simulated) / count
    # Four standard errors of the difference of the two means.
    spread = values.std(axis=0) * np.sqrt(1 / len(values) + 1 / len(drawn.values))
    assert (np.abs(drawn.values.mean(axis=0) - values.mean(axis=0)) < 4 * spread + 1e-12).all()
    # And they vary as much: a mean spectrum would have other ratios.
    deviations = drawn.values.std(axis=0) / values.std(axis=0)
    assert ((deviations > 0.6) & (deviations < 1.7)).all()


@pytest.mark.parametrize(("sequences", "length", "width"), [(40, 5, 10), (20, 1, 80), (60, 3, 90)])
def test_isotropic_data_have_the_values_that_stand_beside_them(
    sequences: int, length: int, width: int
) -> None:
    generator = torch.Generator().manual_seed(0)
    values: dict[str, list[float]] = {name: [] for name in NAMES}
    for _ in range(40):
        x = torch.randn(sequences, length, width, generator=generator)
        for name, reference in STATISTICS.items():
            values[name].append(reference(x.reshape(-1, width).double().numpy()))
    layer = LayerStatistics(NAMES, grouped=False)
    layer.update(x, torch.arange(sequences))
    for name, estimate in layer.estimates().items():
        spread = np.std(values[name]) * np.sqrt(1 / 40 + 1 / 40)
        assert estimate.isotropic == pytest.approx(np.mean(values[name]), abs=4 * spread), name


def test_it_is_the_same_whenever_it_is_asked_for() -> None:
    first = isotropic(30, 7, about_mean=True).values.copy()
    isotropic(31, 7, about_mean=True)
    assert (isotropic(30, 7, about_mean=True).values == first).all()
    assert (isotropic(31, 7, about_mean=True).values[:, :1] != first[:, :1]).any()
