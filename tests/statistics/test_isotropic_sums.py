"""What isotropic data give stands beside metrics of sums, and is what simulated data give."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from isotest.statistics.beta import mean_root_of_share
from isotest.statistics.layer import LayerStatistics

NAMES = (
    "anisotropy",
    "anisotropy_all",
    "intra_similarity",
    "drift_share",
    "drift_norm",
    "rank_residual",
)
WITHOUT = (
    "mean_norm",
    "norm_std",
    "massive",
    "massive_ratio",
    "rank_residual_std",
    "rank_residual_composite",
)


@pytest.mark.parametrize(
    ("lengths", "width", "scale"), [((3, 3, 3), 4, 1.0), ((2, 7, 1, 4), 1, 5.0), ((5, 2), 30, 0.1)]
)
def test_isotropic_data_have_the_values_that_stand_beside_them(
    lengths: tuple[int, ...], width: int, scale: float
) -> None:
    generator = torch.Generator().manual_seed(0)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    differences: dict[str, list[float]] = {name: [] for name in NAMES}
    for _ in range(300):
        x = torch.randn(*mask.shape, width, generator=generator, dtype=torch.float64) * scale
        layer = LayerStatistics([*NAMES, *WITHOUT, "duplicate_share"], grouped=False)
        layer.update(x, torch.arange(len(lengths)), mask)
        estimates = layer.estimates()
        for name in NAMES:
            estimate = estimates[name]
            assert estimate.value is not None
            assert estimate.isotropic is not None
            # The scale of drift_norm is that of the data, so both vary.
            differences[name].append(estimate.value - estimate.isotropic)
        assert all(estimates[name].isotropic is None for name in (*WITHOUT, "duplicate_share"))
    for name, found in differences.items():
        error = np.std(found) / math.sqrt(len(found))
        assert abs(np.mean(found)) <= 3 * error + 1e-12, name


def test_a_merged_layer_has_the_same_one() -> None:
    x = torch.randn(6, 3, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    whole, one, other = (LayerStatistics(NAMES, grouped=False) for _ in range(3))
    whole.update(x, torch.arange(6))
    one.update(x[:2], torch.arange(2))
    other.update(x[2:], torch.arange(2, 6))
    one.merge(other)
    for name, estimate in whole.estimates().items():
        assert one.estimates()[name].isotropic == pytest.approx(estimate.isotropic), name


def test_of_everything_the_share_is_one() -> None:
    assert mean_root_of_share(5, 0) == 1.0
    # Far out √B is hardly random: √(part / (part + rest)).
    assert mean_root_of_share(10**6, 3 * 10**6) == pytest.approx(0.5, rel=1e-6)
