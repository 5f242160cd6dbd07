"""What a block's attention does, of all its queries; and its mean query and key."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

from isotest.attention import maps_of_call
from isotest.errors import MeasurementError, NonFiniteError
from isotest.models.attention.call import NotObservable
from isotest.models.attention.registry import observer_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.blocks.drift.block import StudiedBlock
    from isotest.models.attention.call import AttentionCall
    from isotest.models.loaded import LoadedModel
    from isotest.statistics.attention.accumulator import SelfAttention

    Array = NDArray[np.float64]


@dataclass
class Expectations:
    """Mean query and key of each attention module, over all sequences and positions seen.

    Attributes:
        queries: by the path of the module, (H, d_k) sums.
        keys: likewise, (H_k, d_k).
        counts: by path, how many positions were added up.
    """

    queries: dict[str, Array] = field(default_factory=dict)
    keys: dict[str, Array] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, path: str, call: AttentionCall) -> None:
        """Take in one call of the module at ``path``."""
        for sums, vectors in ((self.queries, call.query), (self.keys, call.key)):
            sums[path] = sums.get(path, 0.0) + _summed(vectors)
        self.counts[path] = self.counts.get(path, 0) + call.query.shape[0] * call.query.shape[2]

    def mean_query(self) -> Array:
        """(M,) E(Q) of all modules and heads, one behind the other."""
        return self._mean(self.queries)

    def mean_key(self) -> Array:
        """(M,) E(K), likewise."""
        return self._mean(self.keys)

    def _mean(self, sums: dict[str, Array]) -> Array:
        return np.concatenate([(sums[path] / self.counts[path]).ravel() for path in sorted(sums)])


def _summed(vectors: Tensor) -> Array:
    total: Array = vectors.double().sum(dim=(0, 2)).cpu().numpy()
    return total


def heads_of_block(block: StudiedBlock, name: str) -> int | None:
    """How many heads the block's attention has; ``None`` where it cannot be seen, or differs."""
    seen = Expectations()
    attention = BlockAttention(block.loaded(), name)
    with block.running(), attention.hooked():
        attention.expect(np.zeros(1, np.int64), "zeros", expectations=seen)
        block.run(torch.zeros(1, 2, block.width, device=block.device, dtype=block.dtype))
    heads = {sums.shape[0] for sums in seen.queries.values()}
    return heads.pop() if len(heads) == 1 else None


class BlockAttention:
    """Sees the attention of a block whenever it runs.

    Args:
        loaded: the block.
        name: of the entry, for messages.

    Attributes:
        refused: why its attention cannot be observed, to follow "not observable: "; ``None`` where
            it can, or where there is none.
    """

    def __init__(self, loaded: LoadedModel, name: str) -> None:
        self._loaded = loaded
        self._name = name
        self._observer = observer_of(loaded)
        self.refused: str | None = None
        if isinstance(self._observer, NotObservable) and not self._observer.absent:
            self.refused = self._observer.reason
        self._part: SelfAttention | None = None
        self._expectations: Expectations | None = None
        self._units: NDArray[np.int64] = np.empty(0, np.int64)
        self._where = ""

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """While the context is open, what :meth:`expect` named is filled."""
        if isinstance(self._observer, NotObservable):
            yield
            return
        with self._observer.observed(self._loaded, self._receive):
            yield

    def expect(
        self,
        units: NDArray[np.int64],
        where: str,
        *,
        part: SelfAttention | None = None,
        expectations: Expectations | None = None,
    ) -> None:
        """A forward pass begins.

        Args:
            units: (B,) of its sequences.
            where: which part of the experiment it is, for messages.
            part: the statistics that it goes into, if any.
            expectations: likewise.
        """
        self._units, self._where = units, where
        self._part, self._expectations = part, expectations
        if part is not None and self.refused is not None:
            part.refuse(self.refused)

    def _receive(self, path: str, seen: AttentionCall | NotObservable) -> None:
        if isinstance(seen, NotObservable):
            self.refused = f"{path or type(self._loaded.module).__name__}: {seen.reason}"
            if self._part is not None:
                self._part.refuse(self.refused)
            return
        if seen.cross:
            return
        if self._expectations is not None:
            self._expectations.add(path, seen)
        if self._part is None:
            return
        try:
            maps = maps_of_call(
                seen, self._part, len(self._units), queries=seen.queries, all_queries=True
            )
        except NonFiniteError as error:
            raise NonFiniteError(f"{self._name!r}, {self._where}: attention: {error}") from None
        except MeasurementError as error:
            raise MeasurementError(
                f"{self._name!r}, {self._where}: attention cannot be measured: {error}; leave out "
                "the attention metrics"
            ) from None
        self._part.observe(path, maps, self._units)
