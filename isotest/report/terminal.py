"""The terminal summary: what was measured on what, and each model's curve beside its baseline."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from isotest.report.entry import (
    EntrySummary,
    Result,
    by_suite,
    conditions,
    effort,
    main_metric,
)
from isotest.report.sparkline import BLOCKS, DIGITS, sparkline

if TYPE_CHECKING:
    from isotest.profile import Profile

Markup = Callable[[str, Result], str]
"""Wraps a text in the terminal's colour for a result."""

_NAME = (12, 32)
_CURVE = (8, 64)
"""Fewest and most cells of these columns."""

_ASCII = str.maketrans({"·": "-", "…": "...", "→": "->", "±": "+-"})

_LISTED = 2
"""Entries that lack different things and are each said in full."""


def plain(text: str, _result: Result) -> str:
    """No colour."""
    return text


def summary_lines(
    entries: Sequence[EntrySummary],
    *,
    width: int,
    encoding: str = "utf-8",
    markup: Markup = plain,
) -> list[str]:
    """The summary of a run: a head for each suite, then one line a model.

    Args:
        entries: all entries, in order.
        width: of the terminal, in cells; no line is longer, as long as it has 80 or more.
        encoding: of the terminal; where it has no block characters, curves are drawn in digits.
        markup: colours a text.
    """
    marks = BLOCKS if _encodes(BLOCKS, encoding) else DIGITS
    lines: list[str] = []
    for suite, group in by_suite(list(entries)).items():
        lines += _head(suite, group, marks, width)
        lines += _curves([entry for entry in group if entry.profile], marks, width, markup)
        lines += _unmeasured(group, width, markup)
        lines += _inconclusive(group, width, markup)
    if marks is DIGITS:
        return [_ascii(line) for line in lines]
    return lines


def _encodes(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _head(suite: str, group: list[EntrySummary], marks: str, width: int) -> list[str]:
    models = f"{len(group)} model{'s' if len(group) != 1 else ''}"
    done = effort(group)
    text = f"{suite}: {models} on {conditions(group)}" + (f"; {done}" if done else "")
    if not done:
        return _wrapped(f"{suite}: {models}, nothing measured", width, "    ")
    scale = "▁…█: 0…1" if marks is BLOCKS else "digits: tenths of 1, rounded down"
    return _wrapped(
        f"{text}; {main_metric(group)} over the layers ({scale}), then of the baseline",
        width,
        "    ",
    )


def _curves(group: list[EntrySummary], marks: str, width: int, markup: Markup) -> list[str]:
    """One line each, in columns: name, curve, baseline's curve, range, results."""
    if not group:
        return []
    metric = main_metric(group)
    now = [_curve(entry.profile, metric) for entry in group]
    before = [_curve(entry.baseline, metric) for entry in group]
    ranges = [_range(curve) for curve in now]
    results = [_results(entry) for entry in group]
    range_width = max(map(len, ranges))
    # The curves get what is left beside the texts, and the names give way before the curves do.
    free = width - len("  " * 4 + " ") - range_width - max(map(len, results))
    longest = max(4, *map(len, [*now, *before]))
    name_width = min(
        max(cells(entry.model) for entry in group),
        max(_NAME[0], min(_NAME[1], free - 2 * _CURVE[0])),
    )
    room = min(longest, _CURVE[1], max(_CURVE[0], (free - name_width) // 2))
    lines = []
    for entry, curve, base, reach, result in zip(group, now, before, ranges, results, strict=True):
        name = clipped(entry.model, name_width)
        drawn = sparkline(curve, width=room, marks=marks)
        beside = sparkline(base, width=room, marks=marks) or "none"
        line = (
            f"  {name}{' ' * (name_width - cells(name))}  {drawn:{room}} {beside:{room}}  "
            f"{reach:{range_width}}  "
        )
        lines.append(line + markup(result, "passed" if entry.green else entry.result))
    return lines


def _curve(profile: Profile | None, metric: str) -> tuple[float | None, ...]:
    return () if profile is None else profile.curve(metric)


def _range(curve: Sequence[float | None]) -> str:
    defined = [value for value in curve if value is not None]
    return f"{min(defined):.2f} to {max(defined):.2f}" if defined else "undefined"


def _results(entry: EntrySummary) -> str:
    text = ", ".join(f"{count} {result}" for result, count in entry.counts.items())
    return f"{text}, recorded" if entry.recorded else text


def _unmeasured(group: list[EntrySummary], width: int, markup: Markup) -> list[str]:
    """Entries that did not run; those with the same remedy together."""
    lines: list[str] = []
    remedies: dict[str, list[tuple[str, str]]] = {}
    for entry in group:
        if entry.skipped is not None:
            # A remedy may hold a command that has semicolons of its own.
            what, _, remedy = entry.skipped.partition("; ")
            remedies.setdefault(remedy, []).append((entry.model, what))
        elif entry.profile is None:
            first = next((c.headline for c in entry.checks if c.result == "failed"), "")
            text = f"  not measured: {entry.model}" + (f": {first}" if first else "")
            lines += [markup(line, "failed") for line in _wrapped(text, width, "    ")]
    for remedy, missing in remedies.items():
        text = f"  skipped: {_missing(missing)}: {remedy}"
        lines += [markup(line, "skipped") for line in _wrapped(text, width, "    ")]
    return lines


def _missing(missing: list[tuple[str, str]]) -> str:
    """Entries and what each lacks; of many, the first one's stands for the others'."""
    names = ", ".join(model for model, _ in missing)
    reasons = list(dict.fromkeys(what for _, what in missing if what))
    if len(reasons) == 1 and len(missing) > 1:
        return f"{names} ({reasons[0]})"
    if len(missing) > _LISTED:
        return f"{names} ({reasons[0]}; likewise the others)" if reasons else names
    return "; ".join(
        f"{model} ({what})" if what and what != model else model for model, what in missing
    )


def _inconclusive(group: list[EntrySummary], width: int, markup: Markup) -> list[str]:
    lines: list[str] = []
    for entry in group:
        for check in entry.checks:
            if check.result == "inconclusive":
                accepted = " (accepted by the suite)" if check.green else ""
                text = f"  inconclusive{accepted}: {check.headline or check.name}"
                lines += [markup(line, "inconclusive") for line in _wrapped(text, width, "    ")]
    return lines


def _ascii(line: str) -> str:
    return line.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def cells(text: str) -> int:
    r"""How many cells of a terminal a text takes: two for a wide character, none for a mark.

    >>> cells("vit"), cells("変換"), cells("e\u0301")
    (3, 4, 1)
    """
    return sum(
        0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def clipped(name: str, width: int) -> str:
    """The middle of a long name gives way: what tells names apart is at their ends.

    >>> clipped("efficientnet-b0-untrained", 16)
    'efficie..trained'
    """
    if cells(name) <= width:
        return name
    half = width // 2 - 1
    start, end = name, name
    while cells(start) > half:
        start = start[:-1]
    while cells(end) > half:
        end = end[1:]
    return f"{start}..{end}"
