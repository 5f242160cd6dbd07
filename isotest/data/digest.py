"""What identifies a sample: its decoded content."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image


def content_digest(image: Image, group: str | None) -> bytes:
    """sha256 of mode, size and pixels of ``image`` and of the name of its ``group``.

    Files that decode to the same pixels have the same digest, whatever their format.
    """
    width, height = image.size
    pixels = hashlib.sha256(f"{image.mode} {width}x{height}\n".encode())
    pixels.update(image.tobytes())
    # Hashing the pixels first keeps a group's name from being read as pixels.
    label = "without group" if group is None else f"group {group}"
    return hashlib.sha256(pixels.digest() + label.encode()).digest()
