"""``package:DIST/PATH[?pattern=GLOB]``: the images in a folder of an installed distribution."""

from __future__ import annotations

import importlib.util
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from isotest.data.folder import FolderRows, escapes
from isotest.errors import MissingError, SourceError

if TYPE_CHECKING:
    from isotest.data.rows import Rows
    from isotest.source import Source


def open_package(source: Source, *, base: Path, download: bool) -> Rows:
    """PATH is below the distribution's root or below one of its packages."""
    source.require_options(("pattern",))
    where = f"data source {str(source)!r}"
    name, slash, path = source.location.partition("/")
    path = path.rstrip("/")
    if not slash or not path:
        raise SourceError(f"{where}: expected 'package:distribution/folder'")
    if escapes(path):
        raise SourceError(f"{where}: {path!r} leads out of the distribution")
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError as error:
        raise MissingError(f"{where}: {name} is not installed", f"pip install {name}") from error
    folder = _folder(distribution, path)
    if folder is None:
        raise SourceError(f"{where}: {name} {distribution.version} has no folder {path!r}")
    return FolderRows(folder, source.options.get("pattern", "*"))


def _folder(distribution: metadata.Distribution, path: str) -> Path | None:
    """The folder ``path`` among the files that the distribution installed."""
    files = [file.as_posix() for file in distribution.files or () if ".." not in file.parts]
    packages = sorted({file.split("/")[0] for file in files if "/" in file})
    for candidate in (path, *(f"{package}/{path}" for package in packages)):
        if any(file.startswith(f"{candidate}/") for file in files):
            return Path(str(distribution.locate_file(candidate)))
    # An editable installation lists no files: its package lies where Python would import it from.
    spec = importlib.util.find_spec(distribution.name.replace("-", "_"))
    for location in (spec and spec.submodule_search_locations) or ():
        for root in (Path(location), Path(location).parent):
            if (root / path).is_dir() and (root / path).is_relative_to(location):
                return root / path
    return None
