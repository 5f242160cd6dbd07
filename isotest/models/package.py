"""``package:DISTRIBUTION/PATH``: weights inside an installed distribution."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from isotest.errors import SourceError
from isotest.installed import named_inside
from isotest.models.checkpoint import from_folder
from isotest.models.path import from_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path, PurePosixPath

    from isotest.models.registry import Built, Request

_FILES = (".gguf", ".safetensors")


def build(request: Request) -> Built:
    """A ``save_pretrained`` folder, a GGUF file, or a safetensors file, in a package.

    Raises:
        MissingError: the distribution isn't installed.
        SourceError: it holds no such model, or weights as in ``path:``.
    """
    source = request.source
    source.require_options({"architecture"})
    what = str(source)
    found, name = locate(source.location, what)
    built = from_file(found, request) if found.is_file() else from_folder(found, request)
    return replace(built, libraries=(*built.libraries, name))


def locate(location: str, what: str) -> tuple[Path, str]:
    """The folder or file that ``DISTRIBUTION/PATH`` names, and the distribution's name.

    PATH starts at the distribution's root or at its top-level package. It is looked up among the
    files of the distribution, so it cannot lead anywhere else.

    Raises:
        MissingError: the distribution isn't installed.
        SourceError: a malformed location, or no or several such paths in the distribution.
    """
    found, path = named_inside(location, f"source {what!r}")
    models = _models(found.files)
    matches = found.matches(path, models)
    if len(matches) != 1:
        listed = ", ".join(map(str, models)) or "none"
        count = "no" if not matches else f"{len(matches)}"
        raise SourceError(
            f"source {what!r}: {count} model at {path} in {found.name} {found.version}; "
            f"folders with a config.json, GGUF and safetensors files in it: {listed}"
        )
    return found.root / matches[0], found.name


def _models(files: Sequence[PurePosixPath]) -> list[PurePosixPath]:
    """What may hold a model: folders with a ``config.json``, GGUF and safetensors files."""
    folders = {file.parent for file in files if file.name == "config.json"}
    return sorted(folders | {file for file in files if file.suffix in _FILES})
