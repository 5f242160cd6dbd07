"""A project to run pytest in, for suites that feed a block."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.plugin.conftest import project

__all__ = ["project"]


@pytest.fixture(scope="session", autouse=True)
def _imported_once() -> None:
    """Runs inside this process forget what they import; what is here already stays."""
    from isotest.blocks import BlockConfig, TransformerBlock
    from isotest.blocks.drift import drift
    from isotest.statistics.registry import all_metrics

    for module in ("scipy.stats", "isotest.blocks.drift.entry", "isotest.plugin.run"):
        import_module(module)
    drift(
        TransformerBlock(BlockConfig(width=8, heads=2, hidden=8)),
        norms=[0],
        replicates=2,
        sequences=4,
        length=8,
        vocabulary=9,
        metrics=all_metrics("drift"),
    )
