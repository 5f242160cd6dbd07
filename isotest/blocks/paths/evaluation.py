"""What single paths compute, many at once.

Behind its first head, a path is linear in what entered that head, and every map on it acts either
on positions (attention maps, the scaling of a normalisation) or on entries (weights, the mean that
a LayerNorm takes off, γ), never on both. What a path has computed is therefore a product Z·F, Z
(T, d) of the sequence and F (d, D) of the weights since its last head, and F is the same for all
paths whose last head is the same. From head to head only Z is carried, which is H times narrower
than a representation; (T, D) is computed once, at the end.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch

from isotest.errors import BlockError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.blocks.paths.enumeration import Paths
    from isotest.blocks.paths.network import FixedLayer, FixedNetwork

    Rows = NDArray[np.int64]

_BEGUN = 8
"""So many batches of paths are begun together: more of them share beginnings and weights."""

_UNTOUCHED = -1
"""In place of the last head of a path that went past every layer so far."""


def evaluate(
    network: FixedNetwork, paths: Paths, *, batch: int = 32
) -> Iterator[tuple[Rows, Tensor]]:
    """What paths compute, in batches; where paths begin alike, that is computed once.

    Args:
        network: with its attention maps held fixed.
        paths: (n, L), as of :mod:`isotest.blocks.paths`.
        batch: so many outputs at once, each (B, T, D).

    Yields:
        Which rows of ``paths``, and their outputs (rows, B, T, D). Every row comes once.

    Raises:
        BlockError: no paths, rows that are no paths of this network, or an overflow.
    """
    if batch < 1:
        raise BlockError(f"paths: expected batch to be at least 1, found {batch}")
    shaped = paths.ndim == 2 and paths.shape[1] == network.depth and len(paths) > 0
    if not shaped or not np.issubdtype(paths.dtype, np.integer):
        raise BlockError(
            f"paths: expected whole numbers of shape (paths, {network.depth}), one at least, found "
            f"{paths.dtype} of shape {paths.shape}"
        )
    if paths.min() < 0 or paths.max() > network.heads:
        raise BlockError(
            f"paths: expected ways from 0, past the layer, to {network.heads}, its last head; "
            f"found {paths.min()} to {paths.max()}"
        )
    return _evaluated(network, paths, batch)


@torch.no_grad()
def _evaluated(network: FixedNetwork, paths: Paths, batch: int) -> Iterator[tuple[Rows, Tensor]]:
    order = np.lexsort(paths.T[::-1])
    trunk = [network.start]
    for layer in network.layers:
        trunk.append(layer.past(trunk[-1], constant=True))
    for begin in range(0, len(paths), batch * _BEGUN):
        together = order[begin : begin + batch * _BEGUN]
        states = _Beginnings(network.start, network.layers[0].output.shape[1])
        beginning = np.zeros(len(together), dtype=np.int64)  # of each path, its state
        for number, layer in enumerate(network.layers):
            _, first, inverse = np.unique(
                paths[together, : number + 1], axis=0, return_index=True, return_inverse=True
            )
            ways = paths[together[first], number]
            states.go_on(layer, trunk[number], beginning[first], ways)
            beginning = inverse.reshape(-1)
        for part in range(0, len(together), batch):
            chosen = slice(part, part + batch)
            outputs = states.outputs(network, trunk[-1], beginning[chosen])
            if not all(map(math.isfinite, map(float, outputs.aminmax()))):
                dtype = str(outputs.dtype).removeprefix("torch.")
                raise BlockError(
                    f"paths: what a path computes is no finite {dtype}; use float64 or smaller "
                    "weights"
                )
            yield together[chosen], outputs


class _Beginnings:
    """What distinct beginnings of paths have computed, up to some layer, as products Z·F.

    Args:
        start: (B, T, D), what enters the network.
        size: d, the width of a head.
    """

    def __init__(self, start: Tensor, size: int) -> None:
        self._z = start.new_zeros(1, *start.shape[:2], size)
        self._last = np.full(1, _UNTOUCHED, dtype=np.int64)  # of each state, its last head
        self._factors: dict[int, Tensor] = {}
        """F (d, D) by last head; heads are numbered through the network."""
        self._heads = 0  # of the layers so far

    def go_on(self, layer: FixedLayer, trunk: Tensor, parent: Rows, ways: Rows) -> None:
        """Through the next layer.

        Args:
            layer: it.
            trunk: (B, T, D), what enters it past all layers so far.
            parent: of each longer beginning, the state that it goes on from.
            ways: of each longer beginning, its way through this layer.
        """
        before = self._last[parent]
        z = self._z.new_zeros(len(ways), *self._z.shape[1:])
        last = before.copy()
        past = np.flatnonzero((ways == 0) & (before != _UNTOUCHED))
        z[_index(past)] = self._z[_index(parent[past])]
        for way in np.unique(ways[ways > 0]):
            head = int(way) - 1
            rows = np.flatnonzero(ways == way)
            value = z.new_empty(len(rows), *z.shape[1:])
            for source in np.unique(before[rows]):
                own = np.flatnonzero(before[rows] == source)
                if source == _UNTOUCHED:
                    entering = layer.entering(trunk, constant=True)
                    read = entering @ layer.value[head]
                    if layer.value_bias is not None:
                        read = read + layer.value_bias[head]
                    value[_index(own)] = read
                else:
                    factor = self._factors[int(source)]
                    if layer.enter is not None:
                        factor = layer.enter.of_entries(factor)
                    read = self._z[_index(parent[rows[own]])] @ (factor @ layer.value[head])
                    value[_index(own)] = read if layer.enter is None else read * layer.enter.scale
            z[_index(rows)] = torch.einsum("bij,nbjd->nbid", layer.weights[:, head], value)
            last[rows] = self._heads + head
            self._factors[self._heads + head] = layer.output[head]
        for step in layer.leave:
            if step.norm is not None:
                z *= step.norm.scale
        self._factors = {
            source: layer.leaving(self._factors[source])
            for source in np.unique(last[last != _UNTOUCHED]).tolist()
        }
        self._z, self._last = z, last
        self._heads += len(layer.value)

    def outputs(self, network: FixedNetwork, trunk: Tensor, states: Rows) -> Tensor:
        """(n, B, T, D) behind the last layer and the norm there; one for each of ``states``.

        Args:
            network: whose layers were gone through.
            trunk: (B, T, D), what leaves the last layer past all of them.
            states: numbers of states, as of the last layer.
        """
        final = network.final
        outputs = trunk.new_empty(len(states), *trunk.shape)
        last = self._last[states]
        for source in np.unique(last):
            rows = np.flatnonzero(last == source)
            if source == _UNTOUCHED:
                outputs[_index(rows)] = trunk if final is None else final(trunk, constant=True)
                continue
            z, factor = self._z[_index(states[rows])], self._factors[int(source)]
            if final is not None:
                z, factor = z * final.scale, final.of_entries(factor)
            outputs[_index(rows)] = z @ factor
        return outputs


def _index(rows: Rows) -> Tensor:
    return torch.from_numpy(rows)
