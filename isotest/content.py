"""Digests of files and folders, quick on the second look: identity for the cache."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING

from isotest.atomic import write_atomically
from isotest.installed import installed

if TYPE_CHECKING:
    from collections.abc import Iterable

# Smaller files are read faster than a memory of them pays for.
_REMEMBERED_BYTES = 1 << 16
# A file this young may change again without its time stamp showing it.
_SETTLED_SECONDS = 2.0
_MAX_MEMORY_BYTES = 64 * 1024 * 1024


def combined_digest(parts: object) -> str:
    """Of any JSON-able value; equal values, equal digests."""
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(canonical.encode()).hexdigest()


class ContentDigests:
    """Digests by content; those of large files are remembered by path, size, times and inode.

    Args:
        folder: where to remember between runs, normally the cache folder; nowhere by default.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._path = None if folder is None else folder / "digests.json"
        self._memory: dict[str, list[int | str]] = {}
        self._changed = False
        if self._path is not None:
            self._memory = _read_memory(self._path)

    def of(self, path: Path) -> str | None:
        """The digest of a file, or of everything that is not hidden in a folder.

        ``None`` where it cannot be told: nothing there, unreadable, no ordinary file, or a
        symbolic link to a folder inside.
        """
        try:
            return self.of_files(_files(path))
        except OSError:
            return None

    def of_distribution(self, name: str) -> str | None:
        """Of the files of an installed distribution; ``None`` if not installed, or as editable."""
        found = installed(name)
        if found is None or found.editable or not found.files:
            return None
        return self.of_files(
            (file.as_posix(), found.root / file)
            for file in found.files
            if "__pycache__" not in file.parts
        )

    def of_files(self, files: Iterable[tuple[str, Path]]) -> str | None:
        """One digest of several files, each with the name it goes by; ``None`` as in ``of``."""
        try:
            return combined_digest(sorted((name, self._of_file(path)) for name, path in files))
        except OSError:
            return None
        finally:
            self._save()

    def _of_file(self, path: Path) -> str:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is no ordinary file")
        key = os.path.realpath(path)
        mark = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
        remembered = self._memory.get(key)
        if remembered is not None and remembered[:-1] == mark:
            return str(remembered[-1])
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        settled = time.time() - status.st_mtime > _SETTLED_SECONDS
        if self._path is not None and status.st_size >= _REMEMBERED_BYTES and settled:
            self._memory[key] = [*mark, digest]
            self._changed = True
        return digest

    def _save(self) -> None:
        if self._path is None or not self._changed:
            return
        self._changed = False
        self._memory = {key: mark for key, mark in self._memory.items() if Path(key).exists()}
        # Only speed is lost where this cannot be written; the cache itself says so.
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(json.dumps(self._memory).encode(), self._path)


def _files(path: Path) -> list[tuple[str, Path]]:
    """``path`` itself, or the files below it that are not hidden, by their path below it."""
    if not path.is_dir():
        return [("", path)]
    files = []
    for parent, folders, names in os.walk(path, onerror=_raise):
        folders[:] = [name for name in folders if not name.startswith((".", "__pycache__"))]
        for name in folders:
            if Path(parent, name).is_symlink():
                raise OSError(f"{Path(parent, name)} leads elsewhere")
        for name in names:
            if not name.startswith("."):
                file = Path(parent, name)
                files.append((file.relative_to(path).as_posix(), file))
    return files


def _raise(error: OSError) -> None:
    raise error


def _read_memory(path: Path) -> dict[str, list[int | str]]:
    """What is remembered; nothing where the file is missing or damaged."""
    try:
        if path.stat().st_size > _MAX_MEMORY_BYTES:
            return {}
        memory = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(memory, dict):
        return {}
    return {
        key: mark
        for key, mark in memory.items()
        if isinstance(mark, list)
        and len(mark) == 5
        and all(isinstance(part, int) for part in mark[:-1])
        and isinstance(mark[-1], str)
    }
