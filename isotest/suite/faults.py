"""From pydantic's errors to ours: the file's own terms, the line, and what was probably meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, ValidationError
from typing_extensions import is_typeddict

from isotest.errors import SuiteError
from isotest.source import did_you_mean
from isotest.suite.checks import check_class
from isotest.suite.location import KeyPath, key_lines, line_of
from isotest.suite.spec import SuiteFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_TABLES = frozenset({"model_type", "model_attributes_type", "dict_type", "mapping_type"})
_ARRAYS = frozenset({"tuple_type", "list_type"})


def suite_error(
    error: ValidationError, tables: Mapping[str, Any], text: str, shown: Path
) -> SuiteError:
    """One error that says all faults, in the order of the file, a line each."""
    lines = key_lines(text.encode())
    faults = sorted(
        (
            (line_of(each["loc"], lines), _text(each, tables))
            for each in error.errors()
            # An array whose elements are all faulty counts as empty, too, in pydantic's eyes.
            if not (each["type"] == "too_short" and each["input"])
        ),
        key=lambda fault: (fault[0] is not None, fault[0] or 0),
    )
    (line, first), *others = dict.fromkeys(faults)
    more = "".join(f"\n{SuiteError(other, shown, at)}" for at, other in others)
    return SuiteError(first + more, shown, line)


def _text(error: Any, tables: Mapping[str, Any]) -> str:
    path: KeyPath = error["loc"]
    kind: str = error["type"]
    entry, inner = _entry(path, tables)
    if kind == "fault":
        return f"{entry}{error['msg']}"
    if kind == "extra_forbidden":
        known = _fields(path[:-1])
        table = "" if len(inner) == 1 else f" in [{_dotted(path[:-1])}]"
        return f"{entry}unknown key {str(path[-1])!r}{table}{did_you_mean(str(path[-1]), known)}"
    key = _dotted(inner)
    if kind == "missing":
        description = _fields(path[:-1]).get(str(path[-1]), "")
        return f"{entry}{key!r} is missing" + (f": {description}" if description else "")
    if kind == "too_short":
        return f"{entry}{key!r} is empty: expected at least one"
    return f"{entry}{key} = {_toml(error['input'])}: {_demand(kind, error['msg'])}"


def _demand(kind: str, message: str) -> str:
    if kind in _TABLES:
        return "expected a table"
    if kind in _ARRAYS:
        return "expected an array"
    if kind == "finite_number":
        return "expected a finite number; nothing can be compared with this"
    for before, after in (
        ("Input should be greater", "expected a number greater"),
        ("Input should be less", "expected a number less"),
        ("Input should be a valid boolean", "expected true or false"),
        ("Input should be a valid integer", "expected a whole number"),
        ("Input should be a valid", "expected a"),
        ("Input should be", "expected"),
    ):
        if message.startswith(before):
            return after + message[len(before) :]
    return message


def _entry(path: KeyPath, tables: Mapping[str, Any]) -> tuple[str, KeyPath]:
    """``model 'x': `` for a path inside an entry, and the rest of the path."""
    if len(path) < 3 or path[0] != "models":
        return "", path
    name = tables["models"][path[1]].get("name")
    number = int(path[1]) + 1
    label = repr(name) if isinstance(name, str) and name else f"number {number}"
    return f"model {label}: ", path[2:]


def _dotted(path: KeyPath) -> str:
    parts: list[str] = []
    for part in path:
        if isinstance(part, str):
            parts.append(part)
        elif path[0] != "models" or len(parts) > 1:
            parts[-1] += f"[{part}]"
    return ".".join(parts)


def _toml(value: object) -> str:
    """A value as it stands in the file, shortened."""
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _fields(path: KeyPath) -> dict[str, str]:
    """Names and descriptions of the keys that the table at ``path`` may have."""
    table: Any = SuiteFile
    for depth, part in enumerate(path):
        if isinstance(part, int):
            continue
        if depth and path[depth - 1] == "checks":
            table = check_class(part)
        elif part != "checks":
            annotation = (
                table.__annotations__[part]
                if is_typeddict(table)
                else table.model_fields[part].annotation
            )
            table = next(_tables(annotation))
    if is_typeddict(table):
        return dict.fromkeys(table.__annotations__, "")
    return {name: field.description or "" for name, field in table.model_fields.items()}


def _tables(annotation: Any) -> Iterator[Any]:
    if is_typeddict(annotation) or (
        isinstance(annotation, type) and issubclass(annotation, BaseModel)
    ):
        yield annotation
    for argument in get_args(annotation):
        yield from _tables(argument)
