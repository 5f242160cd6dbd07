"""Whatever comes in, every metric has a finite value or a reason, and nothing else is said."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

from isotest.statistics.layer import LayerStatistics
from isotest.statistics.registry import all_metrics
from isotest.statistics.registry.attention import ATTENTION

if TYPE_CHECKING:
    from isotest.estimate import Estimate

OF_ATTENTION = {metric.name for metric in ATTENTION}
NAMES = tuple(name for name in all_metrics() if name not in OF_ATTENTION)


def _normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _estimates(name: str, x: Tensor, *, units: Tensor | None = None) -> dict[str, Estimate]:
    layer = LayerStatistics([name], grouped=units is not None)
    units = torch.arange(len(x)) if units is None else units
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer.update(x, units)
        return layer.estimates()


def _require_sense(estimate: Estimate) -> None:
    if estimate.value is None:
        assert estimate.undefined
        return
    numbers = [estimate.value, *estimate.blocks]
    numbers += [number for number in (estimate.se, estimate.isotropic) if number is not None]
    assert all(math.isfinite(number) for number in numbers)
    assert estimate.undefined is None


SMALL = {
    "fewer representations than dimensions": _normal(3, 2, 40),
    "a single sequence": _normal(1, 12, 5),
    "all sequences identical": _normal(1, 6, 5).expand(9, 6, 5),
    "all representations identical": torch.full((8, 3, 4), 0.1),
    "two values": torch.tensor([1.0, 0.3]).repeat(10, 2, 3),
    "width one": _normal(9, 4, 1),
    "width one, of one sign": _normal(9, 4, 1).abs() + 1,
    "one representation": _normal(1, 1, 6),
    "one representation of width one": torch.ones(1, 1, 1),
    "two representations": _normal(2, 1, 6),
    "one representation a sequence": _normal(30, 1, 6),
    "zeros": torch.zeros(5, 3, 4),
    "zeros but for one": torch.zeros(5, 3, 4).index_fill(0, torch.tensor([2]), 1.0),
    "one dimension alone": torch.nn.functional.pad(_normal(20, 3, 1), (3, 2)),
    "copies of a few": _normal(2, 2, 6).repeat(20, 3, 1),
    "far from the origin": _normal(9, 4, 5) * 1e-3 + 1e4,
    "tiny": _normal(9, 4, 5) * 1e-38,
    "huge": _normal(9, 4, 5) * 1e37,
    "lengths over sixty decades": _normal(9, 4, 5)
    * 10.0 ** _normal(9, 4, 1).mul(10).clamp(-30, 30),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("grouped", [False, True])
def test_small_and_degenerate_samples(name: str, grouped: bool) -> None:
    for case, x in SMALL.items():
        units = torch.arange(len(x)) // 2 if grouped else None
        try:
            _require_sense(_estimates(name, x, units=units)[name])
        except Exception as error:
            raise AssertionError(f"{name}, {case}") from error


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_gives_the_numbers_of_its_upcast(name: str, dtype: torch.dtype) -> None:
    x = _normal(10, 6, 24).add(0.2).to(dtype)
    x[3, 2] = x[1, 1]
    for upcast in (torch.float32, torch.float64):
        half, whole = (_estimates(name, rows)[name] for rows in (x, x.to(upcast)))
        if upcast == torch.float32:
            assert half == whole
        elif half.value is not None:
            assert half.value == pytest.approx(whole.value, rel=1e-9, abs=1e-12)


def test_few_and_very_wide() -> None:
    x = _normal(50, 1, 200_000)
    layer = LayerStatistics(NAMES, grouped=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for start in range(0, 50, 8):
            part = x[start : start + 8]
            layer.update(part, torch.arange(start, start + len(part)))
        estimates = layer.estimates()
    for estimate in estimates.values():
        _require_sense(estimate)


def test_many_and_narrow() -> None:
    """A million representations of width 32, in a thousand sequences."""
    part = _normal(250, 1000, 32)
    layer = LayerStatistics(NAMES, grouped=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for start in range(0, 1000, 250):
            layer.update(part, torch.arange(start, start + 250))
        estimates = layer.estimates()
    assert layer.representations == 10**6
    for estimate in estimates.values():
        _require_sense(estimate)
