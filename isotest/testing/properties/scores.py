"""Scores as scaled inner products: their scale, and what they cannot tell."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from isotest.testing.properties.seen import (
    attentions,
    dot_error,
    eps,
    generator_of,
    norms,
    ordinary,
    probe,
    unseen,
    unseen_or_with_sink,
    visible,
)
from isotest.testing.property import Property, ViolationError

if TYPE_CHECKING:
    from torch import Tensor

    from isotest.testing.recorder.record import Change
    from isotest.testing.recorder.recording import Attention, Operand
    from isotest.testing.subject import Subject
    from isotest.testing.token_batch import TokenBatch

_SAME = 1e-4
"""Relative deviation below which an operand is a projection times a number: far above rounding,
far below any other treatment."""

_TINY = 1e-30
"""Instead of zero, to divide by."""


def _multiple(operand: Operand) -> bool:
    """Whether an operand is its projection times one number."""
    if operand.projection is None:
        return False
    value, projected = operand.value.double(), operand.projected.double()
    factor = (value * projected).sum() / projected.square().sum()
    return bool((value - factor * projected).norm() <= _SAME * value.norm())


def _factor(operand: Operand) -> float | None:
    """What the rows of an operand are longer by than those of its projection.

    A rotation changes no length. ``None``: there is no projection, or rows differ in it.
    """
    if operand.projection is None:
        return None
    lengths = operand.value.double().norm(dim=-1)
    before = operand.projected.double().norm(dim=-1)
    factor = float(lengths.norm() / before.norm())
    if not bool((lengths - factor * before).norm() <= _SAME * lengths.norm()):
        return None
    return factor


def _slope(first: Attention, second: Attention) -> tuple[float, float]:
    """How much the logits of two inputs differ per difference of their products.

    What is added to the scores whatever the input is, a mask or a bias of positions, falls out, and
    so does what is added to whole rows.

    Returns:
        The slope, and the share of the logits' differences that it does not explain.
    """
    seen = visible(first) & visible(second)
    products, logits = (
        _centred(one[first.rows.long()] - other[second.rows.long()], seen)
        for one, other in ((first.products, second.products), (first.logits, second.logits))
    )
    slope = float((products * logits).sum() / products.square().sum().clamp(min=_TINY))
    rest = float((logits - slope * products).norm() / logits.norm().clamp(min=_TINY))
    return slope, rest


def _slope_error(first: Attention, second: Attention, slope: float) -> float:
    """What rounding may do to both numbers of :func:`_slope`.

    Never more than a fifth: a forgotten or doubled √d_k is a factor of √2 at least.
    """
    seen = visible(first) & visible(second)
    differences = _centred(
        first.logits[first.rows.long()] - second.logits[second.rows.long()], seen
    )
    size = float(differences.norm()) / max(int(seen.sum()), 1) ** 0.5
    error = _logit_error(first, slope) + _logit_error(second, slope)
    bound: float = error / max(size, _TINY) + _SAME
    return min(bound, 0.2)


def _centred(x: Tensor, seen: Tensor) -> Tensor:
    """Each row minus its mean over what is seen; zero elsewhere."""
    x = torch.where(seen, x, 0.0)
    mean = x.sum(-1, keepdim=True) / seen.sum(-1, keepdim=True).clamp(min=1)
    return torch.where(seen, x - mean, 0.0)


def _two(subject: Subject, batch: TokenBatch) -> list[tuple[Attention, Attention]]:
    batch = ordinary(batch)
    first = attentions(subject, batch.tensor())
    second = attentions(subject, replace(batch, seed=batch.seed + 1_000_003).tensor())
    return list(zip(first, second, strict=True))


def _no_scale(subject: Subject) -> str | None:
    if not subject.claims.scaled:
        return "its scores are not said to be divided by √d_k"
    reason = unseen(subject)
    if reason is not None:
        return reason
    for first, second in _two(subject, probe(subject)):
        if _factor(first.query) is None or _factor(first.key) is None:
            return "queries or keys are no projections, perhaps rotated by position"
        slope, rest = _slope(first, second)
        if not rest <= _slope_error(first, second, slope):
            return "scores are no multiple of q·k, plus what does not depend on the input"
    return None


def _scale(subject: Subject, batch: TokenBatch) -> None:
    for first, second in _two(subject, batch):
        query, key = _factor(first.query), _factor(first.key)
        if query is None or key is None:
            raise ViolationError(
                "queries or keys are no projections here, though they are elsewhere"
            )
        slope, rest = _slope(first, second)
        scale = slope * query * key
        width = first.query.value.shape[-1]
        expected = width**-0.5
        # What the fit does not explain is rounding, or else not proportional to q·k.
        bound = 2 * _SAME
        if not rest <= _SAME:
            raise ViolationError(f"{rest:.2g} of the scores is not proportional to q·k")
        if not abs(scale / expected - 1) <= bound:
            raise ViolationError(
                f"scores are q·k times {scale:.4g}, not times 1/√d_k = {expected:.4g} "
                f"(d_k = {width})"
            )


def _places(operand: Operand) -> Tensor:
    assert operand.projection is not None
    assert operand.address is not None
    return operand.address.long()


def _share(one: Operand, other: Operand) -> bool:
    """Whether two operands are made of the same entries of a projection, in part at least."""
    if one.projection is not other.projection or one.projection is None:
        return False
    return bool(torch.isin(_places(one), _places(other)).any())


def _logit_error(attention: Attention, slope: float, *, rows: float = 0.0) -> float:
    """What rounding may do to a score.

    Args:
        attention: whose scores they are.
        slope: of the logits over the products.
        rows: the largest that is added to all scores of a row.
    """
    query, key = attention.query, attention.key
    largest = norms(query) * norms(key) * abs(slope)
    terms = dot_error(query.value.shape[-1])
    return eps(query.value, attention.output) * (terms * largest + 4 * rows)


def _same_output(before: Attention, after: Attention, error: float, what: str) -> None:
    """Demand that two attentions have the same output, up to scores that are off by ``error``."""
    values = before.values.value.double()
    keys = values.shape[1]
    # Weights are off by a factor of exp(±2·error) at most.
    relative = math.expm1(min(2 * error, 50.0)) + dot_error(keys) * eps(before.output)
    bound = 2 * relative * float(values.abs().max())
    moved = float((after.output.double() - before.output.double()).abs().max())
    if not moved <= bound:
        raise ViolationError(
            f"{what} moves the attention's output by {moved:.3g}, more than rounding does "
            f"({bound:.1g})"
        )


def _not_shifted(subject: Subject) -> str | None:
    reason = unseen_or_with_sink(subject)
    if reason is not None:
        return reason
    for attention in attentions(subject, probe(subject).tensor()):
        if not _multiple(attention.key):
            return "keys are not simply a projection: rotated by position, or normalised"
        if _share(attention.key, attention.query) or _share(attention.key, attention.values):
            return "keys share a projection with queries or values"
    return None


def _shift(subject: Subject, batch: TokenBatch) -> None:
    batch = ordinary(batch)
    x = batch.tensor()
    for number, (before, other) in enumerate(_two(subject, batch)):
        slope = abs(_slope(before, other)[0])
        projection = before.key.projection
        if projection is None:
            raise ViolationError("keys are no projection here, though they are elsewhere")
        width = before.key.value.shape[-1]
        direction = torch.randn(width, generator=generator_of(batch), dtype=torch.float64)
        # So long that scores move by 4 or so: weights change by more than any rounding.
        moves = slope * (_factor(before.key) or 1.0) * before.query.value.double() @ direction
        shift = direction * (4 / float(moves.square().mean().sqrt().clamp(min=1e-6)))
        where = _places(before.key)

        def shifted(output: Tensor, where: Tensor = where, shift: Tensor = shift) -> Tensor:
            flat = output.flatten().clone()
            flat[where] += shift.to(flat)
            return flat.view(output.shape)

        after = attentions(subject, x, changes={projection.number: shifted})[number]
        rows = float(moves.abs().max()) * float(shift.norm() / direction.norm())
        error = _logit_error(after, slope, rows=rows)
        _same_output(before, after, error, "a shift that all keys have in common")


def _not_rotated(subject: Subject) -> str | None:
    reason = unseen(subject)
    if reason is not None:
        return reason
    for attention in attentions(subject, probe(subject).tensor()):
        query, key, values = attention.query, attention.key, attention.values
        if not (_multiple(query) and _multiple(key)):
            return "queries or keys are not simply a projection: rotated by position, or normalised"
        if _share(query, values) or _share(key, values):
            return "queries or keys share a projection with values"
    return None


def _rotation(subject: Subject, batch: TokenBatch) -> None:
    batch = ordinary(batch)
    x = batch.tensor()
    for number, (before, other) in enumerate(_two(subject, batch)):
        width = before.query.value.shape[-1]
        turn = torch.randn(width, width, generator=generator_of(batch), dtype=torch.float64)
        turn = torch.linalg.qr(turn).Q
        changes: dict[int, Change] = {}
        for operand in (before.query, before.key):
            if operand.projection is None:
                raise ViolationError("queries or keys are no projections here, elsewhere they are")
            _add_turn(changes, operand, turn)
        after = attentions(subject, x, changes=changes)[number]
        error = 2 * _logit_error(before, _slope(before, other)[0])
        _same_output(before, after, error, "one rotation of the queries and keys of every head")


def _add_turn(changes: dict[int, Change], operand: Operand, turn: Tensor) -> None:
    """Have the rows of an operand rotated where they leave their projection."""
    assert operand.projection is not None
    where, earlier = _places(operand), changes.get(operand.projection.number)

    def turned(output: Tensor) -> Tensor:
        original = output.flatten()
        flat = (output if earlier is None else earlier(output)).flatten().clone()
        # Queries and keys that are the same entries are written twice, the same both times.
        flat[where] = (original[where].double() @ turn).to(flat)
        return flat.view(output.shape)

    changes[operand.projection.number] = turned


ATTENTION_SCALE = Property(
    name="attention_scale",
    statement="Scores are q·k/√d_k, with d_k the width of a head.",
    source="Vaswani et al. 2017, section 3.2.1: q·k of unit variances has variance d_k.",
    conditions="Attention whose queries and keys are projections, at most rotated by position; "
    "what is added to the scores does not depend on the input; scores are said to be scaled.",
    excludes=_no_scale,
    check=_scale,
)
KEY_SHIFT = Property(
    name="key_shift",
    statement="A vector added to all keys changes nothing, so a bias of the keys has no effect.",
    source="softmax(s + c) = softmax(s): all scores of a row move by the same q·b.",
    conditions="Attention whose keys are a projection of their own, times a number: not rotated by "
    "position, not normalised; without a sink.",
    excludes=_not_shifted,
    check=_shift,
)
ROTATION_EQUIVARIANCE = Property(
    name="rotation_equivariance",
    statement="Queries and keys of a head, rotated together, give the same attention.",
    source="(Rq)·(Rk) = q·k: scores depend on inner products alone.",
    conditions="Attention whose queries and keys are projections, times a number: not rotated by "
    "position, not normalised; and are not the values, too.",
    excludes=_not_rotated,
    check=_rotation,
)
