"""How a block behaves as a function: shape, finite numbers, no randomness, no traces left."""

from __future__ import annotations

from dataclasses import replace
from inspect import Parameter, signature
from typing import TYPE_CHECKING

import torch

from isotest.testing.properties.comparison import require_equal
from isotest.testing.property import Property, ViolationError

if TYPE_CHECKING:
    from isotest.testing.subject import Subject
    from isotest.testing.token_batch import TokenBatch

LARGE = 1e4
"""Massive activations of trained models are of this order (Sun et al. 2024: up to 15,000)."""


def always(_: Subject) -> None:
    """What excludes a property that can be demanded of every block: nothing."""


def _shape(subject: Subject, batch: TokenBatch) -> None:
    x = batch.tensor()
    _takes_what_it_gets(subject)
    output: object = subject.run(x.clone())
    if not isinstance(output, torch.Tensor):
        raise ViolationError(
            f"forward returned {_described(output)}; expected one tensor {_size(x)}: wrap the "
            "block so that forward returns its hidden states alone"
        )
    if output.shape != x.shape:
        raise ViolationError(f"{_size(x)} became {_size(output)}")
    if output.dtype != x.dtype:
        raise ViolationError(f"{x.dtype} became {output.dtype}")


def _takes_what_it_gets(subject: Subject) -> None:
    """Raise where ``forward`` cannot be called as it is: torch's own words do not say what to do.

    Raises:
        ViolationError: arguments are missing.
    """
    given = 2 if subject.claims.masked else 1
    wanted = [
        name
        for name, parameter in signature(subject.module.forward).parameters.items()
        if parameter.default is Parameter.empty
        and parameter.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    ]
    if len(wanted) > given:
        hint = "wrap the block in a module that brings the rest"
        if len(wanted) == 2:
            hint += "; if it is a mask, (B, L) bool, true where a position is valid: masked=True"
        raise ViolationError(
            f"forward needs {', '.join(wanted)}, and is called with {given} of them: {hint}"
        )


def _described(value: object) -> str:
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return f"{type(value).__name__}"


def _size(x: torch.Tensor) -> str:
    return f"({', '.join(str(n) for n in x.shape)})"


def _finite(subject: Subject, batch: TokenBatch) -> None:
    _ordinarily_finite(subject, batch)
    _ordinarily_finite(subject, replace(batch, scale=LARGE * batch.scale))


def _ordinarily_finite(subject: Subject, batch: TokenBatch) -> None:
    x = batch.tensor()
    output = subject.run(x.clone())
    if not torch.isfinite(output).all():
        kind = "NaN" if output.isnan().any() else "an infinity"
        raise ViolationError(
            f"{kind} in the output, where the largest entry of the input is {x.abs().max():.2g}"
        )


def _deterministic(subject: Subject, batch: TokenBatch) -> None:
    x = batch.tensor()
    first = subject.run(x.clone())
    what = "the same input once more gave something else"
    if training := [name for name, part in subject.module.named_modules() if part.training]:
        what += f" (after eval(), {training[0] or 'the block'} is in training mode still)"
    require_equal(subject.run(x.clone()), first, what)


def _input_unchanged(subject: Subject, batch: TokenBatch) -> None:
    x = batch.tensor()
    given = x.clone()
    subject.run(given)
    if not torch.equal(given, x):
        changed = int((given != x).sum())
        raise ViolationError(f"forward changed {changed} of the {x.numel()} entries of its input")


SHAPE = Property(
    name="shape",
    statement="(B, L, D) goes in, one tensor of the same shape and dtype comes out.",
    source="what a residual stream is: blocks can be stacked",
    conditions="every block",
    excludes=always,
    check=_shape,
)

FINITE = Property(
    name="finite",
    statement="Finite input gives finite output, also with entries ten thousand times larger.",
    source="massive activations: Sun et al. 2024",
    conditions="every block; input up to about 1e4 standard deviations",
    excludes=always,
    check=_finite,
)

ORDINARILY_FINITE = replace(FINITE, check=_ordinarily_finite)
"""As far as all other properties take it for granted: on input of order 1."""

DETERMINISTIC = Property(
    name="deterministic",
    statement="In eval mode the same input gives the same output.",
    source="dropout is for training: Srivastava et al. 2014",
    conditions="every block",
    excludes=always,
    check=_deterministic,
)

INPUT_UNCHANGED = Property(
    name="input_unchanged",
    statement="The input tensor holds after the forward pass what it held before.",
    source="the input is also the skip's, and belongs to the caller",
    conditions="every block",
    excludes=always,
    check=_input_unchanged,
)
