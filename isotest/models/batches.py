"""Batches of pieces, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from isotest.models.loaded import Piece


def batches(
    pieces: Iterable[Piece], size: int, together: Callable[[Piece, Piece], bool]
) -> Iterator[list[Piece]]:
    """Consecutive runs of at most ``size`` pieces that may share a batch with the first of them."""
    batch: list[Piece] = []
    for piece in pieces:
        if batch and not together(batch[0], piece):
            yield batch
            batch = []
        batch.append(piece)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
