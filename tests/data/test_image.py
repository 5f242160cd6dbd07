from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from isotest.data.image import decode, to_rgb
from isotest.errors import SourceError
from tests.data.images import encoded, plain

if TYPE_CHECKING:
    from pathlib import Path


def pixel(image: Image.Image, at: tuple[int, int] = (0, 0)) -> object:
    assert image.mode == "RGB"
    return image.getpixel(at)


def test_rgb_is_unchanged() -> None:
    image = Image.new("RGB", (2, 2), (1, 2, 3))
    assert pixel(to_rgb(image, "x")) == (1, 2, 3)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (Image.new("L", (2, 2), 77), (77, 77, 77)),
        (Image.new("1", (2, 2), 1), (255, 255, 255)),
        (Image.new("LA", (2, 2), (77, 0)), (77, 77, 77)),
        (Image.new("RGBA", (2, 2), (10, 20, 30, 0)), (10, 20, 30)),
        (Image.new("CMYK", (2, 2), (255, 0, 0, 0)), (0, 255, 255)),
    ],
)
def test_conversion_to_rgb(image: Image.Image, expected: tuple[int, int, int]) -> None:
    assert pixel(to_rgb(image, "x")) == expected


def test_palette_with_transparency_keeps_its_colours() -> None:
    image = Image.new("P", (2, 2), 1)
    image.putpalette([0, 0, 0, 200, 100, 50])
    image.info["transparency"] = b"\x00\x00"
    assert pixel(to_rgb(image, "x")) == (200, 100, 50)


def test_sixteen_bit_grey_is_scaled_not_clipped(tmp_path: Path) -> None:
    levels = np.array([[0, 257, 32768, 65535]], dtype=np.uint16)
    Image.fromarray(levels).save(tmp_path / "deep.png")
    image = to_rgb(decode(tmp_path / "deep.png", "deep.png"), "deep.png")
    assert np.asarray(image)[0, :, 0].tolist() == [0, 1, 128, 255]


def test_exif_orientation_is_applied(tmp_path: Path) -> None:
    image = plain(0, (4, 2))
    exif = Image.Exif()
    exif[0x0112] = 6  # stored lying on its side
    image.save(tmp_path / "turned.jpg", exif=exif)
    assert to_rgb(decode(tmp_path / "turned.jpg", "x"), "x").size == (2, 4)


def test_values_without_a_range_are_refused() -> None:
    with pytest.raises(SourceError, match=r"scan\.tif: has floating-point pixels"):
        to_rgb(Image.new("F", (2, 2), 0.5), "scan.tif")
    with pytest.raises(SourceError, match=r"scan\.tif: has values from 70000 to 70000"):
        to_rgb(Image.new("I", (2, 2), 70000), "scan.tif")
    with pytest.raises(SourceError, match=r"scan\.tif: has no pixels"):
        to_rgb(Image.new("RGB", (0, 2)), "scan.tif")


@pytest.mark.filterwarnings("ignore:Corrupt EXIF")
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"])
def test_every_truncation_is_one_message_that_names_the_file(kind: str) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    content = encoded(Image.fromarray(noise), kind)
    for kept in (0, 1, 10, len(content) // 2):
        with pytest.raises(SourceError, match=r"^image torn\.img: "):
            decode(content[:kept], "torn.img")


def test_text_is_no_image(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_text("not an image")
    with pytest.raises(SourceError, match=r"^image a\.png: not in an image format"):
        decode(tmp_path / "a.png", "a.png")


def test_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"^image gone\.png: cannot be decoded"):
        decode(tmp_path / "gone.png", "gone.png")


@pytest.mark.parametrize("limit", [8, 4])  # beyond the limit Pillow warns, beyond twice it raises
def test_decompression_bombs_are_refused(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    with pytest.raises(SourceError, match=rf"^image bomb\.png: .*at most {limit} pixels"):
        decode(encoded(plain(0, (3, 3))), "bomb.png")


def test_opening_data_imports_no_torch() -> None:
    code = (
        "import sys; from isotest.data import open_data; "
        "next(iter(open_data('sample:photographs'))); "
        "print([name for name in ('torch', 'transformers', 'datasets') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_only_files_are_read(tmp_path: Path) -> None:
    """A repository may hold links, and some of what they lead to has no end."""
    (tmp_path / "a.png").symlink_to("/dev/zero")
    with pytest.raises(SourceError, match=r"a\.png: expected a file, found something else"):
        decode(tmp_path / "a.png", "a.png")
