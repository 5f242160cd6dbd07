"""What every data source yields: samples in index order, each with its independent unit."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy import float32
    from numpy.typing import NDArray

Content = Any
"""A PIL image, a text (``str``) or a :class:`Waveform`, by the modality."""


@dataclass(frozen=True)
class Waveform:
    """Recorded sound.

    Attributes:
        samples: (n,) float32, one channel, full scale ±1.
        rate: samples a second, as recorded.
        transcript: what is said, where the source knows.
    """

    samples: NDArray[float32]
    rate: int
    transcript: str | None = None


@dataclass(frozen=True)
class Sample:
    """One decoded input.

    Attributes:
        index: position in the data set after selection, from 0, without gaps.
        unit: number of its independent group, by first appearance in index order, from 0; samples
            without a group are their own unit.
        origin: where it came from (a file, a row), for error messages.
        content: decoded: an image (RGB, 8 bit), a text, or a :class:`Waveform`, by the modality.
        digest: sha256 of the decoded content and of the group's name.
    """

    index: int
    unit: int
    origin: str
    content: Content
    digest: bytes


@runtime_checkable
class Dataset(Protocol):
    """A finite, repeatable stream of samples; decoding happens while iterating."""

    def __iter__(self) -> Iterator[Sample]: ...

    def __len__(self) -> int:
        """How many samples an iteration yields."""
        ...

    @property
    def grouped(self) -> bool:
        """Whether samples may share a unit (some sample names a group)."""
        ...

    def describe(self) -> Mapping[str, str | int | None]:
        """Flat description for the protocol (source, samples, seed); no absolute paths."""
        ...


def fingerprint(digests: Sequence[bytes]) -> str:
    """Digest of the digests of all samples, in index order: the identity of the decoded data."""
    return hashlib.sha256(b"".join(digests)).hexdigest()
