"""The feed of a stack of blocks: sequences of vectors, which are its inputs as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isotest.errors import SourceError
from isotest.models.feed import PlainFeed
from isotest.models.feeds import input_name, refuse_overrides

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor, nn

    from isotest.data.embeddings import DrawnSequence
    from isotest.models.feeds import FeedRequest


def vectors_feed(request: FeedRequest) -> PlainFeed:
    """A feed of vectors as wide as the model's configuration says.

    Raises:
        SourceError: it does not say, or the suite has something to say of images.
    """
    refuse_overrides(request)
    width: Any = getattr(getattr(request.module, "config", None), "width", None)
    if not isinstance(width, int):
        raise SourceError(
            f"source {request.what!r}: modality 'embeddings' feeds a stack of blocks vectors, and "
            f"{type(request.module).__name__} does not say how wide (it has no config.width); use "
            "block:, or a suite with a table [drift] to study one block of another model"
        )
    return feed_of_width(request.module, width)


def feed_of_width(module: nn.Module, width: int) -> PlainFeed:
    """A feed of vectors of a given width; a blank one is zeros, two positions."""
    return PlainFeed(_Vectors(input_name(module), width), _Nothing())


@dataclass(frozen=True)
class _Vectors:
    """Sequences of one length, one batch."""

    argument: str
    width: int

    def __call__(self, contents: Sequence[DrawnSequence | _Nothing]) -> Mapping[str, Tensor]:
        """(B, L, D) float32; the model's dtype is what they are cast to."""
        import numpy as np
        import torch

        return {
            self.argument: torch.from_numpy(
                np.stack([content.vectors(self.width) for content in contents])
            )
        }

    def describe(self) -> Mapping[str, str | int | float]:
        """Nothing: width and source say everything."""
        return {}


@dataclass(frozen=True)
class _Nothing:
    """A blank sequence."""

    def vectors(self, width: int) -> Any:
        """(2, ``width``) zeros."""
        import numpy as np

        return np.zeros((2, width), dtype=np.float32)
