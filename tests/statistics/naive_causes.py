"""What the diagnosis reads, as loops over pairs and dimensions, sharing no code with isotest."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from tests.statistics.naive import anisotropy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.statistics.naive import Array, Sample


def _rogue(sample: Sample) -> list[float] | None:
    """The shares of the anisotropy that exceed what chance gives a dimension."""
    rows = []
    for sequence, unit in zip(sample.sequences, sample.units, strict=True):
        for row in sequence:
            if row.any():
                scaled = row / np.abs(row).max()
                rows.append((scaled / math.sqrt(math.fsum(scaled**2)), unit))
    products = [a * b for (a, g), (b, h) in itertools.combinations(rows, 2) if g != h]
    if not products:
        return None
    by_dimension = [math.fsum(column) for column in np.array(products).T]
    shares = [value / math.fsum(by_dimension) for value in by_dimension]
    width = len(shares)
    if width == 1:
        return []
    least = max(0.01, 1 - math.exp(2 / (width - 1) * math.log(0.01 / width)))
    return [share for share in shares if share > least]


def rogue_share(sample: Sample) -> float | None:
    shares = _rogue(sample)
    return None if shares is None else math.fsum(shares)


def rogue_dimensions(sample: Sample) -> float | None:
    shares = _rogue(sample)
    return None if shares is None else float(len(shares))


def _pairs(sample: Sample) -> Iterator[tuple[Array, int, int, Array, int, int]]:
    rows = [
        (row, number, unit)
        for number, (sequence, unit) in enumerate(zip(sample.sequences, sample.units, strict=True))
        for row in sequence
        if row.any()
    ]
    for one, other in itertools.combinations(rows, 2):
        yield (*one, *other)


def _share_of_copies(pairs: list[tuple[Array, Array]]) -> float | None:
    if not pairs:
        return None
    return sum(a.tobytes() == b.tobytes() for a, b in pairs) / len(pairs)


def duplicate_pairs(sample: Sample) -> float | None:
    return _share_of_copies([(a, b) for a, _, g, b, _, h in _pairs(sample) if g != h])


def duplicate_pairs_within(sample: Sample) -> float | None:
    return _share_of_copies([(a, b) for a, s, _, b, t, _ in _pairs(sample) if s == t])


def vacuous(sample: Sample) -> bool:
    """Whether there is too little anisotropy to share out among dimensions."""
    value = anisotropy(sample)
    return value is not None and abs(value) < 0.01


CAUSES = {
    function.__name__: function
    for function in (rogue_share, rogue_dimensions, duplicate_pairs, duplicate_pairs_within)
}
