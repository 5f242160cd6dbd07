"""``package:DIST/PATH[?pattern=GLOB]``: the inputs in a folder of an installed distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.data.folder import rows_below
from isotest.errors import SourceError
from isotest.installed import named_inside

if TYPE_CHECKING:
    from pathlib import Path

    from isotest.data.kind import Kind
    from isotest.data.rows import Rows
    from isotest.source import Source


def open_package(source: Source, *, base: Path, download: bool, kind: Kind) -> Rows:
    """PATH is below the distribution's root or below one of its packages."""
    where = f"data source {str(source)!r}"
    found, path = named_inside(source.location, where)
    folders = {folder for file in found.files for folder in file.parents}
    matches = found.matches(path, sorted(folders))
    if len(matches) != 1:
        count = "no folder" if not matches else f"{len(matches)} folders"
        listed = f": {', '.join(map(str, matches))}" if matches else ""
        raise SourceError(
            f"{where}: {found.name} {found.version} has {count} {str(path)!r}{listed}"
        )
    return rows_below(found.root / matches[0], source, kind)
