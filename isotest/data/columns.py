"""Which columns of a table hold content, group and transcript, and one row of it as content."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotest.data.rows import Row, group_name
from isotest.errors import SourceError
from isotest.installed import leads_out
from isotest.source import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from isotest.data.dataset import Content
    from isotest.data.kind import Kind
    from isotest.source import Source


@dataclass(frozen=True)
class Columns:
    """The columns that a source names.

    Attributes:
        kind: of the content.
        content: the column that holds it.
        group: the column that names what dependent inputs share; ``None``: all are independent.
        transcript: the column that says what is spoken; ``None``: nothing does.
    """

    kind: Kind
    content: str
    group: str | None
    transcript: str | None

    @property
    def names(self) -> list[str]:
        """The columns to read, each once."""
        wanted = (self.content, self.group, self.transcript)
        return list(dict.fromkeys(name for name in wanted if name is not None))

    def row(self, values: Mapping[str, Any], origin: str, base: Path | None = None) -> Row:
        """One row of the table, decoded.

        Args:
            values: by column.
            origin: which row, for messages.
            base: the folder that a path in the content's column starts from; ``None``: a path is no
                content.

        Raises:
            SourceError: a column is missing or holds something else; names ``origin``.
        """
        require_columns(origin, self.names, values)
        content = self._content(values[self.content], origin, base)
        if self.transcript is not None and values[self.transcript] is not None:
            content = replace(content, transcript=values[self.transcript])
        return Row(origin, content, self.group_of(values, origin))

    def group_of(self, values: Mapping[str, Any], origin: str) -> str | None:
        """The group of a row."""
        return None if self.group is None else group_name(values[self.group], origin)

    def _content(self, value: Any, origin: str, base: Path | None) -> Content:
        found = self.kind.item(value, origin)
        if found is not None:
            return found
        stored = value
        if isinstance(stored, dict):
            stored = stored.get("bytes") or (stored.get("path") if base is not None else None)
        if isinstance(stored, str) and base is not None:
            stored = beside(base, stored, origin)
            origin = f"{stored} ({origin})"
        if not isinstance(stored, bytes | Path):
            raise SourceError(
                f"{origin}: column {self.content!r} holds {type(value).__name__}, expected "
                f"{self.kind.plural}{'' if base is None or self.kind.inline else ' or their paths'}"
            )
        return self.kind.decode(stored, origin)


def columns_of(source: Source, kind: Kind, default: str) -> Columns:
    """The columns that the options of ``source`` name; ``default`` holds the content."""
    options = source.options
    transcript = options.get("transcript") if "transcript" in kind.columns else None
    return Columns(kind, options.get(kind.column, default), options.get("group"), transcript)


def beside(folder: Path, name: str, origin: str) -> Path:
    """The path ``name`` in ``folder``."""
    if leads_out(name):
        raise SourceError(f"{origin}: {name!r} leads out of the folder; use a path below it")
    return folder / name


def require_columns(where: str, wanted: Sequence[str | None], present: Collection[str]) -> None:
    """Refuse a wanted column that is not there, listing those that are."""
    for column in wanted:
        if column is not None and column not in present:
            hint = did_you_mean(column, present)
            listed = ", ".join(present) or "none"
            raise SourceError(
                f"{where}: no column {column!r}{hint if 'did you mean' in hint else ''}; its "
                f"columns: {listed}; name the right one in the source"
            )
