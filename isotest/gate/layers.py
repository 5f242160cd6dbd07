"""Which layers a check is about: ``any``, ``last``, ``3-7``, ``decoder.last``, ``last,final``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isotest.errors import IsotestError

if TYPE_CHECKING:
    from collections.abc import Sequence

_SELECTOR = re.compile(r"(?:([a-z]\w*)\.)?(any|last|final|full|(\d+)(?:-(\d+))?)", re.ASCII)

SINGLE = ("last", "final", "full")
"""Words that select one layer of each part at most."""

PART = re.compile(r"[a-z]\w*", re.ASCII)
"""What the name of a part of a model looks like."""


@dataclass(frozen=True)
class Selector:
    """A selector, understood.

    Attributes:
        stack: the part of the model that it is about, such as ``"decoder"``; ``""``: every part.
        word: ``"any"``, ``"last"``, ``"final"`` or ``"full"``; ``""`` for numbers.
        first: first number.
        end: last number, included.
    """

    stack: str
    word: str
    first: int = 0
    end: int = 0


def parse_selector(text: str) -> Selector:
    """What a selector means.

    Raises:
        IsotestError: nothing; says what is known.

    >>> parse_selector("3-7")
    Selector(stack='', word='', first=3, end=7)
    >>> parse_selector("decoder.last")
    Selector(stack='decoder', word='last', first=0, end=0)
    """
    match = _SELECTOR.fullmatch(text)
    if match is None:
        raise IsotestError(
            f"layers = {text!r}: expected 'any', 'last', 'final', 'full', a number such as '3' or "
            "a range such as '3-7', or one of them for a part of the model, such as "
            "'decoder.last', or several with commas between, such as 'last,final'"
        )
    stack, word = match[1] or "", match[2]
    if match[3] is None:
        return Selector(stack, word)
    first, end = int(match[3]), int(match[4] or match[3])
    if end < first:
        before = f"{stack}." if stack else ""
        raise IsotestError(
            f"layers = {text!r}: the range ends before it starts; write '{before}{end}-{first}'"
        )
    return Selector(stack, "", first, end)


def parse_selectors(text: str) -> tuple[Selector, ...]:
    """What a list of selectors means, such as ``"last,final"``: the layers of each of them.

    Raises:
        IsotestError: one of them means nothing; says what is known.

    >>> [selector.word for selector in parse_selectors("last,final")]
    ['last', 'final']
    """
    return tuple(parse_selector(part.strip()) for part in text.split(","))


def part_of(layer: str) -> str:
    """The part of the model that a layer belongs to; ``""`` in a model of one part.

    >>> part_of("decoder.3"), part_of("final")
    ('decoder', '')
    """
    return layer.rpartition(".")[0]


def select_layers(names: Sequence[str], selector: str) -> tuple[str, ...]:
    """The layers that ``selector`` means, in the order of ``names``; empty if it matches none.

    A range is matched by number, both ends included, and must exist at both ends: ``"3-7"`` matches
    nothing in a model whose last block is 5, as half of what was asked for would go unjudged. In a
    model of several parts it must exist in each, unless it names one. For the same reason a list of
    selectors matches nothing unless each of them matches something.

    Args:
        names: the layers of a profile, ``"0"`` … ``"n"`` and perhaps ``"final"``, with the name of
            a part in front (``"encoder.0"``) where a model has several.
        selector: ``"any"``: all; ``"last"``: the last numbered block of each part; ``"final"``: the
            final normalisations; ``"full"``: a network itself, beside its paths; a number; a range;
            one of them after a part's name and a dot; or several of these with commas between.

    Raises:
        IsotestError: the selector cannot be understood.

    >>> select_layers(["0", "1", "2", "final"], "1-2")
    ('1', '2')
    >>> select_layers(["encoder.0", "encoder.1", "decoder.0", "decoder.1"], "last")
    ('encoder.1', 'decoder.1')
    >>> select_layers(["encoder.0", "encoder.1", "decoder.0", "decoder.1"], "decoder.any")
    ('decoder.0', 'decoder.1')
    >>> select_layers(["0", "1", "2", "final"], "last,final")
    ('2', 'final')
    >>> select_layers(["full", "paths_5.1", "paths_5.2"], "full")
    ('full',)
    """
    found: set[str] = set()
    for wanted in parse_selectors(selector):
        matching = _select(names, wanted)
        if not matching:
            return ()
        found.update(matching)
    return tuple(name for name in names if name in found)


def _select(names: Sequence[str], wanted: Selector) -> list[str]:
    stacks: dict[str, list[str]] = {}
    for name in names:
        stacks.setdefault(part_of(name), []).append(name)
    if wanted.stack:
        stacks = {stack: layers for stack, layers in stacks.items() if stack == wanted.stack}
    found: list[str] = []
    for layers in stacks.values():
        matching = _in_stack(layers, wanted)
        if not matching and not wanted.word:
            return []
        found += matching
    return found


def _in_stack(layers: Sequence[str], wanted: Selector) -> list[str]:
    short = {name.rpartition(".")[2]: name for name in layers}
    numbered = {int(name): full for name, full in short.items() if name.isdecimal()}
    match wanted.word:
        case "any":
            return list(layers)
        case "final" | "full":
            return [short[wanted.word]] if wanted.word in short else []
        case "last":
            # The embedding is no block, so a model of nothing else has no last one.
            blocks = [number for number in numbered if number > 0]
            return [numbered[max(blocks)]] if blocks else []
    if wanted.first not in numbered or wanted.end not in numbered:
        return []
    return [full for number, full in numbered.items() if wanted.first <= number <= wanted.end]


def describe_layers(names: Sequence[str]) -> str:
    """Names as a compact list in the order given, runs of numbers joined.

    >>> describe_layers(["0", "3", "4", "5", "final"])
    '0, 3-5, final'
    >>> describe_layers(["encoder.1", "encoder.2", "decoder.0"])
    'encoder.1-2, decoder.0'
    """
    runs: list[list[str]] = []
    for name in names:
        stack, _, short = name.rpartition(".")
        before, _, previous = (runs[-1][-1] if runs else "").rpartition(".")
        follows = short.isdecimal() and previous.isdecimal() and int(short) == int(previous) + 1
        if follows and stack == before:
            runs[-1].append(name)
        else:
            runs.append([name])
    return ", ".join(
        run[0] if len(run) == 1 else f"{run[0]}-{run[-1].rpartition('.')[2]}" for run in runs
    )
