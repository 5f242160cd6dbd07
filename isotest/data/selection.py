"""Which inputs of a source are measured, and their numbering as samples and units."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from isotest.data.dataset import Sample
from isotest.data.digest import with_group
from isotest.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from isotest.data.kind import Kind
    from isotest.data.rows import Row, Rows, Stream


def subset(available: int, samples: int, seed: int) -> list[int]:
    """``samples`` of the positions 0 … ``available`` − 1, drawn by ``seed``, in increasing order.

    >>> subset(5, 5, seed=1)
    [0, 1, 2, 3, 4]
    >>> subset(10, 3, seed=0) == subset(10, 3, seed=0)
    True
    """
    if samples == available:
        return list(range(available))
    drawn = np.random.default_rng(seed).permutation(available)[:samples]
    return [int(position) for position in np.sort(drawn)]


def number(rows: Iterable[Row], kind: Kind) -> Iterator[Sample]:
    """Rows as samples: finished as their kind says, numbered from 0, units by first appearance."""
    units: dict[str, int] = {}
    new_unit = itertools.count()
    for index, row in enumerate(rows):
        if row.group is None:
            unit = next(new_unit)
        elif row.group in units:
            unit = units[row.group]
        else:
            unit = units[row.group] = next(new_unit)
        content = kind.finished(row.content, row.origin)
        digest = with_group(kind.digest(content), row.group)
        yield Sample(index, unit, row.origin, content, digest)


class Selected:
    """A ``Dataset``: chosen positions of ``rows``."""

    def __init__(
        self,
        rows: Rows,
        kind: Kind,
        positions: Sequence[int],
        description: Mapping[str, str | int],
    ) -> None:
        self._rows = rows
        self._kind = kind
        self._positions = positions
        self._description = {**description, "samples": len(positions)}

    def __len__(self) -> int:
        return len(self._positions)

    @property
    def grouped(self) -> bool:
        """Whether samples may share a unit."""
        return self._rows.grouped

    def __iter__(self) -> Iterator[Sample]:
        return number(self._rows.read(self._positions), self._kind)

    def describe(self) -> Mapping[str, str | int | None]:
        """Source, number of samples, seed and way of selecting."""
        return dict(self._description)


class Taken:
    """A ``Dataset``: the first ``samples`` inputs of a shuffled stream."""

    def __init__(
        self,
        stream: Stream,
        kind: Kind,
        samples: int,
        seed: int,
        description: Mapping[str, str | int],
    ) -> None:
        self._stream = stream
        self._kind = kind
        self._samples = samples
        self._seed = seed
        self._description = {**description, "samples": samples}

    def __len__(self) -> int:
        return self._samples

    @property
    def grouped(self) -> bool:
        """Whether samples may share a unit."""
        return self._stream.grouped

    def __iter__(self) -> Iterator[Sample]:
        found = 0
        rows = itertools.islice(self._stream.read(self._seed), self._samples)
        for sample in number(rows, self._kind):
            found += 1
            yield sample
        if found < self._samples:
            raise too_many(str(self._description["source"]), self._samples, found)

    def describe(self) -> Mapping[str, str | int | None]:
        """Source, number of samples, seed and way of selecting."""
        return dict(self._description)


def too_many(source: str, samples: int, available: int) -> SourceError:
    """The error for asking ``source`` for more than it has."""
    return SourceError(
        f"data source {source!r}: {samples} samples are asked for, but there are only {available}; "
        "lower samples, or leave it out to use all"
    )
