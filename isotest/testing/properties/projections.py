"""Queries and keys as affine maps of the block's input: a bias on the input shifts them exactly."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from isotest.testing.properties.seen import (
    attentions,
    dot_error,
    eps,
    generator_of,
    probe,
    several,
    unseen,
)
from isotest.testing.property import Property, ViolationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from isotest.testing.recorder.recording import Attention, Operand
    from isotest.testing.subject import Subject
    from isotest.testing.token_batch import TokenBatch


def _of_input(attention: Attention) -> Iterator[tuple[str, Operand]]:
    """Queries and keys that are made of the block's own input."""
    for name, operand in (("queries", attention.query), ("keys", attention.key)):
        if operand.projection is not None and operand.projection.tokens is not None:
            yield name, operand


def _not_of_input(subject: Subject) -> str | None:
    reason = unseen(subject)
    if reason is not None:
        return reason
    seen = attentions(subject, probe(subject).tensor())
    if not any(True for attention in seen for _ in _of_input(attention)):
        return (
            "queries and keys are no projections of the block's own input: something, such as a "
            "norm, comes between"
        )
    return None


def _by_token(operand: Operand, batch: int, length: int) -> Tensor:
    """(B, L, O) what became of each entry of the projection; NaN for those of no operand."""
    projection, address = operand.projection, operand.address
    assert projection is not None
    assert projection.tokens is not None
    assert address is not None
    outputs = projection.output.shape[-1]
    table = torch.full((batch * length, outputs), torch.nan, dtype=torch.float64)
    rows = projection.tokens.long()[(address // outputs).long()]
    table[rows, (address % outputs).long()] = operand.value.double()
    return table.view(batch, length, outputs)


def _check(subject: Subject, batch: TokenBatch) -> None:
    # A mean of one sequence is that sequence.
    batch = replace(several(batch), sequences=max(2, batch.sequences))
    x = batch.tensor()
    b = torch.randn(batch.width, generator=generator_of(batch)) * batch.scale
    nothing = torch.zeros(1, batch.length, batch.width)
    mean = x.double().mean(0, keepdim=True).to(x.dtype)
    inputs = torch.cat((x, x + b, nothing, nothing + b, mean))
    found = False
    for attention in attentions(subject, inputs):
        for name, operand in _of_input(attention):
            found = True
            table = _by_token(operand, len(inputs), batch.length)
            bound = _bound(operand, inputs)
            _compare(name, table, batch.sequences, bound)
    if not found:
        raise ViolationError("queries and keys are projections of other inputs, but not of this")


def _bound(operand: Operand, inputs: Tensor) -> float:
    """What rounding may do to an entry: that of a product, and of the input x + b itself."""
    assert operand.projection is not None
    projected = operand.projected.double()
    factor = float(operand.value.double().norm() / projected.norm().clamp(min=1e-30))
    product = operand.projection.gain * float(inputs.norm(dim=-1).max())
    terms = dot_error(inputs.shape[-1]) + 8
    return 2 * factor * eps(operand.value) * (terms * product + 8 * float(projected.abs().max()))


def _compare(name: str, table: Tensor, sequences: int, bound: float) -> None:
    plain, moved = table[:sequences], table[sequences : 2 * sequences]
    none, shift, mean = table[2 * sequences :]
    # Entries that belong to no query, or to no key, are NaN everywhere.
    off = (moved - plain - (shift - none)).abs().nan_to_num(0.0).max()
    if not off <= bound:
        raise ViolationError(
            f"a bias on the input does not shift all {name} alike: they are up to {float(off):.3g} "
            f"away from that, more than rounding brings about ({bound:.1g})"
        )
    off = (plain.mean(0) - mean).abs().nan_to_num(0.0).max()
    if not off <= bound:
        raise ViolationError(
            f"the mean of the {name} is {float(off):.3g} away from what the mean input gives, more "
            f"than rounding brings about ({bound:.1g})"
        )


EXPECTATION = Property(
    name="expectation",
    statement="A bias b on the input shifts every query and key by W·b, and E(Q) = W·E(x) + b_Q.",
    source="Godey et al. 2023, section 4: expectation is linear, and projections are affine.",
    conditions="Queries or keys that are made of a linear map of the block's own input, so not "
    "where a norm comes first.",
    excludes=_not_of_input,
    check=_check,
)
