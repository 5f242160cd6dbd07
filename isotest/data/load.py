"""``open_data``: a data source, by its name, as samples."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, cast

from isotest.data.rows import Rows, Stream
from isotest.errors import SourceError
from isotest.source import DATA_SCHEMES, Source, did_you_mean, parse_source

if TYPE_CHECKING:
    from collections.abc import Iterable

    from PIL.Image import Image

    from isotest.data.dataset import Dataset

OPENERS: dict[str, dict[str, str]] = {
    "vision": {
        "sample": "isotest.data.sample:open_sample",
        "folder": "isotest.data.folder:open_folder",
        "file": "isotest.data.file:open_file",
        "hub": "isotest.data.hub:open_hub",
        "package": "isotest.data.package:open_package",
        "python": "isotest.data.python:open_python",
    }
}
"""Modality, scheme → ``module:function`` of its opener; imported only when it is used."""


class Opener(Protocol):
    """Opens one kind of source: cheap checks now, decoding while reading."""

    def __call__(self, source: Source, *, base: Path, download: bool) -> Rows | Stream:
        """Paths start from ``base``; ``download`` allows the network."""
        ...


def open_data(
    source: Source | str,
    *,
    modality: str = "vision",
    samples: int | Literal["all"] = "all",
    seed: int = 0,
    download: bool = False,
    base: Path | None = None,
) -> Dataset:
    """Open a data source.

    A source whose images have positions yields a subset drawn by ``seed``, in the source's order;
    a stream yields its first ``samples`` images after a shuffle by ``seed``.

    Args:
        source: for example ``sample:photographs``, ``folder:data/val?pattern=*.png``,
            ``file:val.parquet?image=image&group=scene``, ``hub:ORG/NAME?split=validation``,
            ``package:DIST/path``, ``python:module:function``.
        modality: which kind of data; ``"vision"``.
        samples: how many images to use.
        seed: of the selection.
        download: whether the source may use the network.
        base: the folder that relative paths start from; the working directory unless given.

    Returns:
        Samples that are decoded while iterating; every iteration yields the same ones.

    Raises:
        SourceError: the source is misspelt, empty or malformed, or has fewer samples.
        MissingError: it could be had but is not here.

    >>> data = open_data("sample:photographs", samples=3, seed=0)
    >>> [(sample.index, sample.unit, sample.content.size) for sample in data]
    [(0, 0, (224, 224)), (1, 1, (224, 224)), (2, 2, (224, 224))]
    """
    if modality not in OPENERS:
        raise SourceError(f"unknown modality {modality!r}{did_you_mean(modality, OPENERS)}")
    if isinstance(source, str):
        source = parse_source(source, DATA_SCHEMES)
    openers = OPENERS[modality]
    if source.scheme not in openers:
        raise SourceError(
            f"data source {str(source)!r}: {source.scheme}: is no source of {modality} data"
            f"{did_you_mean(source.scheme, openers)}"
        )
    if samples != "all" and (isinstance(samples, bool) or samples < 1):
        raise SourceError(f"data source {str(source)!r}: samples = {samples}, expected at least 1")
    if seed < 0:
        raise SourceError(f"data source {str(source)!r}: seed = {seed}, expected 0 or more")
    base = base or Path.cwd()
    module, _, function = openers[source.scheme].partition(":")
    opener = cast("Opener", getattr(importlib.import_module(module), function))
    return _select(opener(source, base=base, download=download), source, samples, seed, base)


def _select(
    opened: Rows | Stream, source: Source, samples: int | Literal["all"], seed: int, base: Path
) -> Dataset:
    from isotest.data.selection import Selected, Taken, subset, too_many

    description: dict[str, str | int] = {"source": portable_name(source, base), "seed": seed}
    available = len(opened) if isinstance(opened, Rows) else opened.available()
    wanted = available if samples == "all" else samples
    if wanted is None:
        raise SourceError(
            f"data source {str(source)!r}: its size is not known beforehand; say how many samples"
        )
    if available is not None and wanted > available:
        raise too_many(str(source), wanted, available)
    if isinstance(opened, Rows):
        selection = "all" if wanted == available else "subset"
        positions = subset(len(opened), wanted, seed)
        return Selected(opened, positions, {**description, "selection": selection})
    return Taken(opened, wanted, seed, {**description, "selection": opened.shuffle})


def portable_name(source: Source, base: Path) -> str:
    """``source`` as text that means the same on another machine: no absolute path in it."""
    if source.scheme not in ("folder", "file"):
        return str(source)
    path = Path(source.location)
    if path.is_absolute():
        below = path.is_relative_to(base.resolve())
        path = path.relative_to(base.resolve()) if below else Path(path.name)
    return str(Source(source.scheme, path.as_posix(), source.revision, source.options))


def images_as_data(images: Iterable[Image | tuple[Image, object]]) -> Dataset:
    """PIL images, or pairs (image, group), as a data set.

    Raises:
        SourceError: there are none, or something else is among them.

    >>> from PIL import Image
    >>> data = images_as_data([(Image.new("L", (8, 8)), "a"), (Image.new("L", (8, 8)), "a")])
    >>> [sample.unit for sample in data]
    [0, 0]
    """
    from isotest.data.python import PythonRows
    from isotest.data.selection import Selected

    rows = PythonRows(list(images), "images")
    return Selected(rows, range(len(rows)), {"source": "images", "selection": "all"})
