"""Printing an object as the shortest call that makes it again."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any


class Described:
    """A dataclass that is printed in one line of Python, without what is default."""

    def __repr__(self) -> str:
        """The shortest call that makes it again: it stands in one line of a report."""
        return call_of(self)

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """The same for IPython and Hypothesis, which would use a line for every field."""
        printer.text(repr(self))


def call_of(instance: Any) -> str:
    """A dataclass's constructor call, without what is default, in one line.

    >>> from isotest.blocks import BlockConfig
    >>> call_of(BlockConfig(width=8, heads=2, causal=True))
    'BlockConfig(width=8, heads=2, causal=True)'
    """
    if not is_dataclass(instance):
        return repr(instance)
    values = (
        (field.name, getattr(instance, field.name), field.default) for field in fields(instance)
    )
    said = (f"{name}={call_of(value)}" for name, value, default in values if value != default)
    return f"{type(instance).__name__}({', '.join(said)})"
