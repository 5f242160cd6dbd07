"""From an image file, in whatever form, to 8-bit RGB.

| stored as | becomes |
|---|---|
| RGB, 8 bit | unchanged |
| 1-bit, grey, palette, CMYK, YCbCr, HSV | Pillow's own conversion, without ICC profiles |
| with transparency | the colours without it, as torchvision's and transformers' loaders |
| 16-bit grey | v / 257, rounded (Pillow's own conversion would clip at 255) |
| 16-bit colour | the high byte, by Pillow's decoder |
| floating point, 32-bit integers above 65535 | refused: no range is implied |
| EXIF orientation | applied |
| several frames or pages | the first one |

Pillow's limit on the number of pixels (decompression bombs) stays on, and its warning is an error
here.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from isotest.data.regular import read_regular
from isotest.errors import SourceError


def decode(content: Path | bytes, origin: str) -> Image.Image:
    """Decode an image file, or its bytes, completely; the mode stays as stored.

    Raises:
        SourceError: missing, empty, corrupt, truncated or too large; names ``origin``.
    """
    try:
        if isinstance(content, Path):
            content = read_regular(content, f"image {origin}")
        if not content:
            raise SourceError(f"image {origin}: the file is empty; replace or remove it")
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(content))
        image.load()
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise SourceError(
            f"image {origin}: {error}; expected at most {Image.MAX_IMAGE_PIXELS} pixels"
        ) from error
    except UnidentifiedImageError as error:
        raise SourceError(
            f"image {origin}: not in an image format that Pillow reads, or corrupt; "
            "replace or remove it"
        ) from error
    except SourceError:
        raise
    except Exception as error:
        # Pillow's decoders report damage as OSError, SyntaxError, struct.error and others.
        raise SourceError(
            f"image {origin}: cannot be decoded ({error}); replace or remove it"
        ) from error
    return image


def to_rgb(image: Image.Image, origin: str) -> Image.Image:
    """``image`` as 8-bit RGB, upright; see the table above.

    Raises:
        SourceError: a mode that implies no range, or no pixels at all; names ``origin``.
    """
    if 0 in image.size:
        width, height = image.size
        raise SourceError(f"image {origin}: has no pixels ({width}×{height})")
    try:
        upright = ImageOps.exif_transpose(image)
        if upright.mode == "RGB":
            return upright
        if upright.mode == "I" or upright.mode.startswith("I;16"):
            return _from_16_bit(upright, origin)
        if upright.mode == "F":
            raise SourceError(
                f"image {origin}: has floating-point pixels, which imply no range; "
                "store it with 8 or 16 bits"
            )
        if upright.mode in ("P", "PA"):
            upright = upright.convert("RGBA")
        return upright.convert("RGB")
    except (OSError, ValueError, SyntaxError) as error:
        raise SourceError(
            f"image {origin}: mode {image.mode} cannot be turned into RGB ({error}); "
            "store it as RGB or grey"
        ) from error


def _from_16_bit(image: Image.Image, origin: str) -> Image.Image:
    grey = np.asarray(image).astype(np.int64)
    if grey.min() < 0 or grey.max() > 65535:
        raise SourceError(
            f"image {origin}: has values from {grey.min()} to {grey.max()}, "
            "expected 0 to 65535; store it with 8 or 16 bits"
        )
    return Image.fromarray(np.rint(grey / 257).astype(np.uint8)).convert("RGB")
