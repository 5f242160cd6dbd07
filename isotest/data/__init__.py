"""Where data come from: one file per source, all opened by :func:`open_data`.

Nothing is imported until a name is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.lazy import lazily

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

__getattr__ = lazily(__name__, _HOME)
