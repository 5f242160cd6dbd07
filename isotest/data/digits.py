"""The handwritten digits that ship with isotest: 1,797 images of 8×8 pixels, grey levels 0 … 16.

They lie in ``samples/digits`` as one sheet, ``digits.png``, 40 digits a row in the order of
scikit-learn's ``load_digits``, each level v drawn as the grey value v·255/16, rounded; and as
``labels.txt``, one line per row of the sheet. *Optical Recognition of Handwritten Digits*,
E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, CC BY 4.0.

Digits at positions 0, 5, 10, … are held out, the other four fifths are for training. The data do
not say who wrote which digit, so every digit counts as independent.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

import isotest
from isotest.data.image import decode
from isotest.data.rows import Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

SPLITS = ("all", "training", "held-out")

SIDE = 8
DIGITS_A_ROW = 40
HELD_OUT_EVERY = 5


def load_digits(split: str = "all") -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Grey values, 0 … 255, of shape (n, 8, 8), and labels, 0 … 9, of shape (n,).

    ``round(grey * 16 / 255)`` is the original level.

    >>> images, labels = load_digits("held-out")
    >>> images.shape, labels[:3]
    ((360, 8, 8), array([0, 5, 0]))
    """
    folder = Path(isotest.__file__).parent / "samples" / "digits"
    sheet = np.asarray(decode(folder / "digits.png", "sample digits.png"))
    rows = sheet.reshape(-1, SIDE, DIGITS_A_ROW, SIDE).swapaxes(1, 2).reshape(-1, SIDE, SIDE)
    text = (folder / "labels.txt").read_text(encoding="ascii").replace("\n", "")
    labels = np.array([int(character) for character in text])
    chosen = positions(split, len(labels))
    return rows[chosen], labels[chosen]


def positions(split: str, available: int) -> NDArray[np.int64]:
    """The positions, in the whole set, of the digits of ``split``."""
    held_out = np.arange(available) % HELD_OUT_EVERY == 0
    chosen = {"all": np.ones(available, bool), "held-out": held_out, "training": ~held_out}
    return np.flatnonzero(chosen[split])


class DigitRows:
    """The digits of one split, as images."""

    def __init__(self, split: str) -> None:
        self._split = split
        self._images, _ = load_digits(split)

    def __len__(self) -> int:
        return len(self._images)

    @property
    def grouped(self) -> bool:
        """No: the data do not say who wrote which digit."""
        return False

    def read(self, positions: Sequence[int]) -> Iterator[Row]:
        """The digits at ``positions`` within the split."""
        for position in positions:
            yield Row(f"digit {position} ({self._split})", Image.fromarray(self._images[position]))
