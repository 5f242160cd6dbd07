"""``load_suite``: a file, read and validated; every fault in it named at once, with its line."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from isotest.errors import SuiteError
from isotest.suite.spec import Suite, SuiteFile


def load_suite(path: Path, root: Path | None = None) -> Suite:
    """Read a suite file.

    Args:
        path: the TOML file.
        root: the folder that the suite's id is relative to; the file's own folder unless given.

    Returns:
        The suite, with ``path`` absolute and ``id`` set.

    Raises:
        SuiteError: the file cannot be read, is no TOML, is no suite, or has faults: a line each,
            all of them, as ``file:line: what``.
    """
    path = path.absolute()
    shown = _shown(path)
    text = _read(path, shown)
    tables = _parse(text, shown)
    if not tables.keys() & {"modality", "data", "models", "checks"}:
        raise SuiteError(
            "no isotest suite: expected 'modality', [data], [[models]] and [checks.*]; found "
            + (", ".join(map(repr, tables)) or "no keys"),
            shown,
        )
    try:
        valid = SuiteFile.model_validate(tables)
    except ValidationError as error:
        from isotest.suite.faults import suite_error

        raise suite_error(error, tables, text, shown) from None
    fields = {name: getattr(valid, name) for name in SuiteFile.model_fields}
    return Suite.model_construct(
        valid.model_fields_set | {"path", "id"},
        **fields,
        path=path,
        id=_suite_id(path, root, shown),
    )


def _shown(path: Path) -> Path:
    """As short as the reader would type it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _read(path: Path, shown: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SuiteError(f"cannot be read: {error.strerror or error}", shown) from None
    try:
        return content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise SuiteError(
            f"no valid UTF-8: byte 0x{content[error.start]:02x} in column "
            f"{column}; save the file as UTF-8",
            shown,
            line,
        ) from None


def _parse(text: str, shown: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        if found := re.search(r" \(at line (\d+), column (\d+)\)$", message):
            line = int(found[1])
            message = f"{message[: found.start()]} (column {found[2]})"
        else:
            line = max(1, len(text.splitlines()))
        raise SuiteError(f"no valid TOML: {message}", shown, line) from None
    except RecursionError:
        raise SuiteError("no valid TOML: nested too deeply", shown) from None


def _suite_id(path: Path, root: Path | None, shown: Path) -> str:
    root = path.parent if root is None else root.absolute()
    if not path.is_relative_to(root):
        raise SuiteError(
            f"lies outside of {root}: its baselines would have no place; "
            "run pytest from a folder above it, or name one with --rootdir",
            shown,
        )
    return path.relative_to(root).with_suffix("").as_posix()
