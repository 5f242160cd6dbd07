"""JSON lines: one object a line, each with its place for messages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from isotest.data.regular import read_regular
from isotest.data.text import decode_utf8
from isotest.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Place (``file:line``) and object of every line that is not blank.

    Raises:
        SourceError: unreadable, not UTF-8, or a line that is no JSON object; names the line.
    """
    try:
        content = read_regular(path, str(path))
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error})") from error
    text = decode_utf8(content, str(path))
    # Not splitlines: it also splits at characters that may stand inside of a JSON string.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise SourceError(f"{where}: is not JSON ({error})") from error
        if not isinstance(row, dict):
            raise SourceError(f"{where}: expected an object, found {line.strip()[:80]}")
        yield where, row
