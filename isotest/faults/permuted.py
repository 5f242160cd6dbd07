"""Other data of the same shape and the same values."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from isotest.data.dataset import Content, Dataset, Sample
    from isotest.data.embeddings import DrawnSequence
    from isotest.models.loaded import LoadedModel


@contextmanager
def permuted_data(
    loaded: LoadedModel, dataset: Dataset, strength: float
) -> Iterator[tuple[LoadedModel, Dataset]]:
    """A share ``strength`` of every input's pixels, characters, samples or vectors moves."""
    yield loaded, _Permuted(dataset, strength)


class _Permuted:
    """The same inputs with some of their parts in another, fixed order."""

    def __init__(self, dataset: Dataset, share: float) -> None:
        self._dataset = dataset
        self._share = share

    def __iter__(self) -> Iterator[Sample]:
        import hashlib

        for sample in self._dataset:
            content, stored = _permuted(sample.content, self._share)
            if stored is None:
                yield sample
                continue
            digest = hashlib.sha256(sample.digest + stored).digest()
            yield replace(sample, content=content, digest=digest)

    def __len__(self) -> int:
        return len(self._dataset)

    @property
    def grouped(self) -> bool:
        return self._dataset.grouped

    def describe(self) -> Mapping[str, str | int | None]:
        return self._dataset.describe()


def order(length: int, share: float) -> NDArray[np.int64]:
    """Positions 0 … ``length`` − 1, a ``share`` of them, but two at the least, in a cycle.

    What changes places at a share does so at every larger one.

    >>> import numpy as np
    >>> int((order(100, 0.25) != np.arange(100)).sum()), len(set(order(100, 0.25).tolist()))
    (25, 100)
    """
    import numpy as np

    moved = np.random.default_rng(0).permutation(length)[: max(2, round(share * length))]
    positions = np.arange(length)
    positions[moved] = np.roll(moved, 1)
    return positions


@dataclass(frozen=True)
class _Reordered:
    """A drawn sequence whose vectors stand in another order."""

    drawn: DrawnSequence
    positions: NDArray[np.int64]

    def vectors(self, width: int) -> NDArray[np.float32]:
        reordered: NDArray[np.float32] = self.drawn.vectors(width)[self.positions]
        return reordered


def _permuted(content: Content, share: float) -> tuple[Content, bytes | None]:
    """``content`` in an order that depends on its length and the share only, and its bytes.

    ``None`` for bytes if that is the content as it was: of a blank page nothing can be permuted.
    """
    import numpy as np
    from PIL import Image

    from isotest.data.dataset import Waveform
    from isotest.data.embeddings import DrawnSequence

    if isinstance(content, str):
        text = "".join(content[position] for position in order(len(content), share))
        return text, None if text == content else text.encode()
    if isinstance(content, Waveform):
        samples = content.samples[order(len(content.samples), share)]
        same = np.array_equal(samples, content.samples)
        return replace(content, samples=samples), None if same else samples.tobytes()
    if isinstance(content, DrawnSequence):
        positions = order(content.of.table.length, share)
        return _Reordered(content, positions), positions.tobytes()
    pixels: NDArray[np.uint8] = np.asarray(content)
    rows = pixels.reshape(-1, pixels.shape[2])
    mixed = rows[order(len(rows), share)].reshape(pixels.shape)
    same = np.array_equal(mixed, pixels)
    return Image.fromarray(mixed), None if same else mixed.tobytes()
