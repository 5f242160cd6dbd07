"""What paths of each length contribute to a network's output, with error bars over sequences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from isotest.blocks.paths.enumeration import all_paths, count_paths, sample_paths
from isotest.blocks.paths.evaluation import evaluate
from isotest.errors import BlockError
from isotest.estimate import Estimate
from isotest.statistics.accumulator import LONE
from isotest.statistics.jackknife import jackknife
from isotest.statistics.residual import centred, frobenius

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.blocks.paths.network import FixedNetwork

    Array = NDArray[np.float64]


@dataclass(frozen=True)
class PathLength:
    """What the paths of one length contribute; C_k their sum, Y = Σ C_k the output.

    Each estimate is a mean over sequences, valid positions only, with the standard error of the
    jackknife over sequences: what other inputs would change. Sequences of which it is undefined
    are left out and counted in ``dropped``.

    Attributes:
        length: k.
        paths: C(L, k)·H^k.
        share: ⟨C_k, Y⟩ / ‖Y‖². Shares add up to one; below zero, the paths pull away from Y.
        size: ‖C_k‖ / ‖Y‖ in the Frobenius norm. Where it is far above |share|, lengths cancel.
        residual: rank residual of C_k, ‖C_k − 1c̄ᵀ‖ / ‖C_k‖.
        path_residual: rank residual of each path of that length, mean over paths; its basis says
            over which. The error bar is over sequences, for these paths. ``None`` if none were
            asked for.
    """

    length: int
    paths: int
    share: Estimate
    size: Estimate
    residual: Estimate
    path_residual: Estimate | None


@torch.no_grad()
def contributions(
    network: FixedNetwork, *, paths: int = 0, seed: int = 0, batch: int = 32
) -> tuple[PathLength, ...]:
    """What the paths of each length contribute to a network's output.

    All but ``path_residual`` is exact: no path is drawn for it.

    Args:
        network: with its attention maps held fixed.
        paths: for ``path_residual``, so many paths of each length are drawn; all, where there are
            no more. 0: it is left out.
        seed: of the draw.
        batch: paths evaluated at once.

    Returns:
        Lengths 0 to L.

    Raises:
        BlockError: ``paths`` is negative, or something overflows.

    >>> from isotest.blocks import BlockConfig, TransformerStack
    >>> from isotest.blocks.paths.stack import fixed_stack
    >>> stack = TransformerStack(BlockConfig(width=8, heads=2, hidden=16, depth=3, mlp=False))
    >>> x = torch.randn(4, 5, 8, generator=torch.Generator().manual_seed(0))
    >>> found = contributions(fixed_stack(stack, x), paths=10)
    >>> round(sum(length.share.value for length in found), 6)
    1.0
    >>> found[2].paths, found[2].path_residual.basis
    (12, '10 of 12 paths, drawn with seed 2')
    """
    if paths < 0:
        raise BlockError(f"paths: expected to draw 0 paths of each length or more, found {paths}")
    valid = network.valid
    sums = network.by_length()
    whole = sums.double().sum(0) * valid[:, :, None]
    # Of the size of one, so that no square leaves the range of float64.
    unit = whole.abs().amax((1, 2), keepdim=True)
    whole = whole / unit
    square = whole.square().sum((1, 2))
    found = []
    for length, some in enumerate(sums):
        part = some.double() * valid[:, :, None]
        what, zero = f"the sum over paths of length {length}", "the output is zero"
        found.append(
            PathLength(
                length,
                count_paths(network.depth, network.heads, length),
                _mean(((part / unit * whole).sum((1, 2)) / square).cpu().numpy(), zero),
                _mean((frobenius(part / unit) / square.sqrt()).cpu().numpy(), zero),
                _of_residuals(residuals(part, valid)[None], valid, what),
                _of_paths(network, length, paths, seed, batch) if paths else None,
            )
        )
    return tuple(found)


def residuals(x: Tensor, valid: Tensor) -> Array:
    """Rank residual ‖X − 1x̄ᵀ‖_F / ‖X‖_F of each sequence.

    Args:
        x: (…, B, T, D).
        valid: (B, T) bool.

    Returns:
        (…, B) float64. NaN where a sequence has one valid position, whose residual is 0 by
        construction, and where it is zero throughout, 0 / 0.
    """
    mask = valid.expand(x.shape[:-1]).reshape(-1, x.shape[-2])
    rows = x.double().reshape(-1, *x.shape[-2:])
    # A path through many layers may be as small as 1e-200, the square of which is zero.
    largest = torch.linalg.vector_norm(rows, ord=torch.inf, dim=(1, 2), keepdim=True)
    unit = torch.where(largest > 0, largest, torch.ones_like(largest))
    rows = rows / unit * mask[:, :, None] if not bool(mask.all()) else rows / unit
    ratio = frobenius(centred(rows, mask)) / frobenius(rows)
    ratio[mask.sum(1) < 2] = torch.nan
    result: Array = ratio.reshape(x.shape[:-2]).cpu().numpy()
    return result


def _of_paths(network: FixedNetwork, length: int, number: int, seed: int, batch: int) -> Estimate:
    count = count_paths(network.depth, network.heads, length)
    if count <= number:
        drawn = all_paths(network.depth, network.heads, length)
        basis = f"all {count} paths"
    else:
        own = seed + length
        drawn = sample_paths(network.depth, network.heads, number, length=length, seed=own)
        basis = f"{number} of {count} paths, drawn with seed {own}"
    found = np.empty((len(drawn), len(network.valid)))
    for rows, outputs in evaluate(network, drawn, batch=batch):
        found[rows] = residuals(outputs, network.valid)
    what = f"every path of length {length}"
    return replace(_of_residuals(found, network.valid, what), basis=basis)


def _of_residuals(found: Array, valid: Tensor, what: str) -> Estimate:
    """Of (paths, B) residuals: of each sequence the mean over its paths that are not zero."""
    usable = ~np.isnan(found)
    counts = usable.sum(axis=0)
    means = np.where(usable, found, 0.0).sum(axis=0) / np.where(counts > 0, counts, np.nan)
    if bool((valid.sum(1) < 2).all()):
        return replace(_mean(means, LONE), vacuous=True)
    return _mean(means, f"{what} is zero")


def _mean(values: Array, reason: str) -> Estimate:
    """Mean over the sequences that have a value, or why none has one."""
    usable = values[np.isfinite(values)]
    dropped = len(values) - len(usable) or None
    if not len(usable):
        return Estimate(None, undefined=reason, dropped=dropped)
    without = (usable.sum() - usable) / (len(usable) - 1) if len(usable) > 1 else np.empty(0)
    estimate = jackknife(float(usable.mean()), without.tolist(), [1] * len(usable))
    return replace(estimate, dropped=dropped)
