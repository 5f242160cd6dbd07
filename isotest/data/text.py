"""Texts: from bytes to Unicode, and which texts can be measured."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isotest.data.regular import read_regular
from isotest.data.rows import Row, Rows
from isotest.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from isotest.data.rows import Stream

_LINE_END = re.compile("\r\n?")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")


def decode_utf8(content: bytes, origin: str) -> str:
    r"""``content`` as UTF-8.

    Raises:
        SourceError: it is not; names ``origin``, the line and the byte of the whole, from 1.

    >>> decode_utf8("a\né".encode("latin-1"), "a.txt")
    Traceback (most recent call last):
    isotest.errors.SourceError: a.txt: cannot be read as UTF-8: line 2, byte 3 is 0xe9; save it so
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SourceError(
            f"{origin}: cannot be read as UTF-8: line {line}, byte {error.start + 1} is "
            f"0x{content[error.start]:02x}; save it so"
        ) from error


def decode(stored: Path | bytes, origin: str) -> str:
    r"""The text of a file, or of its bytes, as Python's own text mode reads it.

    ``\r\n`` and ``\r`` become ``\n``, so that a text is the same on every system, and a byte order
    mark at the start is dropped. Everything else stays, NUL and other control characters too.

    Raises:
        SourceError: unreadable or not UTF-8; names ``origin``.

    >>> decode(b"\xef\xbb\xbfone\r\ntwo", "notes.txt")
    'one\ntwo'
    """
    if not isinstance(stored, bytes):
        try:
            stored = read_regular(stored, f"text {origin}")
        except OSError as error:
            raise SourceError(f"text {origin}: cannot be read ({error})") from error
    return _LINE_END.sub("\n", decode_utf8(stored, f"text {origin}").removeprefix("\ufeff"))


def paragraphs(text: str) -> list[tuple[int, str]]:
    r"""What blank lines separate, each with the line it starts at, from 1.

    >>> paragraphs("\none\ntwo\n \t\n\nthree\n")
    [(2, 'one\ntwo'), (6, 'three')]
    """
    found = []
    start = 0
    for end, following in [
        *((blank.start(), blank.end()) for blank in _BLANK_LINES.finditer(text)),
        (len(text), len(text)),
    ]:
        paragraph = text[start:end].strip("\n")
        if paragraph.strip():
            leading = len(text[start:end]) - len(text[start:end].lstrip("\n"))
            found.append((text.count("\n", 0, start + leading) + 1, paragraph))
        start = following
    return found


def is_empty(text: str) -> bool:
    """Whether there is nothing but white space."""
    return not text.strip()


def checked(text: str, origin: str) -> str:
    r"""``text``, unchanged.

    Raises:
        SourceError: empty, or with half of a surrogate pair, which no encoding has; names
            ``origin``.
    """
    if is_empty(text):
        raise SourceError(
            f"text {origin}: is empty; remove it, or add 'empty=skip' to the source to leave out "
            "such texts"
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise SourceError(
            f"text {origin}: character {error.start + 1} is half of a surrogate pair "
            f"({text[error.start]!a}), which is no valid Unicode; repair what wrote it"
        ) from error
    return text


def without_empty(opened: Rows | Stream, where: str) -> Rows | Stream:
    """The texts of the source ``where`` that are not empty."""
    return FilledRows(opened, where) if isinstance(opened, Rows) else FilledStream(opened)


class FilledRows:
    """The rows that hold a text; reading all of them once tells which.

    Raises:
        SourceError: none does.
    """

    def __init__(self, rows: Rows, where: str) -> None:
        self._rows = rows
        everything = range(len(rows))
        read = zip(everything, rows.read(everything), strict=True)
        self._positions = [position for position, row in read if not is_empty(row.content)]
        if not self._positions:
            raise SourceError(f"{where}: all of its {len(rows)} texts are empty")

    def __len__(self) -> int:
        return len(self._positions)

    @property
    def grouped(self) -> bool:
        """Whether rows may name a group."""
        return self._rows.grouped

    def read(self, positions: Sequence[int]) -> Iterator[Row]:
        """The texts at ``positions`` among those that are not empty."""
        return self._rows.read([self._positions[position] for position in positions])


class FilledStream:
    """The texts of a stream that are not empty; nobody knows how many beforehand."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.shuffle = stream.shuffle
        self.grouped = stream.grouped

    def available(self) -> int | None:
        """Unknown."""
        return None

    def read(self, seed: int) -> Iterator[Row]:
        """All texts that are not empty, shuffled by ``seed``."""
        return (row for row in self._stream.read(seed) if not is_empty(row.content))
