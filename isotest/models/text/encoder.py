"""What turns a text into the units that a model reads: tokens, characters, bytes, words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    import hashlib
    from collections.abc import Callable

    from numpy.typing import NDArray

    Ids = NDArray[np.int64]


def ids(*rows: int) -> Ids:
    """Ids as an array."""
    return np.array(rows, np.int64)


def note_ids(digest: hashlib._Hash, ids: Ids) -> None:
    """Take a sequence of ids into the digest of all that a model has read."""
    digest.update(f"{ids.shape}".encode())
    digest.update(ids.astype("<i8").tobytes())


@dataclass(frozen=True)
class TextEncoder:
    """A text's units as ids, and what is added around them.

    Attributes:
        encode: a text to (n,) ids, or (n, k) where a unit is made of k parts (the characters of a
            word); nothing added.
        size: all ids are below it.
        units: what a unit is, for messages: ``"tokens"``, ``"characters"``, ``"bytes"``,
            ``"words"``.
        prefix: ids that come before a sequence, (p,) or (p, k).
        suffix: ids that come after it, (s,) or (s, k).
        padding: the id, or the (k,) ids, of a padding unit; ``None`` where there is none.
        side: where padding goes.
    """

    encode: Callable[[str], Ids]
    size: int
    units: str = "tokens"
    prefix: Ids = field(default_factory=ids)
    suffix: Ids = field(default_factory=ids)
    padding: int | Ids | None = None
    side: Literal["left", "right"] = "right"

    @property
    def added(self) -> int:
        """How many units are added to each sequence."""
        return len(self.prefix) + len(self.suffix)

    def sequence(self, body: Ids) -> Ids:
        """``body`` with what is added around it."""
        parts = [part for part in (self.prefix, body, self.suffix) if len(part)]
        return np.concatenate(parts) if parts else body
