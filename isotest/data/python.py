"""``python:MODULE:FUNCTION``: images from your own code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from PIL import Image

from isotest.data.rows import Row, Rows, group_name
from isotest.errors import IsotestError, SourceError, one_line
from isotest.reference import referenced

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from isotest.source import Source

EXPECTED = "PIL images, or pairs (PIL image, group)"


def open_python(source: Source, *, base: Path, download: bool) -> Rows:
    """Call the function, without arguments, for its images.

    It returns an iterable of PIL images, or of pairs (PIL image, group) in which images with the
    same group depend on each other. Anything with a length and positions is read lazily; any other
    iterable is read once, whole, so that it can be repeated.
    """
    source.require_options(())
    where = f"data source {str(source)!r}"
    function = referenced(source.location, where)
    try:
        returned = function()
        if hasattr(returned, "__getitem__") and hasattr(returned, "__len__"):
            images = cast("Sequence[object]", returned)
        elif isinstance(returned, Iterable):
            images = list(returned)
        else:
            raise SourceError(
                f"{where}: returned {type(returned).__name__}, expected an iterable of {EXPECTED}"
            )
    except IsotestError:
        raise
    except (Exception, SystemExit) as error:
        raise _raised(where, error) from error
    return PythonRows(images, where)


class PythonRows:
    """The images that a function returned."""

    def __init__(self, images: Sequence[object], where: str) -> None:
        if not len(images):
            raise SourceError(f"{where}: returned nothing, expected {EXPECTED}")
        self._images = images
        self._where = where
        self.grouped = isinstance(self._item(0), tuple)

    def __len__(self) -> int:
        return len(self._images)

    def read(self, positions: Sequence[int]) -> Iterator[Row]:
        """The items at ``positions``."""
        for position in positions:
            origin = f"{self._where}, item {position}"
            item = self._item(position)
            if isinstance(item, tuple) != self.grouped:
                raise SourceError(
                    f"{origin}: expected all items with a group or none, found both kinds"
                )
            image, group = item if isinstance(item, tuple) else (item, None)
            yield Row(origin, image, group_name(group, origin))

    def _item(self, position: int) -> Image.Image | tuple[Image.Image, object]:
        try:
            item = self._images[position]
        except Exception as error:
            raise _raised(f"{self._where}, item {position}", error) from error
        if isinstance(item, Image.Image):
            return item
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], Image.Image):
            return item
        kind = (
            f"({', '.join(type(part).__name__ for part in item)})"
            if isinstance(item, tuple)
            else type(item).__name__
        )
        raise SourceError(f"{self._where}, item {position}: found {kind}, expected {EXPECTED}")


def _raised(where: str, error: BaseException) -> SourceError:
    return SourceError(f"{where}: raised {one_line(error)}")
