"""``file:PATH[?COLUMN OPTIONS]``: the inputs in a Parquet, JSON-lines or text file.

| file | images are in | texts are in | recordings are in |
|---|---|---|---|
| ``.parquet`` | ``image`` | ``text`` | ``audio`` |
| ``.jsonl`` | ``path``: their paths | ``text`` | ``audio``: their paths |
| ``.txt`` | | paragraphs, which blank lines separate | |

``image=``, ``text=`` or ``audio=`` names another column, ``group=`` the one that names what
dependent inputs share, ``transcript=`` the one that says what is spoken. In Parquet, images and
recordings are encoded bytes, paths, or ``datasets``' ``{"bytes": …, "path": …}``. Paths start from
the folder of the file and cannot lead out of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotest.data.columns import Columns, beside, columns_of, require_columns
from isotest.data.json_lines import json_lines
from isotest.data.rows import Row, Rows
from isotest.errors import MissingError, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isotest.data.kind import Kind
    from isotest.source import Source


def open_file(source: Source, *, base: Path, download: bool, kind: Kind) -> Rows:
    """Open a Parquet, JSON-lines or text file, by its suffix."""
    path = base / Path(source.location).expanduser()
    paragraphs = path.suffix == ".txt" and kind.inline
    options = (kind.column, "group", *kind.columns, *kind.choices)
    source.require_options(() if paragraphs else options)
    if not path.exists():
        raise MissingError(f"the file {path} does not exist", "create it or correct the source")
    if not path.is_file():
        raise SourceError(f"the file {path}: expected a file, found something else")
    if paragraphs:
        return ParagraphRows(path)
    if path.suffix == ".parquet":
        return ParquetRows(path, columns_of(source, kind, kind.column))
    if path.suffix == ".jsonl":
        return JsonLinesRows(path, columns_of(source, kind, kind.listed))
    expected = "a .parquet, .jsonl or .txt" if kind.inline else "a .parquet or .jsonl"
    raise SourceError(
        f"data source {str(source)!r}: expected {expected} file, found {path.name!r}; "
        f"for a folder of {kind.plural} use folder:"
    )


class ParquetRows:
    """The inputs in a Parquet file, read one row group at a time.

    Raises:
        SourceError: the file is damaged, empty or lacks a column.
    """

    def __init__(self, path: Path, columns: Columns) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self._path = path
        self._columns = columns
        try:
            self._file = parquet.ParquetFile(path)
        except (pa.ArrowException, OSError) as error:
            raise SourceError(f"{path}: cannot be read as Parquet ({error})") from error
        require_columns(str(path), columns.names, self._file.schema_arrow.names)
        if not len(self):
            raise SourceError(f"{path}: has no rows")

    def __len__(self) -> int:
        return int(self._file.metadata.num_rows)

    @property
    def grouped(self) -> bool:
        """Whether a group column is named."""
        return self._columns.group is not None

    def read(self, positions: Sequence[int]) -> Iterator[Row]:
        """The inputs in these rows."""
        import pyarrow as pa

        first = 0
        for number in range(self._file.num_row_groups):
            end = first + self._file.metadata.row_group(number).num_rows
            inside = [position for position in positions if first <= position < end]
            if inside:
                try:
                    table = self._file.read_row_group(number, columns=self._columns.names)
                except (pa.ArrowException, OSError) as error:
                    raise SourceError(
                        f"{self._path}: row group {number} cannot be read ({error})"
                    ) from error
                for position in inside:
                    yield self._row(position, table.slice(position - first, 1))
            first = end

    def _row(self, position: int, table: Any) -> Row:
        origin = f"{self._path}, row {position}"
        try:
            values = table.to_pylist()[0]
        except UnicodeDecodeError as error:
            raise SourceError(f"{origin}: holds text that is not UTF-8 ({error})") from error
        return self._columns.row(values, origin, self._path.parent)


class JsonLinesRows:
    """The inputs that the lines of a JSON-lines file hold or name.

    Raises:
        SourceError: the file is not UTF-8, is empty, or a line is no object with the columns.
    """

    def __init__(self, path: Path, columns: Columns) -> None:
        self._rows: list[tuple[str, dict[str, Any]]] = []
        self._columns = columns
        self._folder = path.parent
        column = columns.content
        for where, row in json_lines(path):
            require_columns(where, columns.names, row)
            if not isinstance(row[column], str):
                expected = "text" if columns.kind.inline else "a path"
                raise SourceError(
                    f"{where}: expected {expected} as {column!r}, found {row[column]!r}"
                )
            if not columns.kind.inline:
                beside(self._folder, row[column], where)
            columns.group_of(row, where)
            self._rows.append((where, {name: row[name] for name in columns.names}))
        if not self._rows:
            raise SourceError(f"{path}: has no rows")

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def grouped(self) -> bool:
        """Whether a group column is named."""
        return self._columns.group is not None

    def read(self, positions: Sequence[int]) -> Iterator[Row]:
        """The inputs of these rows."""
        for position in positions:
            where, row = self._rows[position]
            yield self._columns.row(row, where, self._folder)


class ParagraphRows:
    """The paragraphs of a text file, which blank lines separate.

    Raises:
        SourceError: unreadable, not UTF-8 or empty.
    """

    grouped = False

    def __init__(self, path: Path) -> None:
        from isotest.data.text import decode, paragraphs

        self._path = path
        self._paragraphs = paragraphs(decode(path, str(path)))
        if not self._paragraphs:
            raise SourceError(f"text {path}: is empty, expected paragraphs")

    def __len__(self) -> int:
        return len(self._paragraphs)

    def read(self, positions: Sequence[int]) -> Iterator[Row]:
        """These paragraphs."""
        for position in positions:
            line, paragraph = self._paragraphs[position]
            yield Row(f"{self._path}:{line}", paragraph)
