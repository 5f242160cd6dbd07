"""``folder:PATH[?pattern=GLOB]``: the images in a folder and below it."""

from __future__ import annotations

import os
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from isotest.data.image import SUFFIXES, decode
from isotest.data.json_lines import json_lines
from isotest.data.rows import Row, Rows, group_name
from isotest.errors import MissingError, SourceError
from isotest.installed import leads_out

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isotest.source import Source

METADATA = "metadata.jsonl"


def open_folder(source: Source, *, base: Path, download: bool) -> Rows:
    """Open ``folder:PATH``; ``pattern`` keeps the files whose path below PATH matches it."""
    source.require_options(("pattern",))
    folder = base / Path(source.location).expanduser()
    return FolderRows(folder, source.options.get("pattern", "*"))


class FolderRows:
    """The images below ``folder``, sorted by their path below it, with ``/`` between its parts.

    A file is an image when its suffix is one of ``isotest.data.image.SUFFIXES``, in any case; other
    files, and files and folders whose name starts with a dot, are not. ``*`` in ``pattern``
    matches ``/`` too, so ``*.png`` is every PNG file at any depth.

    A ``metadata.jsonl`` in a folder names files below that folder and their groups, one JSON object
    a line, as in the ``imagefolder`` convention of ``datasets``:
    ``{"file_name": "a/1.png", "group": "scene 1"}``. A file without a group is independent. Where
    there is a metadata file, each image below it must be in it: an image that was forgotten would
    otherwise count as independent.

    Raises:
        MissingError: there is no such folder.
        SourceError: no images, or metadata that do not fit the files.
    """

    def __init__(self, folder: Path, pattern: str = "*") -> None:
        if not folder.exists():
            raise MissingError(
                f"the folder {folder} does not exist", "create it or correct the data source"
            )
        if not folder.is_dir():
            raise SourceError(f"data source folder:{folder}: expected a folder, found a file")
        self._folder = folder
        files = _walk(folder)
        self._names = [name for name in files if _is_image(name) and fnmatchcase(name, pattern)]
        if not self._names:
            raise SourceError(_no_images(folder, pattern, files))
        self._groups = _read_groups(folder, files)
        self._refuse_forgotten(files)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def grouped(self) -> bool:
        """Whether a metadata file names a group."""
        return any(group is not None for group in self._groups.values())

    def read(self, positions: Sequence[int]) -> Iterator[Row]:
        """The images at ``positions`` in the sorted list of files."""
        for position in positions:
            name = self._names[position]
            path = self._folder / name
            yield Row(str(path), decode(path, str(path)), self._groups.get(name))

    def _refuse_forgotten(self, files: list[str]) -> None:
        for metadata in (file for file in files if PurePosixPath(file).name == METADATA):
            below = _prefix(metadata)
            for name in self._names:
                if name.startswith(below) and name not in self._groups:
                    raise SourceError(
                        f"{self._folder / metadata}: has no row for {name.removeprefix(below)!r}; "
                        'add one (with "group": null if it is independent) or remove the image'
                    )


def _walk(folder: Path) -> list[str]:
    """Paths below ``folder`` of all files that are not hidden, sorted."""

    def refuse(error: OSError) -> None:
        raise SourceError(f"data source folder:{folder}: cannot be read ({error})") from error

    files = []
    for parent, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        below = Path(parent).relative_to(folder)
        files += [(below / name).as_posix() for name in names if not name.startswith(".")]
    return sorted(files)


def _is_image(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in SUFFIXES


def _no_images(folder: Path, pattern: str, files: list[str]) -> str:
    counted = Counter(PurePosixPath(name).suffix.lower() or "no suffix" for name in files)
    found = ", ".join(f"{count} × {suffix}" for suffix, count in counted.most_common(8))
    expected = f"images ({' '.join(sorted(SUFFIXES))})"
    if pattern != "*":
        expected += f" that match {pattern!r}"
    return f"data source folder:{folder}: expected {expected}, found {found or 'no files'}"


def _prefix(metadata: str) -> str:
    parent = PurePosixPath(metadata).parent.as_posix()
    return "" if parent == "." else f"{parent}/"


def _read_groups(folder: Path, files: list[str]) -> dict[str, str | None]:
    """The group of each file that a metadata file names."""
    present = set(files)
    groups: dict[str, str | None] = {}
    for file in files:
        base = PurePosixPath(file).name
        if base in ("metadata.csv", "metadata.parquet"):
            raise SourceError(f"{folder / file}: is not read here; write it as {METADATA}")
        if base == METADATA:
            for where, name, group in _metadata_rows(folder / file, _prefix(file)):
                if name not in present:
                    raise SourceError(f"{where}: names {name!r}, which is not in {folder}")
                if name in groups:
                    raise SourceError(f"{where}: names {name!r} a second time")
                groups[name] = group
    return groups


def _metadata_rows(path: Path, prefix: str) -> Iterator[tuple[str, str, str | None]]:
    """Place, file (its path below the data folder) and group of each row."""
    for where, row in json_lines(path):
        name = row.get("file_name")
        if not isinstance(name, str) or not name:
            raise SourceError(f'{where}: expected {{"file_name": "…"}}, found {str(row)[:80]}')
        if leads_out(name):
            raise SourceError(f"{where}: {name!r} leads out of the folder; name a file below it")
        yield where, prefix + PurePosixPath(name).as_posix(), group_name(row.get("group"), where)
