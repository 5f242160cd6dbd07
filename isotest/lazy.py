"""Public names of a package that are loaded on first use, since importing costs seconds.

The top of the package does without: a run that has nothing to do with isotest imports that alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package.

    Args:
        package: its dotted name.
        homes: public name to the dotted module below the package that holds it.

    >>> lazily("isotest", {"Estimate": "estimate"})("Estimate")(0.5).value
    0.5
    """

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return attribute
