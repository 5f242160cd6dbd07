"""What a data source will yield, by content and without decoding it (torch-free)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import isotest
from isotest.content import ContentDigests, combined_digest

if TYPE_CHECKING:
    from isotest.source import Source

SAMPLES = Path(isotest.__file__).parent / "samples"


def data_identity(
    source: Source, *, base: Path | None, digests: ContentDigests | None = None
) -> str | None:
    """The identity of the samples of ``source``; ``None`` where there is none.

    Args:
        source: the data source; how many of its samples are used, and with which seed, is not part
            of it.
        base: what relative paths start from; the working directory by default.
        digests: remembers the digests of large files.

    Returns:
        64 hexadecimal digits, or ``None``: arbitrary code, a remote data set, or something that is
        not here (whoever loads it says what is missing).
    """
    digests = digests or ContentDigests()
    path = _path(source, base or Path.cwd())
    content = None if path is None else digests.of(path)
    if path is None or content is None:
        return None
    suffix = path.suffix if source.scheme == "file" else ""
    location = source.location if source.scheme == "sample" else ""
    return combined_digest([source.scheme, location, suffix, dict(source.options), content])


def _path(source: Source, base: Path) -> Path | None:
    match source.scheme:
        case "sample" if "/" not in source.location and not source.location.startswith("."):
            return SAMPLES / source.location
        case "folder" | "file":
            return base / Path(source.location).expanduser()
        case _:
            return None
