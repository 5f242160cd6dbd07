"""``MODULE:FUNCTION``: a callable in the user's own code, by its name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from isotest.errors import MissingError, SourceError, one_line
from isotest.source import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable


def referenced(location: str, where: str) -> Callable[..., Any]:
    """The callable at ``MODULE:FUNCTION``; ``FUNCTION`` may be dotted.

    Args:
        location: what follows ``python:`` in a source.
        where: what names it, at the start of messages.

    Raises:
        MissingError: there is no such module.
        SourceError: malformed; the module raises when imported; not there, or not callable.

    >>> referenced("math:sqrt", "example")(4)
    2.0
    >>> referenced("math:sqr", "example")
    Traceback (most recent call last):
    isotest.errors.SourceError: example: math has no 'sqr'; did you mean 'sqrt'?
    """
    module, colon, attribute = location.partition(":")
    if not colon or not attribute or not all(part.isidentifier() for part in module.split(".")):
        raise SourceError(f"{where}: expected python:MODULE:FUNCTION, found {location!r}")
    found: Any = _imported(module, where)
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            known = [name for name in dir(found) if not name.startswith("_")]
            hint = did_you_mean(part, known)
            hint = hint if "did you mean" in hint else ""
            raise SourceError(f"{where}: {module} has no {attribute!r}{hint}") from None
        except Exception as error:  # a module's own __getattr__ may import more
            raise SourceError(f"{where}: looking up {location} raised {one_line(error)}") from error
    if not callable(found):
        raise SourceError(
            f"{where}: expected a callable, found {location} to be {type(found).__name__}"
        )
    return cast("Callable[..., Any]", found)


def _imported(module: str, where: str) -> object:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        # One that the module itself imports in vain is its own fault, not that of who named it.
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise SourceError(f"{where}: importing {module} raised {one_line(error)}") from error
        raise MissingError(
            f"{where}: no module named {error.name!r}",
            "install it, or put its folder on the import path (PYTHONPATH, or pytest's ini option "
            "'pythonpath = .')",
        ) from error
    except (Exception, SystemExit) as error:
        raise SourceError(f"{where}: importing {module} raised {one_line(error)}") from error
