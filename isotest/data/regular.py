"""Reading files that somebody else names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.errors import SourceError

if TYPE_CHECKING:
    from pathlib import Path


def read_regular(path: Path, what: str, largest: int | None = None) -> bytes:
    """The bytes of an ordinary file, of which there are at most ``largest``.

    Raises:
        SourceError: it is larger, or something else is there: a link to a device may be read
            without end, a pipe waited for; the message starts with ``what``.
        OSError: nothing is there, or it cannot be read.
    """
    if path.exists() and not path.is_file():
        raise SourceError(f"{what}: expected a file, found something else")
    if largest is not None and (size := path.stat().st_size) > largest:
        raise SourceError(f"{what}: has {size} bytes, expected at most {largest}; divide it")
    return path.read_bytes()
