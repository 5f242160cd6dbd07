"""Attention as an average: its weights sum to one, so it stays within the values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.testing.properties.seen import (
    attentions,
    dot_error,
    eps,
    several,
    some_valid,
    unseen_or_with_sink,
)
from isotest.testing.property import Property, ViolationError

if TYPE_CHECKING:
    from isotest.testing.recorder.recording import Attention
    from isotest.testing.subject import Subject
    from isotest.testing.token_batch import TokenBatch


def _seen(subject: Subject, batch: TokenBatch) -> tuple[Attention, ...]:
    """Without a mask, and with one where the block takes it."""
    batch = several(batch)
    x = batch.tensor()
    seen = attentions(subject, x)
    if subject.claims.masked:
        seen += attentions(subject, x, some_valid(batch))
    return seen


def _rows(subject: Subject, batch: TokenBatch) -> None:
    for attention in _seen(subject, batch):
        weights = attention.weights
        keys = weights.shape[-1]
        # Each weight is rounded once, and their sum once for each of them.
        bound = (keys + 8) * eps(weights)
        sums = weights.double().sum(-1)
        if not (sums - 1).abs().max() <= bound:
            worst = sums.flatten()[(sums - 1).abs().argmax()]
            raise ViolationError(
                f"the weights that a query gives to its {keys} keys sum to {float(worst):.6g}, not "
                f"to 1 within {bound:.1g}"
            )
        if not weights.min() >= 0:
            raise ViolationError(f"a weight is {float(weights.min()):.6g}, below 0")
        _averages(attention)


def _averages(attention: Attention) -> None:
    """The output is what the weights say: also a check of what the recorder understood."""
    values, output = attention.values.value, attention.output
    expected = attention.weights.double() @ values.double()
    keys = values.shape[1]
    bound = (dot_error(keys) + 8) * eps(output, values) * float(values.abs().max())
    error = float((output.double() - expected).abs().max())
    if not error <= bound:
        raise ViolationError(
            f"the attention's output is {error:.3g} away from its weights times its values, more "
            f"than {bound:.1g}"
        )


def _hull(subject: Subject, batch: TokenBatch) -> None:
    for attention in _seen(subject, batch):
        values, output = attention.values.value.double(), attention.output.double()
        keys = values.shape[1]
        low, high = values.amin(1, keepdim=True), values.amax(1, keepdim=True)
        # What the sum of the weights may be off by, and what the product may.
        relative = (keys + 8) + dot_error(keys)
        bound = relative * eps(attention.output) * values.abs().amax(1, keepdim=True)
        beyond = (output - high).maximum(low - output) - bound
        if not beyond.max() <= 0:
            n, i, d = _place(beyond)
            raise ViolationError(
                f"coordinate {d} of an output is {float(output[n, i, d]):.6g}, and those of the "
                f"values lie in {float(low[n, 0, d]):.6g} … {float(high[n, 0, d]):.6g}"
            )


def _place(x: object) -> tuple[int, ...]:
    import torch

    assert isinstance(x, torch.Tensor)
    return tuple(int(at) for at in torch.unravel_index(x.nan_to_num(torch.inf).argmax(), x.shape))


SOFTMAX_ROWS = Property(
    name="softmax_rows",
    statement="The weights that a query gives to its keys are not negative and sum to one.",
    source="Vaswani et al. 2017, equation 1: the softmax runs over the keys.",
    conditions="Attention with a softmax that has no sink; the weights as the values get them.",
    excludes=unseen_or_with_sink,
    check=_rows,
)
CONVEX_HULL = Property(
    name="convex_hull",
    statement="No coordinate of a head's output leaves the range of that coordinate in the values.",
    source="An average with weights that are not negative and sum to one lies in the convex hull.",
    conditions="Attention with a softmax that has no sink; in front of the output projection.",
    excludes=unseen_or_with_sink,
    check=_hull,
)
