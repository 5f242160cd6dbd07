"""Eigenvalues of the covariance of a layer, over everything and without each block.

Of narrow layers (:mod:`isotest.statistics.covariance`) it is the covariance of all representations,
and without a block it is decomposed again: an exact delete-group jackknife.

Of wider layers it is that of the representations kept, K of width D, through the K × K inner
products where K ≤ D and the D × D covariance elsewhere. Decomposing it again for each of 64 blocks
would cost 64 times as much, so without a block they are approximated. With C = Σ λ_k v_k v_kᵀ and
C₍₋b₎ the covariance of what is left, about its own mean:

- The leading ``TOGETHER`` eigenvalues are those of C₍₋b₎ on the span of the leading eigenvectors
  v_1, …, v_64 (Rayleigh and Ritz), so that they may turn into each other. Where C has no more than
  that, this is exact.
- The others are v_kᵀ C₍₋b₎ v_k: first-order perturbation, which is the influence-function form of
  the jackknife for any smooth function of the spectrum.
- Their sum, tr C₍₋b₎, is exact, and so is ‖C₍₋b₎‖²_F, which is computed beside them. What follows
  from these two has an exact delete-group jackknife here, too.

**What is zero.** Singular values below ε · m · (√N + √D) are rounding, with ε that of the dtype of
storage and m the median over dimensions of their root mean square. Rounding of typical dimensions
makes singular values of up to a quarter of this; the rest is for the larger ones among them. (A
mean over dimensions would take the rounding of one massive dimension for that of all.) Eigenvalues
below max(N, D) · 2⁻⁵² of the largest are rounding of the decomposition. Both count as zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from isotest.statistics.accumulator import totals
from isotest.statistics.sample import centre

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isotest.statistics.covariance import Covariances
    from isotest.statistics.sample import Sample

    Array = NDArray[np.float64]
    Index = NDArray[np.int64]

TOGETHER = 64
"""Leading eigenvectors that may turn into each other where a block is left out."""

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of R covariance matrices (÷ N), up to one common factor.

    Attributes:
        values: (R, m) the m eigenvalues of each that may be above zero, the largest first (beyond
            ``TOGETHER`` without a block: in the order of those of everything). The others, up to
            D, are zero.
        squares: (R,) the sum of the squares of all eigenvalues, ‖C‖²_F.
        counts: (R,) of how many representations.
        width: D.
        basis: in words, from which representations.
    """

    values: Array
    squares: Array
    counts: Array
    width: int
    basis: str

    @property
    def trace(self) -> Array:
        """(R,) the sum of the eigenvalues."""
        total: Array = self.values.sum(axis=1)
        return total

    @property
    def rank(self) -> int:
        """How many eigenvalues of the first covariance are above rounding."""
        return int((self.values[0] > 0).sum())


def centred(sample: Sample) -> Spectrum:
    """The spectrum of the covariance: everything, then without each of G blocks."""
    return _spectrum(sample, about_mean=True)


def uncentred(sample: Sample) -> Spectrum:
    """The spectrum of the second moments XᵀX/N: everything, then without each of G blocks."""
    return _spectrum(sample, about_mean=False)


def _spectrum(sample: Sample, *, about_mean: bool) -> Spectrum:
    if sample.covariances is not None:
        return _of_covariances(sample.covariances, sample.blocks, about_mean=about_mean)
    return _of_kept(sample, about_mean=about_mean)


def _of_covariances(covariances: Covariances, blocks: Index, *, about_mean: bool) -> Spectrum:
    counts, means, scatters = covariances.leaving_out(blocks)
    if not about_mean:
        scatters = scatters + counts[:, None, None] * means[:, :, None] * means[:, None, :]
    values = _eigenvalues(scatters)
    size = float(np.median(covariances.sizes))
    values = _without_rounding(
        values, counts, values[:, 0], width=covariances.width, eps=covariances.eps, size=size
    )
    values = values / np.maximum(counts, 1)[:, None]
    basis = f"covariance of all {covariances.count} representations"
    return Spectrum(values, (values**2).sum(axis=1), counts, covariances.width, basis)


def _of_kept(sample: Sample, *, about_mean: bool) -> Spectrum:
    count, width = sample.count, sample.width
    decomposed = sample.once(centred_moments if about_mean else second_moments)
    values, scores, size = decomposed.values, decomposed.scores, decomposed.size
    rounding = partial(
        _without_rounding, width=width, eps=float(torch.finfo(sample.dtype).eps), size=size
    )
    above = rounding(values[None], np.array([float(count)]), values[:1])[0] > 0
    values, scores = values[above], scores[:, above]
    counts = sample.kept.sum(axis=0).astype(np.float64)
    without, squares = _leaving_out(values, scores, _members(sample), counts[1:], about_mean)
    # What is left without a block is no more accurate than the whole that it is a part of.
    largest = np.repeat(values[:1] if len(values) else [0.0], len(counts))
    every = rounding(np.concatenate([values[None], without]), counts, largest)
    squares = np.where(every.any(axis=1), np.append(values @ values, squares), 0.0)
    per = np.maximum(counts, 1)
    return Spectrum(every / per[:, None], squares / per**2, counts, width, sample.basis)


