"""``embeddings:normal``: sequences of vectors from a random embedding table.

The drift experiment adds a common bias to them; without it they are the inputs of a suite of
modality ``embeddings``. How wide they are is a matter of the model that reads them.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isotest.data.dataset import Sample
from isotest.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Literal

    from numpy.typing import NDArray

    from isotest.source import Source

_OPTIONS = ("std", "vocabulary", "length", "bias")


@dataclass(frozen=True)
class EmbeddingTable:
    """A random embedding table, and how long the sequences are that are drawn from it.

    The defaults are BERT's: its initialisation, vocabulary and longest sequence (Devlin et al.
    2019).

    Attributes:
        std: standard deviation of the table's entries, which are N(0, std²).
        vocabulary: rows of the table.
        length: L, tokens of a sequence.
        bias: N, the length of what is added to every vector; not in the drift experiment, whose
            table says it.

    Raises:
        SourceError: a value that cannot be.
    """

    std: float = 0.02
    vocabulary: int = 30522
    length: int = 512
    bias: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.std < math.inf:
            raise SourceError(f"embeddings: expected std to be a number above 0, found {self.std}")
        if not 0 <= self.bias < math.inf:
            raise SourceError(
                f"embeddings: expected bias to be a number of at least 0, found {self.bias}"
            )
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


class DrawnSequences:
    """Sequences of a drawn table, with a bias, as a data set.

    They are what the drift experiment's first replicate reads where the bias is as long.

    Args:
        source: as text, for messages and the protocol.
        table: the embedding table and the length.
        sequences: how many, at least 1.
        seed: of table and sequences.
    """

    grouped = False
    """Whether samples may share a unit: each sequence is one."""

    def __init__(self, source: str, table: EmbeddingTable, sequences: int, seed: int) -> None:
        self.source = source
        self.table = table
        self.seed = seed
        self._sequences = sequences
        self._drawn: dict[int, NDArray[np.float32]] = {}

    def __len__(self) -> int:
        return self._sequences

    def __iter__(self) -> Iterator[Sample]:
        # The table follows from its size, the seed and how many ids were drawn before it.
        drawn = f"{self.table} {self._sequences} {self.seed} "
        for index in range(self._sequences):
            digest = hashlib.sha256(f"{drawn}{index}".encode()).digest()
            yield Sample(index, index, f"sequence {index}", DrawnSequence(self, index), digest)

    def vectors(self, width: int) -> NDArray[np.float32]:
        """(sequences, L, ``width``): all of them, drawn once for each width."""
        if width not in self._drawn:
            found = draw(
                self.table, sequences=self._sequences, width=width, seed=self.seed, replicate=0
            )
            self._drawn = {width: found.biased(self.table.bias)}
        return self._drawn[width]

    def describe(self) -> Mapping[str, str | int | None]:
        """Source, number of sequences and seed."""
        return {"source": self.source, "seed": self.seed, "samples": self._sequences}


@dataclass(frozen=True)
class DrawnSequence:
    """One sequence, of whatever width it is asked for.

    Attributes:
        of: all sequences.
        index: which one.
    """

    of: DrawnSequences
    index: int

    def vectors(self, width: int) -> NDArray[np.float32]:
        """(L, ``width``)."""
        vectors: NDArray[np.float32] = self.of.vectors(width)[self.index]
        return vectors


def open_embeddings(
    source: Source, *, samples: int | Literal["all"], seed: int, modality: str
) -> DrawnSequences:
    """The sequences of ``embeddings:normal?…``, for :func:`isotest.data.load.open_data`.

    Raises:
        SourceError: as :func:`embedding_table`; no number of samples; or another modality.
    """
    if modality != "embeddings":
        raise SourceError(
            f"data source {str(source)!r}: its samples are vectors, of modality 'embeddings'; the "
            f"modality here is {modality!r}"
        )
    if isinstance(samples, bool) or samples == "all" or samples < 1:
        raise SourceError(
            f"data source {str(source)!r}: embeddings are drawn, as many as are asked for: "
            f"expected a number of samples of at least 1, found {samples}"
        )
    if seed < 0:
        raise SourceError(f"data source {str(source)!r}: seed = {seed}, expected 0 or more")
    return DrawnSequences(str(source), embedding_table(source), samples, seed)


def embedding_table(source: Source) -> EmbeddingTable:
    """The table that ``embeddings:normal?std=…&vocabulary=…&length=…&bias=…`` describes.

    Raises:
        SourceError: another distribution than ``normal``, an unknown option, a value that cannot
            be.

    >>> from isotest.source import DATA_SCHEMES, parse_source
    >>> embedding_table(parse_source("embeddings:normal?length=64", DATA_SCHEMES))
    EmbeddingTable(std=0.02, vocabulary=30522, length=64, bias=0.0)
    """
    what = f"source {str(source)!r}"
    if source.location != "normal":
        raise SourceError(f"{what}: expected 'normal' behind 'embeddings:'")
    source.require_options(_OPTIONS)
    given: dict[str, Any] = {}
    for name, text in source.options.items():
        read = float if name in ("std", "bias") else int
        try:
            given[name] = read(text)
        except ValueError:
            raise SourceError(f"{what}: expected {name} to be a number, found {text!r}") from None
    try:
        return EmbeddingTable(**given)
    except SourceError as error:
        raise SourceError(f"{what}: {error}") from None
