"""Where in a TOML file each key stands: loaded only when a suite has a fault to point at."""

from __future__ import annotations

import tomllib
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

KeyPath = tuple[str | int, ...]
"""Keys from the document's root; an integer is a position in an array."""


def key_lines(document: bytes) -> Mapping[KeyPath, int]:
    r"""The line (from 1) of every table, key and array element of a TOML document.

    >>> key_lines(b'[[models]]\nname = "vit"\n[models.checks.massive]\nmax = 1')
    ... # doctest: +NORMALIZE_WHITESPACE
    {('models', 0): 1, ('models', 0, 'name'): 2,
     ('models', 0, 'checks', 'massive'): 3, ('models', 0, 'checks', 'massive', 'max'): 4}
    """
    import tree_sitter
    import tree_sitter_toml

    language = tree_sitter.Language(tree_sitter_toml.language())
    root = tree_sitter.Parser(language).parse(document).root_node
    lines: dict[KeyPath, int] = {}
    elements: Counter[KeyPath] = Counter()
    for node in root.named_children:
        if node.type == "pair":
            lines.update(_pair(node, ()))
        elif node.type in ("table", "table_array_element"):
            header, *pairs = node.named_children
            is_element = node.type == "table_array_element"
            table = _resolve(_keys(header), elements, opens=is_element)
            lines[table] = _line(node)
            for pair in pairs:
                if pair.type == "pair":
                    lines.update(_pair(pair, table))
    return lines


def line_of(path: KeyPath, lines: Mapping[KeyPath, int]) -> int | None:
    """The line of ``path``, or of the innermost table around it that has one."""
    for end in range(len(path), 0, -1):
        if path[:end] in lines:
            return lines[path[:end]]
    # A table may stand only implicitly, as [data] does in [data.x]: the first key below it will do.
    below = [line for key, line in lines.items() if path and key[: len(path)] == path]
    return min(below, default=None)


def _line(node: Node) -> int:
    return int(node.start_point[0]) + 1


def _resolve(keys: list[str], elements: Counter[KeyPath], *, opens: bool) -> KeyPath:
    """The path of a table header; a key that names an array of tables means its last element."""
    path: KeyPath = ()
    for depth, key in enumerate(keys):
        path = (*path, key)
        if opens and depth == len(keys) - 1:
            elements[path] += 1
        if path in elements:
            path = (*path, elements[path] - 1)
    return path


def _pair(node: Node, table: KeyPath) -> Iterator[tuple[KeyPath, int]]:
    key, *values = (child for child in node.named_children if child.type != "comment")
    path = (*table, *_keys(key))
    yield path, _line(node)
    for value in values:
        yield from _value(value, path)


def _value(node: Node, path: KeyPath) -> Iterator[tuple[KeyPath, int]]:
    children = [child for child in node.named_children if child.type != "comment"]
    if node.type == "inline_table":
        for pair in children:
            yield from _pair(pair, path)
    elif node.type == "array":
        for index, element in enumerate(children):
            yield (*path, index), _line(element)
            yield from _value(element, (*path, index))


def _keys(node: Node) -> list[str]:
    if node.type == "dotted_key":
        return [key for child in node.named_children for key in _keys(child)]
    text = (node.text or b"").decode()
    if node.type == "quoted_key":
        return list(tomllib.loads(f"{text} = 0"))
    return [text]
