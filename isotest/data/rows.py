"""What a source's opener returns: what can be read by position, or only in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from isotest.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isotest.data.dataset import Content


@dataclass(frozen=True)
class Row:
    """One input as its source stores it.

    Attributes:
        origin: the file or row, for messages.
        content: decoded: an image in any mode, a text, or a waveform.
        group: name of the thing it shares with other, dependent inputs; ``None``: independent.
    """

    origin: str
    content: Content
    group: str | None = None


@runtime_checkable
class Rows(Protocol):
    """A source whose inputs have positions ``0 … len − 1``."""

    def __len__(self) -> int:
        """How many inputs there are."""
        ...

    @property
    def grouped(self) -> bool:
        """Whether rows may name a group."""
        ...

    def read(self, positions: Sequence[int]) -> Iterator[Row]:
        """The inputs at these increasing positions, decoded one by one."""
        ...


class Stream(Protocol):
    """A source that can only be read in order, such as a remote data set."""

    @property
    def shuffle(self) -> str:
        """How its order follows from the seed, in words, for the protocol."""
        ...

    @property
    def grouped(self) -> bool:
        """Whether rows may name a group."""
        ...

    def available(self) -> int | None:
        """How many inputs there are, where that is known beforehand."""
        ...

    def read(self, seed: int) -> Iterator[Row]:
        """All inputs, shuffled by ``seed``, decoded one by one."""
        ...


def group_name(value: object, origin: str) -> str | None:
    """``value`` as a group's name: a string or a whole number; ``None`` for no group.

    Raises:
        SourceError: anything else; names ``origin``.
    """
    if value is None:
        return None
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise SourceError(
        f"{origin}: expected a group that is a non-empty string, a whole number or null, "
        f"found {value!r}"
    )
