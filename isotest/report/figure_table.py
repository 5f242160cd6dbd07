"""The drift figures as text: what the figure plots first, then what to read beside it."""

from __future__ import annotations

import textwrap
from itertools import groupby
from typing import TYPE_CHECKING

from isotest.report.drift import ALPHA, STATISTICS
from isotest.report.figure import FIGURES
from isotest.report.show import aligned, side_by_side
from isotest.report.terminal import clipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from isotest.gate.correlation import Statistic
    from isotest.report.drift import CorrelationRecord
    from isotest.report.figure import Figure, Row, Rows

    _Column = tuple[str, Callable[[Row], str]]

_NARROWEST = 40
_SHORTEST_NAME = 12
_BESIDE = 54
"""Cells that p, coefficient, interval and verdict take beside the names."""

_COEFFICIENT = {"spearman": "rho", "pearson": "r"}


def figure_lines(found: Rows, figure: Figure, *, width: int) -> list[str]:
    """The table for people: what the figure plots first, then what to read beside it.

    Args:
        found: the rows.
        figure: which statistic comes first.
        width: of the terminal, in cells; columns that do not fit stand in a table below.
    """
    statistic = FIGURES[figure]
    (other,) = (name for name in STATISTICS if name != statistic)
    names = _names(found.rows, width)
    columns = [list(_column(found.rows, title, cell)) for title, cell in _columns(statistic, other)]
    title = (
        f"Figure {figure}: is anisotropy explained by drift? {statistic.capitalize()}'s "
        "correlation of anisotropy and drift_norm over the layers (explained: positive, p exact < "
        f"{ALPHA:g})"
    )
    lines = [*textwrap.wrap(title, max(width, _NARROWEST)), ""]
    first = list(_first(found.rows, names))
    for table in side_by_side([first], columns, width):
        lines += [*aligned(table), ""]
    return [*lines[:-1], *_notes(found, names, statistic, width)]


def _by_modality(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    for modality, group in groupby(rows, key=lambda row: row.modality):
        yield modality, list(group)


def _first(rows: Sequence[Row], names: Sequence[str]) -> Iterator[str]:
    """The column of names, each modality with a line of its own above its models."""
    yield "model"
    remaining = iter(names)
    for modality, group in _by_modality(rows):
        yield modality
        for _ in group:
            yield f"  {next(remaining)}"


def _column(rows: Sequence[Row], title: str, cell: Callable[[Row], str]) -> Iterator[str]:
    yield title
    for _, group in _by_modality(rows):
        yield ""
        for row in group:
            yield cell(row)


def _columns(statistic: Statistic, other: Statistic) -> list[_Column]:
    """Titles and cells; those of the figure itself first."""

    def of(name: Statistic) -> list[_Column]:
        return [
            ("p", lambda row: _p(row.drift.of(name).p)),
            (_COEFFICIENT[name], lambda row: _number(row.drift.of(name).coefficient)),
            ("95% interval", lambda row: _interval(row.drift.of(name))),
        ]

    second = [(f"{title} ({other.capitalize()})", cell) for title, cell in of(other)[:1]]
    return [
        *of(statistic),
        ("verdict", lambda row: row.drift.of(statistic).finding),
        ("p exact", lambda row: _p(row.drift.of(statistic).p_exact)),
        ("layers", lambda row: str(row.drift.layers)),
        ("highest", lambda row: _number(row.drift.highest and row.drift.highest.anisotropy)),
        ("at layer", lambda row: row.drift.highest.layer if row.drift.highest else "-"),
        ("drift share", lambda row: _number(row.drift.highest and row.drift.highest.drift_share)),
        (
            "centred",
            lambda row: _number(row.drift.highest and row.drift.highest.centered_anisotropy),
        ),
        *second,
        *of(other)[1:2],
    ]


def _names(rows: Sequence[Row], width: int) -> list[str]:
    """What rows are called: the model, and its suite where that alone would not tell."""
    called = [row.model for row in rows]
    texts = [
        f"{row.suite}::{row.model}" if called.count(row.model) > 1 else row.model for row in rows
    ]
    room = max(_SHORTEST_NAME, width - _BESIDE)
    return [clipped(text, room) for text in texts]


def _notes(found: Rows, names: Sequence[str], statistic: Statistic, width: int) -> list[str]:
    """What the words of the table do not say: reasons, and entries without a row."""
    reasons: dict[str, list[str]] = {}
    for name, row in zip(names, found.rows, strict=True):
        record = row.drift.of(statistic)
        if record.reason:
            reasons.setdefault(f"{record.finding}: {record.reason}", []).append(name)
    notes = [f"{', '.join(models)}: {reason}" for reason, models in reasons.items()]
    if found.unmeasured:
        notes.append(f"not measured: {', '.join(found.unmeasured)}")
    lines = [
        line
        for note in notes
        for line in textwrap.wrap(
            note,
            max(width, _NARROWEST),
            initial_indent="  ",
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    ]
    return ["", *lines] if lines else []


def _p(p: float | None) -> str:
    if p is None:
        return "-"
    return "<1e-15" if p < 1e-15 else f"{p:.2g}"


def _number(value: float | None) -> str:
    return "-" if value is None else _two(value)


def _interval(record: CorrelationRecord) -> str:
    if record.interval is None:
        return "-"
    return f"{_two(record.interval[0])} to {_two(record.interval[1])}"


def _two(value: float) -> str:
    """Two decimals, and no negative zero."""
    return f"{round(value, 2) + 0.0:.2f}"
