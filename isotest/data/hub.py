"""``hub:ORG/NAME[@REVISION]?split=SPLIT[&config=NAME&COLUMN OPTIONS]``.

The content is in the column ``image``, ``text`` or ``audio``; an option of that name names another,
``group=`` the column of what dependent inputs share, ``transcript=`` that of what is spoken.

A copy that ``datasets`` has already prepared on this machine is used as it is; otherwise, where
downloads are allowed, the split is streamed: shuffled by the seed, and read only as far as needed.
The two select different inputs, so the selection is part of the description. Data sets that come
as code are never run.
"""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotest.data.columns import Columns, columns_of, require_columns
from isotest.errors import MissingError, SourceError, one_line
from isotest.hub import hub_fault, require_access

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isotest.data.kind import Kind
    from isotest.data.rows import Row, Rows, Stream
    from isotest.source import Source

BUFFER = 1000
_HOLD_RECORDINGS = ("parquet", "arrow")
_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")


def open_hub(source: Source, *, base: Path, download: bool, kind: Kind) -> Rows | Stream:
    """Open the prepared copy of a data set, or stream it."""
    source.require_options(("split", "config", kind.column, "group", *kind.columns, *kind.choices))
    where = f"data source {str(source)!r}"
    if not _NAME.fullmatch(source.location):
        raise SourceError(f"{where}: expected 'hub:organisation/name'")
    if Path(source.location).exists():
        raise SourceError(
            f"{where}: {source.location} is a folder in the working directory, which datasets "
            "would read in place of the hub; use folder:, or work from elsewhere"
        )
    columns = columns_of(source, kind, kind.column)
    builder = _prepared(source)
    if builder is not None:
        split = _split(builder.as_dataset, source, builder.info.splits)
        return PreparedRows(_undecoded(split, columns, where), where, columns)
    if not download:
        pinned = f" at {source.revision}" if source.revision else ""
        raise MissingError(
            f"{where}: {source.location}{pinned} is not on this machine",
            "add --isotest-download to stream it, which leaves no copy, or prepare one for later "
            f"runs: {_preparation(source)}",
        )
    builder = _remote(source)
    split = _split(builder.as_streaming_dataset, source, builder.info.splits)
    split = _undecoded(split, columns, where)
    if builder.name not in _HOLD_RECORDINGS and _is_audio(split, columns.content):
        raise SourceError(
            f"{where}: its recordings are files of their own ({builder.name}), which datasets "
            "cannot stream without torchcodec; use the hub's own copy in Parquet: "
            f"hub:{source.location}@refs/convert/parquet"
        )
    known = (builder.info.splits or {}).get(source.options["split"])
    return RemoteStream(split, where, columns, known.num_examples if known else None)


class PreparedRows:
    """A split of a data set that ``datasets`` has prepared on this machine."""

    def __init__(self, split: Any, where: str, columns: Columns) -> None:
        self._split = split
        self._where = where
        self._columns = columns
        self.grouped = columns.group is not None

    def __len__(self) -> int:
        return len(self._split)

    def read(self, positions: Sequence[int]) -> Iterator[Row]:
        """The inputs in these rows."""
        for position in positions:
            origin = f"{self._where}, row {position}"
            with _decoding(origin):
                values = self._split[position]
            yield self._columns.row(_located(values, self._columns.content), origin)


class RemoteStream:
    """A split that is read over the network, in shuffled order."""

    shuffle = f"stream, shuffled in a buffer of {BUFFER}"

    def __init__(self, split: Any, where: str, columns: Columns, available: int | None) -> None:
        self._split = split
        self._where = where
        self._columns = columns
        self._available = available or None
        self.grouped = columns.group is not None

    def available(self) -> int | None:
        """The number of rows that the data set's card states."""
        return self._available

    def read(self, seed: int) -> Iterator[Row]:
        """All inputs, shuffled by ``seed``."""
        rows = iter(self._split.shuffle(seed=seed, buffer_size=BUFFER))
        position = 0
        while True:
            origin = f"{self._where}, row {position} of the shuffled stream"
            with _decoding(origin):
                values = next(rows, None)
            if values is None:
                return
            yield self._columns.row(values, origin)
            position += 1


