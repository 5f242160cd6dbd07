"""``python:MODULE:FUNCTION``: images, texts or waveforms from your own code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from isotest.data.rows import Row, Rows, group_name
from isotest.errors import IsotestError, SourceError, one_line
from isotest.reference import referenced

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from isotest.data.dataset import Content
    from isotest.data.kind import Kind
    from isotest.source import Source


def open_python(source: Source, *, base: Path, download: bool, kind: Kind) -> Rows:
    """Call the function, without arguments, for its inputs.

    It returns an iterable of items, or of pairs (item, group) in which items with the same group
    depend on each other. An item is

    - a PIL image,
    - a string, or
    - a :class:`isotest.data.Waveform`, or a pair (array, rate) of floating-point samples, full
      scale ±1, and their number a second. An array is no item by itself, so such a pair is never a
      pair of an item and its group.

    Anything with a length and positions is read lazily; any other iterable is read once, whole, so
    that it can be repeated.
    """
    source.require_options(kind.choices if kind.inline else ())
    where = f"data source {str(source)!r}"
    function = referenced(source.location, where)
    try:
        returned = function()
        if isinstance(returned, str | bytes) or not isinstance(returned, Iterable | _Positioned):
            raise SourceError(
                f"{where}: returned {type(returned).__name__}, expected an iterable of "
                f"{kind.expected}"
            )
        items = returned if isinstance(returned, _Positioned) else list(returned)
    except IsotestError:
        raise
    except (Exception, SystemExit) as error:
        raise _raised(where, error) from error
    return PythonRows(items, where, kind)


@runtime_checkable
class _Positioned(Protocol):
    """What has a length and positions."""

    def __len__(self) -> int: ...

    def __getitem__(self, position: int, /) -> object: ...


class PythonRows:
    """The items that a function returned."""

    def __init__(self, items: _Positioned, where: str, kind: Kind) -> None:
        if not len(items):
            raise SourceError(f"{where}: returned nothing, expected {kind.expected}")
        self._items = items
        self._where = where
        self._kind = kind
        _, _, self.grouped = self._item(0)

    def __len__(self) -> int:
        return len(self._items)

    def read(self, positions: Sequence[int]) -> Iterator[Row]:
        """The items at ``positions``."""
        for position in positions:
            origin = f"{self._where}, item {position}"
            content, group, grouped = self._item(position)
            if grouped != self.grouped:
                raise SourceError(
                    f"{origin}: expected all items with a group or none, found both kinds"
                )
            yield Row(origin, content, group_name(group, origin))

    def _item(self, position: int) -> tuple[Content, object, bool]:
        """Content, its group, and whether there is one."""
        origin = f"{self._where}, item {position}"
        try:
            item = self._items[position]
        except Exception as error:
            raise _raised(origin, error) from error
        content = self._kind.item(item, origin)
        if content is not None:
            return content, None, False
        if isinstance(item, tuple) and len(item) == 2:
            content = self._kind.item(item[0], origin)
            if content is not None:
                return content, item[1], True
        kind = (
            f"({', '.join(type(part).__name__ for part in item)})"
            if isinstance(item, tuple)
            else type(item).__name__
        )
        raise SourceError(f"{origin}: found {kind}, expected {self._kind.expected}")


def _raised(where: str, error: BaseException) -> SourceError:
    return SourceError(f"{where}: raised {one_line(error)}")
