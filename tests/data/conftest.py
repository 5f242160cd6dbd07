"""What the tests of hub data share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import datasets
import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; the hub counts as unreachable."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", folder)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    # What `datasets` waits for its own download threads after each stream.
    monkeypatch.setattr(datasets.config, "SLEEP_TIME_ON_THREADS_SHUTDOWN", 0, raising=False)
    monkeypatch.chdir(tmp_path)
    return folder
