"""Causes on real geometry: metrics computed naively here, shares as their formulas say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from isotest.estimate import Estimate
from isotest.gate.cause import cause_line, causes

from .profiles import profile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isotest.profile import LayerProfile

S, N, D = 40, 12, 64


def layer_of(x: NDArray[np.float64]) -> LayerProfile:
    """A layer with the metrics of x, shape (sequences, positions, width), by their definitions."""
    flat = x.reshape(-1, x.shape[-1])
    unit = x / np.linalg.norm(x, axis=-1, keepdims=True)
    totals = unit.sum(1)
    total = totals.sum(0)
    rows = flat.shape[0]
    within_pairs = sum(n * n for n in [x.shape[1]] * x.shape[0])
    by_dimension = total**2 - (totals**2).sum(0)
    whole = by_dimension.sum()
    centred = x - x.mean(1, keepdims=True)
    residual = np.linalg.norm(centred, axis=(1, 2)) / np.linalg.norm(x, axis=(1, 2))
    distinct = len(np.unique(flat, axis=0))
    values = {
        "anisotropy": whole / (rows**2 - within_pairs),
        "anisotropy_all": (total @ total - rows) / (rows * (rows - 1)),
        "intra_similarity": ((totals**2).sum() - rows) / (within_pairs - rows),
        "drift_share": (flat.mean(0) ** 2).sum() / (flat**2).sum(1).mean(),
        "drift_norm": np.linalg.norm(flat.mean(0)),
        "dimension_share": by_dimension.max() / whole,
        "rank_residual": residual.mean(),
        "duplicate_share": 1 - distinct / rows,
    }
    return profile({name: [Estimate(float(value))] for name, value in values.items()}).layers[0]


RNG = np.random.default_rng(0)
X = RNG.normal(size=(S, N, D))
HEALTHY = layer_of(X)
COMMON = X + 2.0 * RNG.choice([-1.0, 1.0], size=D)
ROGUE = X + 20.0 * np.eye(D)[7]
COLLAPSED = 0.98 * X.mean(1, keepdims=True) * np.sqrt(N) + 0.02 * X


def shares(metric: str, x: NDArray[np.float64]) -> dict[str, float]:
    found = causes(metric, layer_of(x), HEALTHY)
    assert found is not None
    return {cause.name: cause.share for cause in found}


def test_a_common_direction_is_drift_and_no_single_dimension() -> None:
    found = shares("anisotropy", COMMON)
    assert found["drift"] == pytest.approx(1.0, abs=0.02)
    assert found["one dimension"] < 0.05
    line = cause_line("anisotropy", layer_of(COMMON), HEALTHY)
    assert line is not None
    assert line.startswith(("drift 9", "drift 100%"))
    assert "drift_share" in line


@pytest.mark.parametrize(
    "metric", ["anisotropy", "anisotropy_all", "intra_similarity", "rank_residual"]
)
def test_a_rogue_dimension_is_named_before_the_drift_that_it_is(metric: str) -> None:
    found = shares(metric, ROGUE)
    assert found["one dimension"] == pytest.approx(1.0, abs=0.1)
    assert found["drift"] == pytest.approx(1.0, abs=0.1)
    line = cause_line(metric, layer_of(ROGUE), HEALTHY)
    assert line is not None
    assert line.startswith("one dimension")


@pytest.mark.parametrize("metric", ["intra_similarity", "rank_residual", "anisotropy_all"])
def test_collapse_within_sequences_is_told_from_drift(metric: str) -> None:
    within = shares(metric, COLLAPSED)
    assert within["collapse within the sequence"] > 0.9
    assert within["drift"] < 0.1 or metric == "anisotropy_all"
    common = shares(metric, COMMON)
    assert common["drift"] > 0.9
    assert common["collapse within the sequence"] < 0.1


@pytest.mark.parametrize("metric", ["intra_similarity", "rank_residual"])
@pytest.mark.parametrize("x", [COMMON, COLLAPSED])
def test_drift_and_collapse_nearly_partition_a_change(metric: str, x: NDArray[np.float64]) -> None:
    found = shares(metric, x)
    assert found["drift"] + found["collapse within the sequence"] == pytest.approx(1.0, abs=0.05)


def test_duplicated_rows_are_counted() -> None:
    copied = X.copy()
    copied[:, N // 4 :] = copied[0, 0]
    found = shares("anisotropy", copied)
    assert found["duplicated rows"] == pytest.approx(0.75, abs=0.01)


def test_shares_follow_their_formulas() -> None:
    curves = {
        "anisotropy": [0.5],
        "drift_share": [0.3],
        "dimension_share": [0.2],
        "duplicate_share": [0.1],
    }
    base = {
        "anisotropy": [0.1],
        "drift_share": [0.1],
        "dimension_share": [0.5],
        "duplicate_share": [0.0],
    }
    now, before = profile(curves).layers[0], profile(base).layers[0]
    found = causes("anisotropy", now, before)
    assert found is not None
    assert {cause.name: cause.share for cause in found} == pytest.approx(
        {
            "drift": (0.3 - 0.1) / 0.4,
            "one dimension": (0.2 * 0.5 - 0.5 * 0.1) / 0.4,
            "duplicated rows": 0.1,
        }
    )
    level = causes("anisotropy", now, None)
    assert level is not None
    assert {cause.name: cause.share for cause in level} == pytest.approx(
        {"drift": 0.3 / 0.5, "one dimension": 0.2, "duplicated rows": 0.1}
    )


def test_no_cause_is_an_answer() -> None:
    now = profile({"anisotropy": [0.5], "drift_share": [0.1], "dimension_share": [0.1]}).layers[0]
    before = profile({"anisotropy": [0.1], "drift_share": [0.1], "dimension_share": [0.5]}).layers[
        0
    ]
    assert cause_line("anisotropy", now, before) == "none of those measured explains the change"


def test_what_was_not_measured_is_no_cause() -> None:
    layer = profile({"anisotropy": [0.5]}).layers[0]
    assert causes("anisotropy", layer, None) == ()


def test_other_metrics_and_still_levels_have_nothing_to_explain() -> None:
    layer = profile({"anisotropy": [0.5], "mean_norm": [2.0]}).layers[0]
    assert causes("mean_norm", layer, None) is None
    assert causes("anisotropy", layer, layer) is None
    assert cause_line("massive", layer, None) is None
