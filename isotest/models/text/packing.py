"""From texts to sequences of a model's units: cut into windows, or one text each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotest.errors import IsotestError, SourceError, one_line
from isotest.models.loaded import Piece

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from isotest.data.dataset import Sample
    from isotest.models.text.encoder import Ids, TextEncoder


def documents(samples: Iterable[Sample], encoder: TextEncoder, length: int) -> Iterator[Piece]:
    """One text, one sequence: what is beyond ``length`` units, added ones included, is cut off.

    Raises:
        SourceError: a text without a single unit, or one that the tokenizer fails on.
    """
    for sample in samples:
        body = _encoded(sample, encoder)[: length - encoder.added]
        if not len(body):
            raise SourceError(
                f"text {sample.origin}: yields no {encoder.units}; remove it or correct it"
            )
        yield Piece(sample.unit, sample.origin, encoder.sequence(body))


def windows(
    samples: Iterable[Sample], encoder: TextEncoder, length: int, *, grouped: bool
) -> Iterator[Piece]:
    """Texts joined and cut into sequences of exactly ``length`` units, added ones included.

    Where samples share units (a group: a book, a speaker), texts are joined within their unit only,
    so that no window belongs to two of them; where they do not, all texts are joined in order, as
    is usual for a corpus that is stored line by line, and each window is a unit of its own. What is
    left at the end of a unit, too short for a window, is dropped.

    Raises:
        SourceError: a unit, or the whole, is shorter than a window; the tokenizer fails on a text.
    """
    body = length - encoder.added
    pending: dict[int, list[Ids]] = {}
    waiting: dict[int, int] = {}
    made: dict[int, int] = {}
    first: dict[int, str] = {}
    count = 0
    for sample in samples:
        key = sample.unit if grouped else 0
        first.setdefault(key, sample.origin)
        pending.setdefault(key, []).append(_encoded(sample, encoder))
        waiting[key] = waiting.get(key, 0) + len(pending[key][-1])
        if waiting[key] < body:
            continue
        joined = np.concatenate(pending[key])
        whole = len(joined) // body
        for number in range(whole):
            unit = sample.unit if grouped else count
            content = encoder.sequence(joined[number * body : (number + 1) * body])
            yield Piece(unit, sample.origin, content)
            count += 1
        made[key] = made.get(key, 0) + whole
        pending[key] = [joined[whole * body :]]
        waiting[key] = len(pending[key][0])
    for key, units in waiting.items():
        if key not in made:
            what = "its group" if grouped else "all texts together"
            raise SourceError(
                f"text {first[key]}: {what} is {units} {encoder.units} long, shorter than a window "
                f"of {length} ({encoder.added} of them added); lower 'length' in [measure], or use "
                "packing = 'documents'"
            )


def _encoded(sample: Sample, encoder: TextEncoder) -> Ids:
    try:
        return encoder.encode(sample.content)
    except IsotestError:
        raise
    except Exception as error:
        raise SourceError(
            f"text {sample.origin}: the tokenizer fails on it: {one_line(error)}"
        ) from error
