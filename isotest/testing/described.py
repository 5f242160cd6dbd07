"""Printing an object as the shortest call that makes it again."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any


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
    said = ", ".join(
        f"{name}={call_of(value)}" for name, value, default in values if value != default
    )
    return f"{type(instance).__name__}({said})"
