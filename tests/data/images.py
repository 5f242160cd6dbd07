"""Images whose content a test can predict."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from PIL import Image

if TYPE_CHECKING:
    from pathlib import Path


def plain(grey: int, size: tuple[int, int] = (4, 3)) -> Image.Image:
    """An RGB image whose every channel and pixel is ``grey``."""
    return Image.new("RGB", size, (grey, grey, grey))


def encoded(image: Image.Image, kind: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind)
    return buffer.getvalue()


def write_images(folder: Path, names: list[str]) -> None:
    """One image per name; the i-th has grey value i."""
    for grey, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        plain(grey).save(folder / name)


def grey_of(image: Image.Image) -> int:
    value = image.getpixel((0, 0))
    assert isinstance(value, tuple)
    return int(value[0])
