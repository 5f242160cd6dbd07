"""What was seen of a block's attention in one forward pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class Projection:
    """What depends on the block's input, times what does not, and perhaps a bias.

    Attributes:
        number: counted from 0 as they are computed; the same in every pass of inputs of one shape.
        output: (…, rows, O) what came out, a copy.
        tokens: (rows,) float64, all rows in order: which token of the block's own input, b·L + l,
            each was made of; ``None``: they were made of something else.
        gain: the largest norm of a column of what the input was multiplied with.
    """

    number: int
    output: Tensor
    tokens: Tensor | None
    gain: float


@dataclass(frozen=True, eq=False)
class Operand:
    """One side of a product, and where its entries come from.

    Attributes:
        value: (N, L, d), as it was multiplied.
        projection: the last one in which every entry was: what happened since was done to each
            entry by itself, or was a rotation of positions. ``None``: there is no such one.
        address: (N, L, d) float64, where the flattened ``projection.output`` holds the entry;
            ``None`` without a projection.
    """

    value: Tensor
    projection: Projection | None
    address: Tensor | None

    @property
    def projected(self) -> Tensor:
        """(N, L, d): the entries as they came out of the projection."""
        if self.projection is None or self.address is None:
            raise ValueError("an operand without a projection")
        return self.projection.output.flatten()[self.address.long()]


@dataclass(frozen=True, eq=False)
class Attention:
    """One attention: softmax of a product of queries and keys, times values.

    N is the number of sequences times heads, in the module's own order.

    Attributes:
        query: (N, Lq, dk), as multiplied with the keys.
        key: (N, Lk, dk); heads that share a key each have it.
        values: (N, Lk, dv), as the weights were multiplied with.
        products: the scores before anything was done to them, q·kᵀ, flattened.
        logits: what went into the softmax, flattened; entry i belongs to ``products[i]``.
        rows: (N, Lq, Lk) float64: where ``products`` and ``logits`` hold the score that a weight
            comes from.
        weights: (N, Lq, Lk), as multiplied with the values.
        output: (N, Lq, dv), what came of that.
        complete: whether every weight of the softmax is used: where it has a sink, one is not.
    """

    query: Operand
    key: Operand
    values: Operand
    products: Tensor
    logits: Tensor
    rows: Tensor
    weights: Tensor
    output: Tensor
    complete: bool


@dataclass(frozen=True, eq=False)
class Recording:
    """One forward pass.

    Attributes:
        output: of the block, (B, L, D).
        attentions: those recognised, in the order in which they were computed.
    """

    output: Tensor
    attentions: tuple[Attention, ...]
