"""The bound of rank collapse for an entry of a suite: of every sequence, as a profile keeps it."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import TYPE_CHECKING

import torch

from isotest.blocks.bound import CollapseBound, collapse_bound
from isotest.blocks.stack import TransformerStack
from isotest.errors import NonFiniteError, SourceError
from isotest.profile import SequenceBound

if TYPE_CHECKING:
    from isotest.data.dataset import Dataset
    from isotest.models.loaded import LoadedModel


def bounds_of(loaded: LoadedModel, dataset: Dataset, model: str) -> tuple[SequenceBound, ...]:
    """What the bound says of each sequence of a data set.

    It is computed in float64 on the CPU, from the weights as the model holds them and the sequences
    as it is fed them: the bound is about the network and no device.

    Args:
        loaded: a stack of blocks; left as it is.
        dataset: the sequences.
        model: the entry's name, for messages.

    Raises:
        SourceError: the model is no stack of blocks.
        NonFiniteError: a residual is not finite.
    """
    if not isinstance(loaded.module, TransformerStack):
        raise SourceError(
            f"model {model!r}: check 'collapse_bound' is about a stack of blocks (block:), and "
            f"this is a {type(loaded.module).__name__}"
        )
    stack = deepcopy(loaded.module).to("cpu", torch.float64)
    found = []
    for piece in loaded.feed.pieces(iter(dataset), grouped=dataset.grouped):
        (batch,) = loaded.feed.batch([piece]).arguments.values()
        for sequence in batch:
            try:
                found.append(_kept(collapse_bound(stack, sequence)))
            except NonFiniteError as error:
                raise NonFiniteError(f"model {model!r}, {piece.origin}: {error}") from None
    return tuple(found)


def _kept(found: CollapseBound) -> SequenceBound:
    """As a profile keeps it, in which every number is finite."""
    zero = any(math.isinf(each) for each in found.log10_bounds)
    return SequenceBound(
        outcome=found.outcome,
        reason=found.reason,
        heads=found.heads,
        head_width=found.head_width,
        beta=_known(found.beta),
        gamma=_known(found.gamma),
        score_range=_known(found.score_range),
        contraction=_known(found.contraction),
        residuals=found.residuals,
        log10_bounds=() if zero else found.log10_bounds,
    )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
