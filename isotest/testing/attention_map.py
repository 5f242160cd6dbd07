"""An attention map, described by a few numbers that a report can print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import torch

from isotest.testing.described import Described

if TYPE_CHECKING:
    from torch import Tensor

MapKind = Literal["uniform", "diagonal", "first", "causal", "random", "peaked"]
"""``uniform``: all keys alike; ``diagonal``: each query its own key; ``first``: all the first one,
a sink; ``causal``: uniform over the past; ``random``: a softmax of N(0, 1); ``peaked``: of
N(0, 20²), nearly one key a query."""

MAP_KINDS: tuple[MapKind, ...] = get_args(MapKind)


@dataclass(frozen=True, repr=False)
class AttentionMap(Described):
    """Weights of queries for keys: rows that are not negative and sum to one.

    Attributes:
        heads: H.
        length: L.
        seed: of the random kinds.
        kind: how the weights are distributed.

    >>> AttentionMap(heads=1, length=2, kind="causal").tensor().tolist()
    [[[1.0, 0.0], [0.5, 0.5]]]
    """

    heads: int
    length: int
    seed: int = 0
    kind: MapKind = "uniform"

    def tensor(self) -> Tensor:
        """(H, L, L) float64, the same numbers every time."""
        generator = torch.Generator().manual_seed(self.seed)
        shape = (self.heads, self.length, self.length)
        weights = torch.ones(shape, dtype=torch.float64)
        match self.kind:
            case "diagonal":
                weights = torch.eye(self.length, dtype=torch.float64).expand(shape)
            case "first":
                weights = weights.cumsum(-1) == 1
            case "causal":
                weights = weights.tril()
            case "random" | "peaked":
                scores = torch.randn(shape, generator=generator, dtype=torch.float64)
                return (scores * (20 if self.kind == "peaked" else 1)).softmax(-1)
            case "uniform":
                pass
        return weights.double() / weights.sum(-1, keepdim=True)
