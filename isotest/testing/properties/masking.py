"""Masked keys: what stands at a position that is not valid must not matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from isotest.testing.properties.seen import dot_error, eps, generator_of, several, some_valid
from isotest.testing.property import Property, ViolationError

if TYPE_CHECKING:
    from torch import Tensor

    from isotest.testing.subject import Subject
    from isotest.testing.token_batch import TokenBatch


def _unmasked(subject: Subject) -> str | None:
    return None if subject.claims.masked else "it takes no mask"


def _check(subject: Subject, batch: TokenBatch) -> None:
    batch = several(batch)
    x, valid = batch.tensor(), some_valid(batch)
    other = torch.randn(x.shape, generator=generator_of(batch)) * (10 * batch.scale)
    changed = torch.where(valid[..., None], x, other)
    output = subject.run(x, valid)
    _no_influence(output[valid], subject.run(changed, valid)[valid], subject.width)
    _no_gradient(subject, x, valid)


def _no_influence(output: Tensor, changed: Tensor, width: int) -> None:
    # The same sums of the same numbers: only their order may differ.
    bound = dot_error(width) * eps(output) * float(output.abs().max())
    difference = float((output - changed).abs().max())
    if not difference <= bound:
        raise ViolationError(
            f"what stands at masked positions moves the outputs of the others by {difference:.3g}"
        )


def _no_gradient(subject: Subject, x: Tensor, valid: Tensor) -> None:
    x = x.clone().requires_grad_()
    with torch.enable_grad():
        output = subject.run_with_gradients(x, valid)
        # Squared, for the sum of what a LayerNorm puts out does not depend on its input at all.
        (gradient,) = torch.autograd.grad(output[valid].square().sum(), x, allow_unused=True)
    if gradient is None:
        raise ViolationError("the output has no gradient with respect to the input")
    bound = eps(x) * float(gradient.abs().max())
    masked = float(gradient[~valid].abs().max())
    if not masked <= bound:
        raise ViolationError(
            f"the outputs of valid positions have a gradient of {masked:.3g} with respect to "
            "masked inputs"
        )


MASKED_KEYS = Property(
    name="masked_keys",
    statement="What stands at a masked position changes no other output, and its gradient is zero.",
    source="A score of −∞, or one so low that its exponential rounds to zero, has weight zero.",
    conditions="Blocks that take a mask; at valid positions.",
    excludes=_unmasked,
    check=_check,
)
