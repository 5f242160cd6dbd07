"""Where data come from: one file per source, all opened by :func:`open_data`.

Nothing is imported until a name is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isotest.data.dataset import Dataset, Sample, Waveform, fingerprint
    from isotest.data.load import open_data

_HOME = {
    "Dataset": "dataset",
    "Sample": "dataset",
    "Waveform": "dataset",
    "fingerprint": "dataset",
    "open_data": "load",
}

__all__ = ["Dataset", "Sample", "Waveform", "fingerprint", "open_data"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"isotest.data.{_HOME[name]}"), name)
    raise AttributeError(f"module 'isotest.data' has no attribute {name!r}")
