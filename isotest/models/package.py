"""``package:DISTRIBUTION/PATH``: weights inside an installed distribution."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from isotest.errors import MissingError, SourceError
from isotest.models.checkpoint import from_folder
from isotest.models.path import from_file

if TYPE_CHECKING:
    from importlib.metadata import Distribution

    from isotest.models.registry import Built, Request


def build(request: Request) -> Built:
    """A ``save_pretrained`` folder, or a safetensors file with ``architecture=``, in a package.

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

    PATH starts at the distribution's root or at its top-level package. It is looked up in the list
    of files that the distribution was installed with, so it cannot lead anywhere else.

    Raises:
        MissingError: the distribution isn't installed.
        SourceError: a malformed location, or no or several such paths in the distribution.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    name, _, inside = location.partition("/")
    path = PurePosixPath(inside)
    if not inside or path.is_absolute() or ".." in path.parts:
        raise SourceError(
            f"source {what!r}: expected package:DISTRIBUTION/PATH with a path inside the "
            f"distribution, found {location!r}"
        )
    try:
        installed = distribution(name)
    except (PackageNotFoundError, ValueError):
        raise MissingError(
            f"source {what!r}: the package {name} is not installed", f"pip install {name}"
        ) from None
    models = _models(installed)
    matches = [found for found in models if found == path or found.parts[1:] == path.parts]
    if len(matches) != 1:
        listed = ", ".join(map(str, models)) or "none (is it an editable install?)"
        count = "no" if not matches else f"{len(matches)}"
        raise SourceError(
            f"source {what!r}: {count} model at {inside} in {name} {installed.version}; "
            f"folders with a config.json and safetensors files in it: {listed}"
        )
    return Path(str(installed.locate_file(matches[0]))), name


def _models(installed: Distribution) -> list[PurePosixPath]:
    """What may hold a model: folders with a ``config.json``, and safetensors files."""
    files = [PurePosixPath(str(file)) for file in installed.files or ()]
    inside = [file for file in files if ".." not in file.parts and not file.is_absolute()]
    folders = {file.parent for file in inside if file.name == "config.json"}
    return sorted(folders | {file for file in inside if file.suffix == ".safetensors"})
