"""Writing a file so that a reader, a crash or a full disk only ever sees it whole: old or new."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TEMPORARY_SUFFIX = ".isotest-tmp"
_ABANDONED_AFTER_SECONDS = 3600


def write_atomically(content: bytes, path: Path) -> None:
    """Replace ``path`` by ``content``: temporary file beside it, fsync, rename.

    Whatever goes wrong, ``path`` holds what it held before and no temporary file stays; only a
    killed process leaves one, which ``remove_abandoned`` clears.

    Raises:
        OSError: the folder is missing or read-only, the disk is full, ``path`` is a directory.
    """
    # Beside the target, because a rename is atomic only within one file system; not by the tempfile
    # module, whose files nobody else may read.
    temporary = path.parent / f".{secrets.token_hex(8)}{TEMPORARY_SUFFIX}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(temporary, flags, 0o666), "wb") as file:  # noqa: PTH123
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        # After the rename there is nothing left to remove. Ctrl-C passes through here as well.
        with contextlib.suppress(OSError):
            temporary.unlink()
    _sync_folder(path.parent)


def remove_abandoned(folder: Path) -> None:
    """Remove temporary files that a killed process left in ``folder`` more than an hour ago."""
    oldest = time.time() - _ABANDONED_AFTER_SECONDS
    with contextlib.suppress(OSError):
        for temporary in folder.glob(f".*{TEMPORARY_SUFFIX}"):
            if temporary.lstat().st_mtime < oldest:
                temporary.unlink()


def _sync_folder(folder: Path) -> None:
    """Make the rename itself survive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
