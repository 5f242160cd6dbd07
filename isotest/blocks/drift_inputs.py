"""What the drift experiment feeds a block: sequences from an embedding table, and a common bias."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isotest.errors import SourceError

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from isotest.source import Source

_OPTIONS = ("std", "vocabulary", "length")


@dataclass(frozen=True)
class EmbeddingTable:
    """A random embedding table, and how long the sequences are that are drawn from it.

    The defaults are BERT's: its initialisation, vocabulary and longest sequence (Devlin et al.
    2019).

    Attributes:
        std: standard deviation of the table's entries, which are N(0, std²).
        vocabulary: rows of the table.
        length: L, tokens of a sequence.

    Raises:
        SourceError: a value that cannot be.
    """

    std: float = 0.02
    vocabulary: int = 30522
    length: int = 512

    def __post_init__(self) -> None:
        if not 0 < self.std < math.inf:
            raise SourceError(f"embeddings: expected std to be a number above 0, found {self.std}")
        for name, size in (("vocabulary", self.vocabulary), ("length", self.length)):
            if not 2 <= size < 2**31:
                raise SourceError(
                    f"embeddings: expected {name} to be a whole number of at least 2, found {size}"
                )


@dataclass(frozen=True)
class Draw:
    """What one replicate of the experiment feeds its block.

    Attributes:
        ids: (B, L) rows of the table, drawn uniformly.
        x: (B, L, D) float32, these rows.
        direction: (D,) float64, of length 1: b_u / ‖b_u‖ with b_u ~ N(0, I).
    """

    ids: NDArray[np.int64]
    x: NDArray[np.float32]
    direction: NDArray[np.float64]

    def biased(self, norm: float) -> NDArray[np.float32]:
        """(B, L, D) x + b, with ‖b‖ = ``norm``."""
        return self.x + (self.direction * norm).astype(np.float32)


def draw(table: EmbeddingTable, *, sequences: int, width: int, seed: int, replicate: int) -> Draw:
    """Draw the sequences and the direction of the bias of one replicate.

    They follow from the arguments alone. NumPy's generator is used, whose numbers do not depend on
    the processor; ids come first, so that they do not depend on the width.

    Args:
        table: the embedding table and the length.
        sequences: B.
        width: D.
        seed: of the experiment.
        replicate: which repetition of it.

    >>> first = draw(EmbeddingTable(length=3), sequences=2, width=8, seed=0, replicate=0)
    >>> first.x.shape, bool(np.isclose(np.linalg.norm(first.direction), 1))
    ((2, 3, 8), True)
    """
    generator = np.random.default_rng([seed, replicate])
    ids = generator.integers(table.vocabulary, size=(sequences, table.length))
    direction = generator.standard_normal(width)
    rows = generator.standard_normal((table.vocabulary, width), dtype=np.float32)
    rows *= np.float32(table.std)
    return Draw(ids, rows[ids], direction / np.linalg.norm(direction))


def embedding_table(source: Source) -> EmbeddingTable:
    """The table that ``embeddings:normal?std=…&vocabulary=…&length=…`` describes.

    Raises:
        SourceError: another distribution than ``normal``, an unknown option, a value that cannot
            be.

    >>> from isotest.source import DATA_SCHEMES, parse_source
    >>> embedding_table(parse_source("embeddings:normal?length=64", DATA_SCHEMES))
    EmbeddingTable(std=0.02, vocabulary=30522, length=64)
    """
    what = f"source {str(source)!r}"
    if source.location != "normal":
        raise SourceError(f"{what}: expected 'normal' behind 'embeddings:'")
    source.require_options(_OPTIONS)
    given: dict[str, Any] = {}
    for name, text in source.options.items():
        read = float if name == "std" else int
        try:
            given[name] = read(text)
        except ValueError:
            raise SourceError(f"{what}: expected {name} to be a number, found {text!r}") from None
    try:
        return EmbeddingTable(**given)
    except SourceError as error:
        raise SourceError(f"{what}: {error}") from None
