"""Which layers a check is about: ``any``, ``last``, ``final``, ``3``, ``3-7``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isotest.errors import IsotestError

if TYPE_CHECKING:
    from collections.abc import Sequence

_NUMBERS = re.compile(r"(\d+)(?:-(\d+))?", re.ASCII)


def parse_selector(text: str) -> tuple[int, int] | None:
    """The first and last number of ``"3"`` or ``"3-7"``; ``None`` for the named selectors.

    Raises:
        IsotestError: anything else; says what is known.

    >>> parse_selector("3-7"), parse_selector("3"), parse_selector("last")
    ((3, 7), (3, 3), None)
    """
    if text in ("any", "last", "final"):
        return None
    match = _NUMBERS.fullmatch(text)
    if match is None:
        raise IsotestError(
            f"layers = {text!r}: expected 'any', 'last', 'final', a number such as '3' or a range "
            "such as '3-7'"
        )
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise IsotestError(
            f"layers = {text!r}: the range ends before it starts; write '{last}-{first}'"
        )
    return first, last


def select_layers(names: Sequence[str], selector: str) -> tuple[str, ...]:
    """The layers that ``selector`` means, in the order of ``names``; empty if it matches none.

    A range is matched by number, both ends included, and must exist at both ends: ``"3-7"`` matches
    nothing in a model whose last block is 5, as half of what was asked for would go unjudged.

    Args:
        names: the layers of a profile, ``"0"`` … ``"n"`` and perhaps ``"final"``.
        selector: ``"any"``: all; ``"last"``: the last numbered block; ``"final"``: the final
            normalisation; a number; a range.

    Raises:
        IsotestError: the selector cannot be understood.

    >>> select_layers(["0", "1", "2", "final"], "1-2")
    ('1', '2')
    >>> select_layers(["0", "1", "2", "final"], "last")
    ('2',)
    """
    bounds = parse_selector(selector)
    numbered = {int(name): name for name in names if _NUMBERS.fullmatch(name) and name.isdecimal()}
    if bounds is None:
        if selector == "any":
            return tuple(names)
        if selector == "final":
            return tuple(name for name in names if name == "final")
        # The embedding is no block, so a model of nothing else has no last one.
        blocks = [number for number in numbered if number > 0]
        return (numbered[max(blocks)],) if blocks else ()
    first, last = bounds
    if first not in numbered or last not in numbered:
        return ()
    wanted = {numbered[number] for number in numbered if first <= number <= last}
    return tuple(name for name in names if name in wanted)


def describe_layers(names: Sequence[str]) -> str:
    """Names as a compact list in the order given, runs of numbers joined.

    >>> describe_layers(["0", "3", "4", "5", "final"])
    '0, 3-5, final'
    """
    runs: list[list[str]] = []
    for name in names:
        previous = runs[-1][-1] if runs else ""
        if name.isdecimal() and previous.isdecimal() and int(name) == int(previous) + 1:
            runs[-1].append(name)
        else:
            runs.append([name])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
