"""Products of matrices, and attention as a product of weights and values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from isotest.testing.recorder.origin import BlockInput, Normalised, Origin, Scores, name_of
from isotest.testing.recorder.recording import Attention, Operand, Projection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

_AT = {"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1, "_addmm_activation": 1}
"""Operations that multiply matrices, and at which argument these start."""


@dataclass(frozen=True, eq=False)
class Traced:
    """A tensor and its origin; ``None``: it does not depend on the block's input."""

    value: Tensor
    origin: Origin | None

    def swapped(self) -> Traced:
        """Rows and columns exchanged."""
        return Traced(self.value.mT, _with_address(self.origin, lambda address: address.mT))

    def batched(self) -> Traced:
        """As three axes: more are flattened, fewer completed."""

        def reshape(x: Tensor) -> Tensor:
            return x.reshape(-1, *x.shape[-2:])

        return Traced(reshape(self.value), _with_address(self.origin, reshape))

    def operand(self) -> Operand:
        """A copy of it, with the projection that it comes from."""
        origin, value = self.origin, self.value.clone()
        if origin is None or origin.address is None or not isinstance(origin.source, Projection):
            return Operand(value, None, None)
        return Operand(value, origin.source, origin.address.expand(value.shape))


def _with_address(origin: Origin | None, change: Any) -> Origin | None:
    if origin is None or origin.address is None:
        return origin
    return Origin(origin.source, change(origin.address), origin.normalised)


def multiplied(func: Any, args: Sequence[Any]) -> tuple[int, int] | None:
    """Which arguments of an operation are the matrices that it multiplies; ``None``: no such."""
    at = _AT.get(name_of(func))
    return None if at is None else (at, at + 1)


def addresses(x: Tensor) -> Tensor:
    """The address of every entry of a source: its place in the flattened tensor."""
    return torch.arange(x.numel(), dtype=torch.float64, device=x.device).view(x.shape)


def tokens_of(left: Traced) -> Tensor | None:
    """Which tokens of the block's input the rows of a matrix are; ``None``: they are none."""
    origin = left.origin
    if origin is None or not isinstance(origin.source, BlockInput) or origin.address is None:
        return None
    rows = origin.address.reshape(-1, origin.address.shape[-1])
    width = rows.shape[-1]
    whole = torch.arange(width, dtype=torch.float64, device=rows.device)
    if not torch.equal(rows, rows[:, :1] + whole) or bool((rows[:, 0] % width).any()):
        return None
    return rows[:, 0] / width


def scores_of(left: Traced, right: Traced, product: Tensor) -> Origin:
    """The origin of a product of two tensors that both depend on the input."""
    scores = Scores(left.batched().operand(), right.swapped().batched().operand(), product.clone())
    return Origin(source=scores, address=addresses(product))


def normalised(value: Tensor, origin: Origin) -> Origin:
    """The origin of the exponential of ``value``, which are scores."""
    if not isinstance(origin.source, Scores) or origin.address is None:
        return origin
    if origin.normalised is not None:
        return origin
    logits = torch.full(
        (origin.source.product.numel() + 1,), -torch.inf, dtype=torch.float64, device=value.device
    )
    # A sink, at −1, falls behind the last score.
    logits[origin.address.expand(value.shape).long().flatten()] = value.double().flatten()
    done = Normalised(logits[:-1], value.numel())
    return Origin(source=origin.source, address=origin.address, normalised=done)


def attention_of(left: Traced, right: Traced, output: Tensor) -> Attention | None:
    """The attention that ends in the product of ``left`` and ``right``; ``None``: none does."""
    left, right = left.batched(), right.batched()
    output = output.reshape(-1, *output.shape[-2:])
    for weights, values, result in (
        (left, right, output),
        (right.swapped(), left.swapped(), output.mT),
    ):
        origin = weights.origin
        if origin is None or origin.normalised is None or origin.address is None:
            continue
        scores = origin.source
        assert isinstance(scores, Scores)
        rows = origin.address.expand(weights.value.shape)
        query, key = _sides(scores, rows)
        return Attention(
            query=query,
            key=key,
            values=values.operand(),
            products=scores.product.double().flatten(),
            logits=origin.normalised.logits,
            rows=rows,
            weights=weights.value.clone(),
            output=result.clone(),
            complete=weights.value.numel() >= origin.normalised.entries,
        )
    return None


def _sides(scores: Scores, rows: Tensor) -> tuple[Operand, Operand]:
    """Which side of the scores are queries and which are keys: keys change along a row."""
    columns = scores.product.shape[-1]
    column = rows % columns
    along_keys = bool((column[..., :1] != column).any())
    along_queries = bool((column[..., :1, :] != column).any())
    if along_queries and not along_keys:
        return scores.right, scores.left
    return scores.left, scores.right


def fused(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
    """The arguments of a fused attention by name; ``None``: the operation is none."""
    if not name_of(func).startswith("_scaled_dot_product") or "backward" in name_of(func):
        return None
    names = [argument.name for argument in func._schema.arguments]
    return {**dict(zip(names, args, strict=False)), **kwargs}


def fused_attention(
    query: Traced, key: Traced, values: Traced, given: Mapping[str, Any], output: Tensor
) -> Attention:
    """What a fused attention computed: its scores and weights a second time, in float64.

    Args:
        query: (B, H, Lq, dk).
        key: (B, Hk, Lk, dk); query head h reads key head h // (H / Hk).
        values: (B, Hk, Lk, dv).
        given: the operation's other arguments: mask or bias, scale, whether it is causal.
        output: (B, H, Lq, dv).
    """
    times = query.value.shape[1] // key.value.shape[1]
    key, values = _shared(key, times), _shared(values, times)
    scale = given.get("scale")
    if scale is None:
        scale = query.value.shape[-1] ** -0.5
    product = query.value.double() @ key.value.double().mT
    logits = product * scale
    mask = given.get("attn_mask", given.get("attn_bias"))
    if mask is not None and mask.dtype == torch.bool:
        logits = logits.masked_fill(~mask, -torch.inf)
    elif mask is not None:
        logits = logits + mask
    if given.get("is_causal"):
        seen = torch.ones(logits.shape[-2:], dtype=torch.bool, device=logits.device).tril()
        logits = logits.masked_fill(~seen, -torch.inf)
    # As torch's own: a row that sees nothing weighs nothing.
    weights = logits.softmax(-1).nan_to_num(0.0)
    rows = addresses(product).flatten(0, 1)
    return Attention(
        query=query.batched().operand(),
        key=key.batched().operand(),
        values=values.batched().operand(),
        products=product.flatten(),
        logits=logits.flatten(),
        rows=rows,
        weights=weights.flatten(0, 1),
        output=output.flatten(0, 1).clone(),
        complete=True,
    )


def _shared(x: Traced, times: int) -> Traced:
    if times == 1:
        return x
    return Traced(
        x.value.repeat_interleave(times, 1),
        _with_address(x.origin, lambda address: address.repeat_interleave(times, 1)),
    )
