"""Where the entries of a tensor come from, followed through the operations that torch runs.

What only moves entries (views, slices, concatenations) is done to their addresses as well; what
changes each entry by itself leaves the addresses as they are. Everything else ends the trail.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from isotest.testing.recorder.recording import Operand, Projection


@dataclass(frozen=True, eq=False)
class BlockInput:
    """The input of the block."""


@dataclass(frozen=True, eq=False)
class Scores:
    """A product of two tensors that depend on the input, perhaps of queries and keys.

    Attributes:
        left: (N, R, d).
        right: (N, C, d), transposed for the product.
        product: (N, R, C).
    """

    left: Operand
    right: Operand
    product: Tensor


@dataclass(frozen=True, eq=False)
class Normalised:
    """What exponentiated the scores: a softmax, or ``exp`` of one that is written by hand.

    Attributes:
        logits: what went in, flattened, in the order of the scores' product.
        entries: how many there were.
    """

    logits: Tensor
    entries: int


@dataclass(frozen=True, eq=False)
class Origin:
    """What is known of a tensor that depends on the block's input.

    Attributes:
        source: the input, the projection or the product that its entries were in last, if one.
        address: of the tensor's shape, float64: where the flattened source holds each entry.
        normalised: the softmax that the entries have been through since.
    """

    source: BlockInput | Projection | Scores | None = None
    address: Tensor | None = None
    normalised: Normalised | None = None


DEPENDS = Origin()
"""Of a tensor of which nothing else is known."""

_MOVES = frozenset(
    """
    view _unsafe_view reshape _reshape_alias permute transpose t expand squeeze unsqueeze select
    slice split split_with_sizes unsafe_split unbind clone alias detach view_as_complex view_as_real
    repeat index_select flip roll unfold diagonal repeat_interleave
    """.split()  # noqa: SIM905 - read as a list of words
)
_COPIES = frozenset(["_to_copy", "copy", "copy_", "lift_fresh", "contiguous"])
_JOINS = frozenset(["cat", "stack"])
_SINGLY = frozenset(["masked_fill", "where", "tril", "triu", "native_dropout", "rsub"])
"""Torch does not say of these, or of some of their overloads, that they are entry by entry."""
_EXPONENTIALS = frozenset(["exp", "exp2", "_softmax", "_safe_softmax", "softmax"])
_SUMS = frozenset(["add", "sub", "rsub"])


def name_of(func: Any) -> str:
    """What torch calls an operation, whichever overload, in place or not.

    >>> name_of(torch.ops.aten.add_.Tensor), name_of(torch.ops.aten._softmax.default)
    ('add', '_softmax')
    """
    name: str = func.overloadpacket.__name__
    return name if name == "copy_" else name.rstrip("_")


def follow(
    func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], origins: Sequence[Origin | None]
) -> Any:
    """The origin of what an operation returns that is no product; a list of them for several.

    Args:
        func: the operation.
        args: its arguments.
        kwargs: those with names.
        origins: of each of the arguments that is a tensor, those in lists too, in order; ``None``
            where it does not depend on the input. At least one does.
    """
    name = name_of(func)
    if name in _COPIES:
        # A copy into a tensor that was there before is of what is copied.
        return (origins[-1] if name == "copy_" else origins[0]) or DEPENDS
    if name in _MOVES:
        return _moved(func, name, args, kwargs, origins[0] or DEPENDS)
    if name in _JOINS:
        return _joined(func, args, kwargs, origins)
    if name in _SINGLY or name in _EXPONENTIALS or torch.Tag.pointwise in func.tags:
        return _each(name, origins)
    return DEPENDS


def _moved(
    func: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], origin: Origin
) -> Any:
    if origin.address is None:
        return origin
    if name in ("view", "_unsafe_view"):
        # Strides of addresses may differ from those of what they are addresses of.
        func = torch.ops.aten.reshape.default
    try:
        moved = func(origin.address, *args[1:], **kwargs)
    except RuntimeError:
        return DEPENDS
    if isinstance(moved, torch.Tensor):
        return replace(origin, address=moved)
    return [replace(origin, address=part) for part in moved]


def _joined(
    func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], origins: Sequence[Origin | None]
) -> Origin:
    first = next(origin for origin in origins if origin is not None)
    parts = [origin.address for origin in origins if origin is not None]
    sources = {None if origin is None else origin.source for origin in origins}
    if len(sources) > 1 or any(part is None for part in parts):
        # A sink beside the scores has no address of its own.
        if isinstance(first.source, Scores) and first.address is not None:
            return _with_sink(func, args, kwargs, origins)
        return DEPENDS
    return replace(first, address=func(parts, *args[1:], **kwargs))


def _with_sink(
    func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], origins: Sequence[Origin | None]
) -> Origin:
    """Scores beside something else, whose address is −1."""
    scores = next(o for o in origins if o is not None and isinstance(o.source, Scores))
    parts = [
        origin.address
        if origin is not None and origin.source is scores.source and origin.address is not None
        else torch.full_like(tensor, -1.0, dtype=torch.float64)
        for tensor, origin in zip(args[0], origins, strict=True)
    ]
    return replace(scores, address=func(parts, *args[1:], **kwargs))


def _each(name: str, origins: Sequence[Origin | None]) -> Origin:
    """Of what changes every entry by itself, perhaps together with another tensor's."""
    dependent = [origin for origin in origins if origin is not None]
    scores = [origin for origin in dependent if isinstance(origin.source, Scores)]
    if scores:
        # Weights are what is divided by their sum, and scores what their maximum is taken from.
        return max(scores, key=lambda o: (o.normalised is not None, _size(o)))
    if any(isinstance(origin.source, BlockInput) for origin in dependent):
        return DEPENDS
    if len(dependent) == 1:
        return dependent[0]
    same = len({origin.source for origin in dependent}) == 1
    if name in _SUMS and same and all(origin.address is not None for origin in dependent):
        # A rotation: entries of two coordinates are mixed; the first of them is here.
        return dependent[0]
    return DEPENDS


def _size(origin: Origin) -> int:
    return 0 if origin.address is None else origin.address.numel()


def exponentiates(func: Any) -> bool:
    """Whether an operation turns scores into weights, up to their sum."""
    return name_of(func) in _EXPONENTIALS


def adds(func: Any) -> bool:
    """Whether an operation adds its arguments."""
    return name_of(func) in ("add", "sub")
