"""What the properties of attention have in common: a first look, masks, and rounding."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from isotest.errors import one_line
from isotest.models.attention.masks import HIDDEN
from isotest.testing.property import ViolationError
from isotest.testing.recorder.record import Change, record
from isotest.testing.token_batch import TokenBatch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from isotest.testing.recorder.recording import Attention, Operand
    from isotest.testing.subject import Subject


def probe(subject: Subject) -> TokenBatch:
    """The input on which a property is tried for whether it applies."""
    return TokenBatch(sequences=2, length=4, width=subject.width)


def several(batch: TokenBatch) -> TokenBatch:
    """The same with two positions at least.

    Of a single key the weight is 1, and an einsum does not even multiply matrices for it.
    """
    return replace(batch, length=max(2, batch.length))


def ordinary(batch: TokenBatch) -> TokenBatch:
    """The same random numbers as N(0, 1), with two sequences of three positions at least.

    For properties that nothing can be seen of where all scores are alike or huge.
    """
    return replace(
        batch,
        sequences=max(2, batch.sequences),
        length=max(3, batch.length),
        kind="normal",
        scale=1.0,
    )


def unseen(subject: Subject) -> str | None:
    """Why nothing can be said of a block's attention, or ``None``."""
    x = probe(subject).tensor()
    try:
        recording = record(subject, x)
    except Exception as error:  # the block ran before, so it is that torch lets nobody watch
        return f"its operations cannot be watched ({one_line(error)})"
    if not recording.attentions:
        return (
            "no attention is recognised in it: no softmax of a product of two things that depend "
            "on the input weighs a third"
        )
    plain = subject.run(x)
    bound = 1e-3 * float(plain.abs().max())
    if not torch.isfinite(plain).all() or not (recording.output - plain).abs().max() <= bound:
        return "what it computes differs from one pass to the next, or is not finite"
    return None


def unseen_or_with_sink(subject: Subject) -> str | None:
    """As :func:`unseen`, and where a part of the softmax weighs no value."""
    reason = unseen(subject)
    if reason is not None:
        return reason
    seen = record(subject, probe(subject).tensor()).attentions
    if not all(attention.complete for attention in seen):
        return "its softmax has a sink: a part of each row weighs no value"
    return None


def attentions(
    subject: Subject,
    x: Tensor,
    valid: Tensor | None = None,
    changes: Mapping[int, Change] | None = None,
) -> tuple[Attention, ...]:
    """Every attention of one pass.

    Raises:
        ViolationError: none is recognised, though it was on the first look.
    """
    seen = record(subject, x, valid, changes).attentions
    if not seen:
        raise ViolationError(
            f"no attention is recognised on an input of {x.shape[0]} × {x.shape[1]} tokens, though "
            "it is on others"
        )
    return seen


def some_valid(batch: TokenBatch) -> Tensor:
    """(B, L) bool, the first position true, about half of the others, and one of them false."""
    generator = torch.Generator().manual_seed(batch.seed)
    valid = torch.rand((batch.sequences, batch.length), generator=generator) < 0.5
    valid[:, -1] = False
    valid[:, 0] = True
    return valid


def eps(*tensors: Tensor) -> float:
    """The coarsest machine epsilon among some tensors."""
    return max(float(torch.finfo(tensor.dtype).eps) for tensor in tensors)


def dot_error(terms: int) -> float:
    """Error of a sum of products, in epsilons times the norms of what is multiplied.

    The probabilistic bound λ·√n of Higham & Mary 2019, with λ = 8; twice, since two are compared.
    """
    return 16 * math.sqrt(terms)


def visible(attention: Attention) -> Tensor:
    """(N, Lq, Lk) bool: which scores are not masked."""
    logits = attention.logits[attention.rows.long()]
    return torch.isfinite(logits) & (logits > HIDDEN)


def norms(operand: Operand) -> float:
    """The longest row of an operand."""
    return float(operand.value.double().norm(dim=-1).max())


def generator_of(batch: TokenBatch) -> torch.Generator:
    """Random numbers beside those of the batch."""
    return torch.Generator().manual_seed(batch.seed + 1)
