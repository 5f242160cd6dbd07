"""``file:PATH[?image=COLUMN&group=COLUMN]``: the images in a Parquet or JSON-lines file.

| file | the image column is | and holds |
|---|---|---|
| ``.parquet`` | ``image`` | encoded bytes, a path, or ``datasets``' ``{"bytes": …, "path": …}`` |
| ``.jsonl`` | ``path`` | a path |

Paths start from the folder of the file and cannot lead out of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotest.data.image import decode
from isotest.data.json_lines import json_lines
from isotest.data.rows import Row, Rows, group_name
from isotest.errors import MissingError, SourceError
from isotest.installed import leads_out
from isotest.source import Source, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence


def open_file(source: Source, *, base: Path, download: bool) -> Rows:
    """Open a Parquet or JSON-lines file, by its suffix."""
    source.require_options(("image", "group"))
    path = base / Path(source.location).expanduser()
    if not path.exists():
        raise MissingError(f"the file {path} does not exist", "create it or correct the source")
    group = source.options.get("group")
    if path.suffix == ".parquet":
        return ParquetRows(path, source.options.get("image", "image"), group)
    if path.suffix == ".jsonl":
        return JsonLinesRows(path, source.options.get("image", "path"), group)
    raise SourceError(
        f"data source {str(source)!r}: expected a .parquet or .jsonl file, found {path.name!r}; "
        "for a folder of images use folder:"
    )


class ParquetRows:
    """The images in a Parquet file, read one row group at a time.

    Raises:
        SourceError: the file is damaged, empty or lacks a column.
    """

    def __init__(self, path: Path, image: str, group: str | None) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self._path = path
        self._image = image
        self._group = group
        try:
            self._file = parquet.ParquetFile(path)
        except (pa.ArrowException, OSError) as error:
            raise SourceError(f"{path}: cannot be read as Parquet ({error})") from error
        require_columns(str(path), (image, group), self._file.schema_arrow.names)
        if not len(self):
            raise SourceError(f"{path}: has no rows")

    def __len__(self) -> int:
        return int(self._file.metadata.num_rows)

    @property
    def grouped(self) -> bool:
        """Whether a group column is named."""
        return self._group is not None

    def read(self, positions: Sequence[int]) -> Iterator[Row]:
        """The images in these rows."""
        import pyarrow as pa

        first = 0
        columns = [self._image, self._group] if self._group else [self._image]
        for number in range(self._file.num_row_groups):
            end = first + self._file.metadata.row_group(number).num_rows
            inside = [position for position in positions if first <= position < end]
            if inside:
                try:
                    table = self._file.read_row_group(number, columns=columns)
                except (pa.ArrowException, OSError) as error:
                    raise SourceError(
                        f"{self._path}: row group {number} cannot be read ({error})"
                    ) from error
                for position in inside:
                    yield self._row(position, table.slice(position - first, 1).to_pylist()[0])
            first = end

    def _row(self, position: int, values: dict[str, Any]) -> Row:
        origin = f"{self._path}, row {position}"
        content = values[self._image]
        if isinstance(content, dict):
            content = content.get("bytes") or content.get("path")
        if isinstance(content, str):
            content = beside(self._path, content, origin)
        if not isinstance(content, bytes | Path):
            raise SourceError(
                f"{origin}: column {self._image!r} holds {type(content).__name__}, "
                "expected an encoded image or a path"
            )
        group = group_name(values[self._group], origin) if self._group else None
        return Row(origin, decode(content, origin), group)


class JsonLinesRows:
    """The images that the lines of a JSON-lines file name.

    Raises:
        SourceError: the file is not UTF-8, is empty, or a line is no object with the columns.
    """

    def __init__(self, path: Path, image: str, group: str | None) -> None:
        self._rows: list[tuple[str, Path, str | None]] = []
        self.grouped = group is not None
        for where, row in json_lines(path):
            require_columns(where, (image, group), row)
            if not isinstance(row[image], str):
                raise SourceError(f"{where}: expected a path as {image!r}, found {row[image]!r}")
            name = group_name(row[group], where) if group else None
            self._rows.append((where, beside(path, row[image], where), name))
        if not self._rows:
            raise SourceError(f"{path}: has no rows")

    def __len__(self) -> int:
        return len(self._rows)

    def read(self, positions: Sequence[int]) -> Iterator[Row]:
        """The images that these rows name."""
        for position in positions:
            where, path, group = self._rows[position]
            yield Row(where, decode(path, f"{path} ({where})"), group)


def beside(file: Path, name: str, origin: str) -> Path:
    """The path ``name`` in the folder of ``file``."""
    if leads_out(name):
        raise SourceError(f"{origin}: {name!r} leads out of the folder; use a path below it")
    return file.parent / name


def require_columns(where: str, wanted: Sequence[str | None], present: Collection[str]) -> None:
    """Refuse a wanted column that is not there, listing those that are."""
    for column in wanted:
        if column is not None and column not in present:
            hint = did_you_mean(column, present) if present else ""
            listed = ", ".join(present) or "none"
            raise SourceError(f"{where}: no column {column!r}{hint}; its columns: {listed}")
