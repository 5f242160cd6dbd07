"""What a data source will yield, by content and without decoding it (torch-free)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import isotest
from isotest.content import ContentDigests, combined_digest
from isotest.data.json_lines import json_lines
from isotest.data.kind import kind_of
from isotest.errors import SourceError

if TYPE_CHECKING:
    from isotest.source import Source

SAMPLES = Path(isotest.__file__).parent / "samples"


def data_identity(
    source: Source,
    *,
    base: Path | None,
    modality: str = "vision",
    digests: ContentDigests | None = None,
) -> str | None:
    """The identity of the samples of ``source``; ``None`` where there is none.

    Args:
        source: the data source; how many of its samples are used, and with which seed, is not part
            of it.
        base: what relative paths start from; the working directory by default.
        modality: of the data; it decides in which column they are.
        digests: remembers the digests of large files.

    Returns:
        64 hexadecimal digits, or ``None``: arbitrary code, a remote data set, or something that is
        not here or not readable (whoever loads it says what is wrong).
    """
    if source.scheme in ("embeddings", "task"):
        # Drawn by seed, or fixed in our own code: their names and options say everything.
        return combined_digest([str(source)])
    digests = digests or ContentDigests()
    location = Path(source.location)
    path = (base or Path.cwd()) / location.expanduser()
    kind = kind_of(modality)
    named = [source.scheme, dict(source.options)]
    match source.scheme:
        case "sample" if location.name == source.location != "..":
            named.append(source.location)
            content = digests.of(SAMPLES / source.location)
        case "package":
            named.append(source.location)
            content = digests.of_distribution(source.location.partition("/")[0])
        case "folder":
            content = digests.of(path)
        case "file" if kind.inline and path.suffix in (".jsonl", ".parquet", ".txt"):
            content = digests.of(path)
        case "file" if path.suffix == ".jsonl":
            column = source.options.get(kind.column, kind.listed)
            content = _named_files(path, column, digests)
        case "file" if path.suffix == ".parquet":
            column = source.options.get(kind.column, kind.column)
            content = digests.of(path) if _holds_content(path, column) else None
        case _:
            return None
    return None if content is None else combined_digest([*named, content])


def _named_files(path: Path, column: str, digests: ContentDigests) -> str | None:
    """Of a JSON-lines file and of the files that its rows name."""
    try:
        names = {row[column] for _, row in json_lines(path)}
        return digests.of_files([("", path), *((name, path.parent / name) for name in names)])
    except (SourceError, LookupError, TypeError):
        return None


def _holds_content(path: Path, column: str) -> bool:
    """Whether every input is surely inside the Parquet file; one named by a path is not.

    Told from the file's own statistics, for reading the inputs would cost as much as measuring.
    """
    import pyarrow as pa
    from pyarrow import parquet, types

    try:
        with parquet.ParquetFile(path) as file:
            kind = file.schema_arrow.field(column).type
            if types.is_binary(kind) or types.is_large_binary(kind):
                return True
            leaves = [file.schema.column(number).path for number in range(len(file.schema))]
            leaf = leaves.index(f"{column}.bytes")
            groups = range(file.metadata.num_row_groups)
            found = [file.metadata.row_group(group).column(leaf).statistics for group in groups]
            return all(
                each and each.null_count == 0 and each.has_min_max and each.min for each in found
            )
    except (pa.ArrowException, OSError, KeyError, ValueError):
        return False
