"""Batches of samples, in index order."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isotest.data.dataset import Dataset, Sample


def batches(dataset: Dataset, size: int) -> Iterator[list[Sample]]:
    """Consecutive runs of ``size`` samples; the last one may be shorter."""
    samples = iter(dataset)
    while batch := list(itertools.islice(samples, size)):
        yield batch
