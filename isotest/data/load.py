"""``open_data``: a data source, by its name, as samples."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, cast

from isotest.data.kind import kind_of
from isotest.data.rows import Rows, Stream
from isotest.errors import SourceError
from isotest.source import DATA_SCHEMES, Source, parse_source

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isotest.data.dataset import Dataset
    from isotest.data.kind import Kind

OPENERS: dict[str, str] = {
    "sample": "isotest.data.sample:open_sample",
    "folder": "isotest.data.folder:open_folder",
    "file": "isotest.data.file:open_file",
    "hub": "isotest.data.hub:open_hub",
    "package": "isotest.data.package:open_package",
    "python": "isotest.data.python:open_python",
}
"""Scheme → ``module:function`` of its opener, for every modality; imported when it is used."""


class Opener(Protocol):
    """Opens one kind of source: cheap checks now, decoding while reading."""

    def __call__(self, source: Source, *, base: Path, download: bool, kind: Kind) -> Rows | Stream:
        """Paths start from ``base``; ``download`` allows the network; ``kind`` decodes."""
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

    A source whose inputs have positions yields a subset drawn by ``seed``, in the source's order;
    a stream yields its first ``samples`` inputs after a shuffle by ``seed``.

    Args:
        source: for example ``sample:photographs``, ``folder:data/val?pattern=*.png``,
            ``file:val.parquet?image=image&group=scene``, ``hub:ORG/NAME?split=validation``,
            ``package:DIST/path``, ``python:module:function``.
        modality: which kind of data: ``"vision"``, ``"text"`` or ``"characters"`` (the same data),
            ``"speech"``; ``"embeddings"`` for ``embeddings:normal?length=…``.
        samples: how many inputs to use.
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
    if isinstance(source, str):
        source = parse_source(source, DATA_SCHEMES)
    if source.scheme == "embeddings":
        # Neither stored nor decoded, so that no kind of data has anything to say of them.
        from isotest.data.embeddings import open_embeddings

        return open_embeddings(source, samples=samples, seed=seed, modality=modality)
    if modality == "embeddings":
        raise SourceError(
            f"data source {str(source)!r}: modality 'embeddings' has no samples, but "
            f'{source.scheme}: does; use "embeddings:normal?std=0.02&length=128"'
        )
    if source.scheme == "task":
        raise SourceError(
            f"data source {str(source)!r}: the examples of a task are fed to the networks of that "
            "task alone, in a suite of modality 'tasks'"
        )
    kind_class = kind_of(modality)
    if samples != "all" and (isinstance(samples, bool) or samples < 1):
        raise SourceError(f"data source {str(source)!r}: samples = {samples}, expected at least 1")
    if seed < 0:
        raise SourceError(f"data source {str(source)!r}: seed = {seed}, expected 0 or more")
    base = base or Path.cwd()
    kind = kind_class(source.options, f"data source {str(source)!r}")
    module, _, function = OPENERS[source.scheme].partition(":")
    opener = cast("Opener", getattr(importlib.import_module(module), function))
    opened = kind.used(opener(source, base=base, download=download, kind=kind))
    return _select(opened, kind, source, samples, seed, base)


def _select(
    opened: Rows | Stream,
    kind: Kind,
    source: Source,
    samples: int | Literal["all"],
    seed: int,
    base: Path,
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
        return Selected(opened, kind, positions, {**description, "selection": selection})
    return Taken(opened, kind, wanted, seed, {**description, "selection": opened.shuffle})


def portable_name(source: Source, base: Path) -> str:
    """``source`` as text that means the same on another machine: no absolute path in it."""
    if source.scheme not in ("folder", "file"):
        return str(source)
    path = Path(source.location)
    if path.is_absolute():
        below = path.is_relative_to(base.resolve())
        path = path.relative_to(base.resolve()) if below else Path(path.name)
    return str(Source(source.scheme, path.as_posix(), source.revision, source.options))


def as_data(items: Iterable[object], modality: str = "vision") -> Dataset:
    """Contents in memory, or pairs (content, group), as a data set.

    Args:
        items: PIL images; texts; or :class:`isotest.data.Waveform` objects and pairs (array, rate).
        modality: what they are.

    Raises:
        SourceError: there are none, or something else is among them.

    >>> [sample.unit for sample in as_data([("one", "a"), ("two", "a")], "text")]
    [0, 0]
    """
    from isotest.data.python import PythonRows
    from isotest.data.selection import Selected

    kind = kind_of(modality)({}, "data")
    rows = PythonRows(list(items), kind.plural, kind)
    return Selected(rows, kind, range(len(rows)), {"source": kind.plural, "selection": "all"})