def _prepared(source: Source) -> Any:
    """The builder of the copy on this machine, or ``None``."""
    import datasets

    # Offline, `datasets` looks at nothing but its cache. It takes the copy prepared last, whatever
    # revision is asked for, so that is checked here; a copy's hash is its commit.
    online = datasets.config.HF_HUB_OFFLINE
    datasets.config.HF_HUB_OFFLINE = True
    try:
        with _quiet():
            builder = datasets.load_dataset_builder(source.location, source.options.get("config"))
    except OSError:
        return None
    except ValueError as error:
        if "config" in source.options:
            return None
        raise SourceError(
            f"data source {str(source)!r}: {str(error).splitlines()[0]}; name one with config=…"
        ) from error
    finally:
        datasets.config.HF_HUB_OFFLINE = online
    commit = Path(builder.cache_dir).name
    if source.revision in (None, "main", commit) or _cached_commit(source) == commit:
        return builder
    return None


def _cached_commit(source: Source) -> str | None:
    """What a branch or tag was when its data set was prepared, as the hub's client remembers."""
    from huggingface_hub import try_to_load_from_cache

    card = try_to_load_from_cache(
        source.location, "README.md", revision=source.revision, repo_type="dataset"
    )
    return Path(card).parent.name if isinstance(card, str) else None


def _preparation(source: Source) -> str:
    """The command that leaves a copy on this machine."""
    config = source.options.get("config")
    arguments = [json.dumps(name) for name in (source.location, config) if name]
    arguments += [f"revision={json.dumps(source.revision)}"] if source.revision else []
    call = f"datasets.load_dataset({', '.join(arguments)})"
    return f"python -c {shlex.quote(f'import datasets; {call}')}"


def _remote(source: Source) -> Any:
    import datasets

    where = f"data source {str(source)!r}"
    require_access(source.location, source.revision, where)
    try:
        with _quiet():
            return datasets.load_dataset_builder(
                source.location, source.options.get("config"), revision=source.revision
            )
    except (ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        # The advice that follows is for callers of the library.
        told, advice, _ = one_line(error).partition(" Example of usage")
        hint = "; name one with config=…" if advice and "config" not in source.options else ""
        raise SourceError(f"{where}: {told}{hint}") from error
    except Exception as error:  # also those of whatever the client connects with
        raise hub_fault(error, where, "data set", source.location, source.revision) from error


def _split(read: Any, source: Source, splits: Any) -> Any:
    import pyarrow

    where = f"data source {str(source)!r}"
    listed = f"; its splits: {', '.join(splits)}" if splits else ""
    name = source.options.get("split")
    if not name:
        raise SourceError(f"{where}: expected '?split=NAME'{listed}")
    try:
        return read(split=name)
    except pyarrow.ArrowInvalid as error:
        raise SourceError(
            f"{where}: its files are damaged, or arrive damaged ({error}); run again, and if that "
            "does not help, ask its authors"
        ) from error
    except ValueError as error:
        raise SourceError(f"{where}: no split {name!r}{listed or f'; {error}'}") from error
    except Exception as error:  # also those of whatever the client connects with
        raise MissingError(
            f"{where}: cannot be read ({one_line(error)})", "check the network and the disk"
        ) from error


def _undecoded(split: Any, columns: Columns, where: str) -> Any:
    """``split`` with the wanted columns only, and recordings left as they are stored.

    ``datasets`` would decode recordings with torchcodec, which need not be here.
    """
    import datasets

    if split.column_names is None:  # of a stream, before its first row
        return split
    require_columns(where, columns.names, split.column_names)
    split = split.select_columns(columns.names)
    if _is_audio(split, columns.content):
        split = split.cast_column(columns.content, datasets.Audio(decode=False))
    return split


def _is_audio(split: Any, column: str) -> bool:
    import datasets

    return isinstance((split.features or {}).get(column), datasets.Audio)


def _located(values: dict[str, Any], column: str) -> dict[str, Any]:
    """``values`` of a prepared copy, with a file that ``column`` names instead of its name."""
    value = values[column]
    if isinstance(value, dict) and not value.get("bytes") and value.get("path"):
        return {**values, column: Path(value["path"])}
    return values


@contextlib.contextmanager
def _decoding(origin: str) -> Iterator[None]:
    """Name the row in whatever goes wrong inside ``datasets`` and Pillow."""
    try:
        yield
    except Exception as error:
        raise SourceError(f"{origin}: cannot be read ({type(error).__name__}: {error})") from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the notes that ``datasets`` logs about its cache."""
    import datasets

    verbosity = datasets.logging.get_verbosity()
    datasets.logging.set_verbosity_error()
    try:
        yield
    finally:
        datasets.logging.set_verbosity(verbosity)
