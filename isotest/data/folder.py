"""``folder:PATH[?pattern=GLOB]``: the images, texts or recordings in a folder and below it."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from isotest.data.columns import require_columns
from isotest.data.json_lines import json_lines
from isotest.data.kind import holds
from isotest.data.rows import Row, Rows, group_name
from isotest.errors import MissingError, SourceError
from isotest.installed import leads_out

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isotest.data.kind import Kind
    from isotest.source import Source

METADATA = "metadata.jsonl"


def open_folder(source: Source, *, base: Path, download: bool, kind: Kind) -> Rows:
    """Open ``folder:PATH``; ``pattern`` keeps the files whose path below PATH matches it."""
    return rows_below(base / Path(source.location).expanduser(), source, kind)


def rows_below(folder: Path, source: Source, kind: Kind) -> Rows:
    """The inputs below ``folder``, as the options of ``source`` say."""
    source.require_options(("pattern", *kind.columns, *kind.choices))
    options = source.options
    transcript = options.get("transcript") if "transcript" in kind.columns else None
    return FolderRows(folder, kind, options.get("pattern", "*"), transcript)


class FolderRows:
    """The inputs below ``folder``, sorted by their path below it, with ``/`` between its parts.

    A file is an input when its suffix is one of ``kind.suffixes``, in any case; other files, and
    files and folders whose name starts with a dot, are not. ``*`` in ``pattern`` matches ``/`` too,
    so ``*.png`` is every PNG file at any depth.

    A ``metadata.jsonl`` in a folder names files below that folder and their groups, one JSON object
    a line, as in the ``imagefolder`` convention of ``datasets``:
    ``{"file_name": "a/1.png", "group": "scene 1"}``. A file without a group is independent. Where
    there is a metadata file, each input below it must be in it: one that was forgotten would
    otherwise count as independent. ``transcript`` names the key that says what is spoken.

    Raises:
        MissingError: there is no such folder.
        SourceError: no inputs, or metadata that do not fit the files.
    """

    def __init__(
        self, folder: Path, kind: Kind, pattern: str = "*", transcript: str | None = None
    ) -> None:
        if not folder.exists():
            raise MissingError(
                f"the folder {folder} does not exist", "create it or correct the data source"
            )
        if not folder.is_dir():
            raise SourceError(f"data source folder:{folder}: expected a folder, found a file")
        self._folder = folder
        self._kind = kind
        files = _walk(folder)
        self._names = [name for name in files if holds(kind, name) and fnmatchcase(name, pattern)]
        if not self._names:
            raise SourceError(_nothing_found(folder, kind, pattern, files))
        self._metadata = _read_metadata(folder, files, transcript)
        if transcript is not None and not self._metadata:
            raise SourceError(
                f"data source folder:{folder}: transcript={transcript} expects a {METADATA} with "
                "transcripts, found none"
            )
        self._refuse_forgotten(files)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def grouped(self) -> bool:
        """Whether a metadata file names a group."""
        return any(row.group is not None for row in self._metadata.values())

    def read(self, positions: Sequence[int]) -> Iterator[Row]:
        """The inputs at ``positions`` in the sorted list of files."""
        for position in positions:
            name = self._names[position]
            path = self._folder / name
            content = self._kind.decode(path, str(path))
            known = self._metadata.get(name, _Metadata())
            if known.transcript is not None:
                content = replace(content, transcript=known.transcript)
            yield Row(str(path), content, known.group)

    def _refuse_forgotten(self, files: list[str]) -> None:
        for metadata in (file for file in files if PurePosixPath(file).name == METADATA):
            below = _prefix(metadata)
            for name in self._names:
                if name.startswith(below) and name not in self._metadata:
                    raise SourceError(
                        f"{self._folder / metadata}: has no row for {name.removeprefix(below)!r}; "
                        'add one (with "group": null if it is independent) or remove the '
                        f"{self._kind.noun}"
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


def _nothing_found(folder: Path, kind: Kind, pattern: str, files: list[str]) -> str:
    counted = Counter(PurePosixPath(name).suffix.lower() or "no suffix" for name in files)
    found = ", ".join(f"{count} × {suffix}" for suffix, count in counted.most_common(8))
    expected = f"{kind.plural} ({' '.join(sorted(kind.suffixes))})"
    if pattern != "*":
        expected += f" that match {pattern!r}"
    return f"data source folder:{folder}: expected {expected}, found {found or 'no files'}"


def _prefix(metadata: str) -> str:
    parent = PurePosixPath(metadata).parent.as_posix()
    return "" if parent == "." else f"{parent}/"


@dataclass(frozen=True)
class _Metadata:
    """What a metadata file says about one file."""

    group: str | None = None
    transcript: Any = None


def _read_metadata(folder: Path, files: list[str], transcript: str | None) -> dict[str, _Metadata]:
    """What is said about each file that a metadata file names."""
    present = set(files)
    known: dict[str, _Metadata] = {}
    for file in files:
        base = PurePosixPath(file).name
        if base in ("metadata.csv", "metadata.parquet"):
            raise SourceError(f"{folder / file}: is not read here; write it as {METADATA}")
        if base == METADATA:
            for where, row in json_lines(folder / file):
                name = _prefix(file) + _file_name(row, where)
                if name not in present:
                    raise SourceError(f"{where}: names {name!r}, which is not in {folder}")
                if name in known:
                    raise SourceError(f"{where}: names {name!r} a second time")
                require_columns(where, (transcript,), row)
                said = None if transcript is None else row[transcript]
                known[name] = _Metadata(group_name(row.get("group"), where), said)
    return known


def _file_name(row: dict[str, Any], where: str) -> str:
    """The file that a row names, below the folder of its metadata file."""
    name = row.get("file_name")
    if not isinstance(name, str) or not name:
        raise SourceError(f'{where}: expected {{"file_name": "…"}}, found {str(row)[:80]}')
    if leads_out(name):
        raise SourceError(f"{where}: {name!r} leads out of the folder; name a file below it")
    return PurePosixPath(name).as_posix()
