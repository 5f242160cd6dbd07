"""The frame around the sublayers: what normalisation and skip make of the residual stream."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from isotest.testing.properties.altered import (
    altered,
    cannot_alter,
    plain_normalisations,
    without_sublayers,
)
from isotest.testing.property import Property, ViolationError

if TYPE_CHECKING:
    from isotest.testing.subject import Subject
    from isotest.testing.token_batch import TokenBatch

NORM_TOLERANCE = 1e-3
"""Relative; float32 loses three digits where the mean is a thousand times the spread."""

ANGLE_TOLERANCE = 1e-5
"""Of 1 − cosine."""


def _output_norm(subject: Subject, batch: TokenBatch) -> None:
    output = altered(subject, plain_normalisations).run(batch.tensor())
    norms = output.double().norm(dim=-1)
    expected = math.sqrt(subject.width)
    worst = (norms / expected - 1).abs().flatten().argmax()
    if not (norms / expected - 1).abs().max() <= NORM_TOLERANCE:
        sequence, position = divmod(int(worst), norms.shape[1])
        raise ViolationError(
            f"the output has length {norms[sequence, position]:.4g} at sequence {sequence}, "
            f"position {position}, and √D = {expected:.4g}"
        )


def _not_normalised(subject: Subject) -> str | None:
    if not subject.claims.normalised:
        return "the block's output is not normalised"
    if subject.width == 1:
        return "one number has no spread to normalise"
    return cannot_alter(subject, plain_normalisations, "with plain normalisations")


def _skip_identity(subject: Subject, batch: TokenBatch) -> None:
    x = batch.tensor()
    output = altered(subject, without_sublayers).run(x.clone())
    if subject.claims.normalised:
        cosine = _centred_cosine(output, x)
        if not cosine.min() >= 1 - ANGLE_TOLERANCE:
            raise ViolationError(
                "with sublayers of zero weights, an output has the cosine "
                f"{cosine.min():.4g} with its input, both centred, instead of 1"
            )
        return
    gap = (output - x).abs().max()
    if not gap <= ANGLE_TOLERANCE * x.abs().max():
        raise ViolationError(
            f"with sublayers of zero weights, the output differs by {gap:.2g} from the input, "
            f"whose largest entry is {x.abs().max():.2g}"
        )


def _centred_cosine(a: Tensor, b: Tensor) -> Tensor:
    a, b = (x.double() - x.double().mean(dim=-1, keepdim=True) for x in (a, b))
    return torch.nn.functional.cosine_similarity(a, b, dim=-1)


def _no_skip(subject: Subject) -> str | None:
    if not subject.claims.skip:
        return "the block has no skip"
    if subject.claims.normalised and subject.width < 3:
        return "in so few dimensions all centred vectors are parallel"
    return cannot_alter(subject, without_sublayers, "without sublayers")


OUTPUT_NORM = Property(
    name="output_norm",
    statement="With gain 1 and shift 0, every output vector has length √D.",
    source="Ba et al. 2016: mean 0, variance 1 over D entries; RMSNorm: Zhang & Sennrich 2019",
    conditions="blocks whose last step is a normalisation; epsilon taken to 0",
    excludes=_not_normalised,
    check=_output_norm,
)

SKIP_IDENTITY = Property(
    name="skip_identity",
    statement="With all weights of the sublayers zero, the input comes through: as it is, or "
    "normalised where the block normalises its output.",
    source="He et al. 2016: x + F(x) with F = 0",
    conditions="blocks with a skip around every sublayer",
    excludes=_no_skip,
    check=_skip_identity,
)
