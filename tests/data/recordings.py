"""Recordings whose samples a test can predict."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
import soundfile

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

RATE = 16_000


def ramp(number: int, length: int = 400) -> NDArray[np.float32]:
    """Multiples of 1/1024, which 16-bit files hold exactly; recording ``number`` starts there."""
    return ((np.arange(length) % 512 + number) / 1024).astype(np.float32)


def encoded(
    samples: NDArray[np.floating],
    kind: str = "WAV",
    subtype: str | None = None,
    rate: int = RATE,
) -> bytes:
    """``samples``, of shape (n,) or (n, channels), as an audio file."""
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format=kind, subtype=subtype)
    return buffer.getvalue()


def number_of(samples: NDArray[np.float32]) -> int:
    """Which ``ramp`` it is."""
    return round(float(samples[0]) * 1024)


def write_recordings(folder: Path, names: list[str]) -> None:
    """One WAV or FLAC file per name; the i-th is ``ramp(i)``."""
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        kind = name.rpartition(".")[2].upper()
        (folder / name).write_bytes(encoded(ramp(number), kind))
