"""One clip as a model hears it, and what turns clips into its inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy import float32, int64
    from numpy.typing import NDArray

    from isotest.data.dataset import Sample
    from isotest.models.loaded import Inputs


@dataclass(frozen=True)
class Clip:
    """A recording, and the ids that a decoder reads while the encoder hears it.

    Attributes:
        samples: (n,) float32, at the model's rate.
        read: (m,) ids, special ones included; ``None`` where there is no decoder.
    """

    samples: NDArray[float32]
    read: NDArray[int64] | None = None


class Hearing(Protocol):
    """Turns clips into the keyword inputs of one kind of model."""

    @property
    def rate(self) -> int:
        """Samples a second."""
        ...

    def clip(self, samples: NDArray[float32], sample: Sample) -> Clip:
        """A recording at the model's rate as a clip; ``sample``: what it was made of.

        Raises:
            SourceError: too short, too long, or without the transcript that is to be read.
        """
        ...

    def together(self, first: Clip, other: Clip) -> bool:
        """Whether two clips may share a batch without changing each other's numbers."""
        ...

    def batch(self, clips: Sequence[Clip]) -> Inputs:
        """One batch, with masks."""
        ...

    def blank(self) -> Clip:
        """A second of silence."""
        ...

    def describe(self) -> dict[str, str | int | float]:
        """What it adds to the protocol."""
        ...
