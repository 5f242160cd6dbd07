"""What of attention is computed is a choice; what comes out of the rest does not depend on it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isotest.statistics.attention.maps import ROWS, maps_of
from isotest.statistics.attention.rows import QUANTILES

LENGTH = 70


def calls() -> dict[str, torch.Tensor | None]:
    causal = torch.ones(1, 1, LENGTH, LENGTH, dtype=torch.bool).tril()
    some = torch.rand(2, 1, LENGTH, LENGTH, generator=torch.Generator().manual_seed(0)) < 0.3
    return {"all": None, "causal": causal, "some": some}


@pytest.mark.parametrize("mask", ["all", "causal", "some"])
@pytest.mark.parametrize("scale", [1e-4, 0.1, 300.0])
def test_nothing_else_depends_on_the_quantiles(mask: str, scale: float) -> None:
    generator = torch.Generator().manual_seed(1)
    query, key = torch.randn(2, 2, 3, LENGTH, 8, generator=generator)
    allowed = calls()[mask]
    with_, without = (
        maps_of(query, key, scale=scale, allowed=allowed, rows=None, quantiles=quantiles)
        for quantiles in (True, False)
    )
    assert (with_.histogram == without.histogram).all()
    seen = LENGTH**2 * 2 if allowed is None else int(allowed.expand(2, 1, LENGTH, LENGTH).sum())
    assert without.histogram.sum() == 3 * seen
    assert set(with_.values) - set(without.values) == set(QUANTILES)
    for name, values in without.values.items():
        assert np.array_equal(values, with_.values[name], equal_nan=True), name


@pytest.mark.parametrize(("rows", "thinned", "queries"), [(None, False, LENGTH), (ROWS, True, 24)])
def test_all_queries_count_where_there_is_no_limit(
    rows: int | None, thinned: bool, queries: int
) -> None:
    query, key = torch.randn(2, 1, 3, LENGTH, 8, generator=torch.Generator().manual_seed(2))
    maps = maps_of(query, key, scale=1.0, rows=rows)
    assert maps.thinned is thinned
    assert maps.histogram.sum() == 3 * queries * LENGTH
    if rows is None:
        scores = (query.double() @ key.double().transpose(2, 3)).numpy()
        assert maps.values["score_mean"] == pytest.approx(scores.mean(axis=(2, 3)), abs=1e-6)
        largest = torch.tensor(scores).softmax(-1).max(dim=-1).values.mean(dim=2)
        assert maps.values["row_max"] == pytest.approx(largest.numpy(), rel=1e-5)
