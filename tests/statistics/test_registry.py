"""The table of metrics."""

from __future__ import annotations

import subprocess
import sys

import pytest

from isotest.statistics.layer import LayerStatistics
from isotest.statistics.registry import all_metrics


def test_every_metric_is_yielded_by_its_accumulator() -> None:
    import torch

    layer = LayerStatistics(all_metrics(), grouped=False)
    layer.update(torch.rand(4, 3, 5), torch.arange(4))
    assert list(layer.estimates()) == list(all_metrics())


@pytest.mark.parametrize("name", all_metrics())
def test_a_metric_can_be_measured_alone(name: str) -> None:
    import torch

    x = torch.rand(4, 3, 5, generator=torch.Generator().manual_seed(0))
    alone, together = (LayerStatistics(names, grouped=False) for names in ([name], all_metrics()))
    alone.update(x, torch.arange(4))
    together.update(x, torch.arange(4))
    assert alone.estimates()[name] == together.estimates()[name]


def test_the_gate_needs_no_torch() -> None:
    code = (
        "import isotest.statistics.registry, isotest.statistics.jackknife, "
        "isotest.statistics.blocks, sys; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
