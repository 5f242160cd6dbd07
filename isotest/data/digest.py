"""What identifies a sample: its decoded content and its group."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

    from isotest.data.dataset import Waveform


def image_digest(image: Image) -> bytes:
    """sha256 of mode, size and pixels.

    Files that decode to the same pixels have the same digest, whatever their format.
    """
    width, height = image.size
    pixels = hashlib.sha256(f"{image.mode} {width}x{height}\n".encode())
    pixels.update(image.tobytes())
    return pixels.digest()


def text_digest(text: str) -> bytes:
    """sha256 of the text in UTF-8."""
    return hashlib.sha256(text.encode()).digest()


def waveform_digest(waveform: Waveform) -> bytes:
    """sha256 of number of samples, rate, samples (float32, little-endian) and transcript."""
    said = waveform.transcript
    label = "without transcript" if said is None else f"transcript {said}"
    sound = hashlib.sha256(f"{len(waveform.samples)} at {waveform.rate} Hz\n".encode())
    sound.update(waveform.samples.astype("<f4").tobytes())
    sound.update(label.encode())
    return sound.digest()


def with_group(content: bytes, group: str | None) -> bytes:
    """sha256 of the digest of a content and of the name of its group.

    Hashing the content first keeps a group's name from being read as content.
    """
    label = "without group" if group is None else f"group {group}"
    return hashlib.sha256(content + label.encode()).digest()
