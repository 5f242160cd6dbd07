"""A batch of token vectors, described by a few numbers that a report can print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import torch

from isotest.testing.described import Described

if TYPE_CHECKING:
    from torch import Tensor

Kind = Literal["normal", "drifted", "constant", "repeated", "sparse"]
"""``normal``: N(0, 1); ``drifted``: with a common direction as long as the rest; ``constant``: all
positions of a sequence are one vector; ``repeated``: positions take turns between two vectors;
``sparse``: one entry of each vector is not zero."""

KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, repr=False)
class TokenBatch(Described):
    """Sequences of token vectors that follow from their description alone.

    Attributes:
        sequences: B.
        length: L, positions of each sequence.
        width: D.
        seed: of the random numbers.
        kind: how they are distributed.
        scale: what every entry is multiplied by.

    >>> TokenBatch(sequences=2, length=3, width=4, seed=0).tensor().shape
    torch.Size([2, 3, 4])
    >>> TokenBatch(1, 2, 4, seed=0, kind="drifted")
    TokenBatch(sequences=1, length=2, width=4, kind='drifted')
    """

    sequences: int
    length: int
    width: int
    seed: int = 0
    kind: Kind = "normal"
    scale: float = 1.0

    def tensor(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """(B, L, D) the same numbers every time."""
        generator = torch.Generator().manual_seed(self.seed)
        shape = (self.sequences, self.length, self.width)
        x = torch.randn(shape, generator=generator, dtype=torch.float64)
        match self.kind:
            case "drifted":
                x = x + torch.randn(self.width, generator=generator, dtype=torch.float64)
            case "constant":
                x = x[:, :1].expand(shape)
            case "repeated":
                x = x[:, torch.arange(self.length) % 2]
            case "sparse":
                chosen = torch.randint(self.width, shape[:2], generator=generator)
                x = x * torch.nn.functional.one_hot(chosen, self.width)
            case "normal":
                pass
        return (x * self.scale).to(dtype)