def _members(sample: Sample) -> list[Index]:
    """The representations of each of G blocks."""
    return [np.flatnonzero(sample.places == block) for block in range(len(sample.blocks))]


def _leaving_out(
    values: Array, scores: Array, members: list[Index], left: Array, about_mean: bool
) -> tuple[Array, Array]:
    """(G, m) eigenvalues of the scatter without each block, and (G,) the sums of all squares.

    Args:
        values: (m,) eigenvalues of the scatter of everything.
        scores: (K, m) coordinates of the representations along its eigenvectors.
        members: of G blocks.
        left: (G,) how many representations there are without the block.
        about_mean: whether what is left is to be centred again.
    """
    together = min(len(values), TOGETHER)
    energies = np.zeros((len(members), len(values)))
    products = np.zeros((len(members), together, together))
    shifts = np.zeros((len(members), len(values)))
    squares = np.zeros(len(members))
    for block, chosen in enumerate(members):
        own = scores[chosen]
        shift = own.sum(axis=0) / np.sqrt(max(1.0, left[block])) if about_mean else 0 * values
        energies[block] = np.square(own).sum(axis=0)
        products[block] = own[:, :together].T @ own[:, :together]
        shifts[block] = shift
        # ‖Λ − OᵀO − ssᵀ‖² with O the scores of the block and s their sum over √(N − n).
        squares[block] = (
            values @ values
            + np.square(own @ own.T).sum()
            + (shift @ shift) ** 2
            - 2 * values @ (energies[block] + shift**2)
            + 2 * np.square(own @ shift).sum()
        )
    if len(values) == 0:
        return energies, squares
    without = np.maximum(totals(energies)[1:] - shifts**2, 0)
    lead = shifts[:, :together]
    ritz = _eigenvalues(totals(products)[1:] - lead[:, :, None] * lead[:, None, :])
    without[:, :together] = np.maximum(ritz, 0)
    without[left == 0] = 0
    # Where a block is nearly everything the squares cancel; they are never below these.
    return without, np.maximum(squares, np.square(without).sum(axis=1))


@dataclass(frozen=True)
class Moments:
    """The scatter of kept representations, decomposed.

    Attributes:
        values: (m,) its eigenvalues, the largest first, m the smaller of K and D.
        scores: (K, m) coordinates of the representations along its eigenvectors.
        size: the median over dimensions of their root mean square.
    """

    values: Array
    scores: Array
    size: float


def centred_moments(sample: Sample) -> Moments:
    """Of the representations about their mean."""
    return _moments(sample, about_mean=True)


def second_moments(sample: Sample) -> Moments:
    """Of the representations as they are: XᵀX."""
    return _moments(sample, about_mean=False)


def _moments(sample: Sample, *, about_mean: bool) -> Moments:
    count, width = sample.count, sample.width
    few = count <= width
    side = count if few else width
    matrix = torch.zeros(side, side, dtype=torch.float64, device=sample.device)
    energies = []
    for columns in sample.slices():
        energies.append(columns.square().sum(dim=0).cpu().numpy())
        part = centre(columns) if about_mean else columns
        if few:
            matrix.addmm_(part, part.T)
        else:  # D < K: one slice holds all dimensions
            matrix = part.T @ part
    size = float(np.median(np.sqrt(np.concatenate(energies) / count)))
    # Small matrices are decomposed on the CPU, wherever the representations are.
    ascending, turned = torch.linalg.eigh(matrix.cpu())
    values, vectors = ascending.numpy()[::-1], turned.numpy()[:, ::-1]
    scores: Array
    if few:
        scores = vectors * np.sqrt(np.maximum(values, 0))
    else:
        onto = torch.from_numpy(vectors.copy()).to(sample.device)
        scores = (part @ onto).cpu().numpy()
    return Moments(values, scores, size)


def _eigenvalues(matrices: Array) -> Array:
    """(R, m) eigenvalues of symmetric matrices (R, m, m), the largest first."""
    ascending: Array = torch.linalg.eigvalsh(torch.from_numpy(matrices)).numpy()
    return ascending[:, ::-1]


def _without_rounding(
    values: Array, counts: Array, largest: Array, *, width: int, eps: float, size: float
) -> Array:
    """Eigenvalues (R, m) of scatters, those that are rounding beside ``largest`` set to zero."""
    count = counts[:, None]
    stored = (eps * size * (np.sqrt(count) + np.sqrt(width))) ** 2
    decomposed = np.maximum(count, width) * _EPS * largest[:, None]
    return np.where(values > np.maximum(stored, decomposed), values, 0.0)
