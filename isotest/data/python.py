"""``python:MODULE:FUNCTION``: images from your own code."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from PIL import Image

from isotest.data.rows import Row, Rows, group_name
from isotest.errors import MissingError, SourceError
from isotest.source import Source, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

EXPECTED = "PIL images, or pairs (PIL image, group)"


def open_python(source: Source, *, base: Path, download: bool) -> Rows:
    """Call the function, without arguments, for its images.

    It returns an iterable of PIL images, or of pairs (PIL image, group) in which images with the
    same group depend on each other. Anything with a length and positions is read lazily; any other
    iterable is read once, whole, so that it can be repeated.
    """
    source.require_options(())
    where = f"data source {str(source)!r}"
    function = _find(source, where)
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
    except SourceError:
        raise
    except Exception as error:
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


def _find(source: Source, where: str) -> Callable[[], object]:
    module_name, colon, name = source.location.partition(":")
    if not colon or not name:
        raise SourceError(f"{where}: expected 'python:module:function'")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name is not None
        if missing and f"{module_name}.".startswith(f"{error.name}."):  # type: ignore[attr-defined]
            raise MissingError(
                f"{where}: there is no module {module_name!r}",
                "install it, or put its folder on PYTHONPATH",
            ) from error
        raise SourceError(
            f"{where}: importing {module_name!r} failed with {_short(error)}"
        ) from error
    function = getattr(module, name, None)
    if not callable(function):
        callables = [key for key in vars(module) if callable(vars(module)[key])]
        hint = did_you_mean(name, callables) if callables else ""
        raise SourceError(f"{where}: {module_name!r} has no function {name!r}{hint}")
    return function  # type: ignore[no-any-return]


def _raised(where: str, error: Exception) -> SourceError:
    return SourceError(f"{where}: raised {_short(error)}")


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
