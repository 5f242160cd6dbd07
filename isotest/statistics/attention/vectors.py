"""Lengths and directions of queries and keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from isotest.errors import NonFiniteError
from isotest.statistics.accumulator import divide
from isotest.statistics.attention.arrays import array, double, upcast

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    Array = NDArray[np.float64]


_SMALL, _LARGE = 1e-15, 1e15
"""Lengths beyond are computed in float64, lest squares of entries leave the range of float32."""


def of_vectors(name: str, x: Tensor, valid: NDArray[np.bool_], windows: int) -> dict[str, Array]:
    """(N, H) mean length of the vectors that count, and mean cosine over pairs of them."""
    here = torch.tensor(valid, device=x.device)[:, None]
    everything = bool(valid.all())
    norms = _norms(upcast(x), here, everything)
    ordinary = norms if everything else torch.where(here, norms, 1)
    if not bool(((ordinary > _SMALL) & (ordinary < _LARGE)).all()):
        norms = _norms(x.double(), here, everything)
        if not bool(torch.isfinite(norms).all()):
            head = int((~torch.isfinite(norms)).nonzero()[0][1])
            raise NonFiniteError(f"head {head} has {name} vectors with NaN or infinite entries")
    x = x.to(norms.dtype)
    inverse = torch.where(norms > 0, norms.reciprocal(), 0)
    if not everything:
        x = torch.where(here[..., None], x, 0)
    common = double((inverse[..., None, :] @ x)[..., 0, :])
    lengths, directed = double(norms), array(norms > 0)
    count = len(x) // windows

    def pooled(values: Array) -> Array:
        result: Array = values.reshape(count, windows, *values.shape[1:]).sum(axis=1)
        return result

    total = pooled(np.broadcast_to(valid.sum(axis=1)[:, None], lengths.shape[:2]).astype(float))
    n = pooled(directed.sum(axis=2).astype(float))
    pairs = n * (n - 1)
    squared = (pooled(common) ** 2).sum(axis=2)
    cosine = divide(squared - n, pairs)
    norm = divide(pooled(lengths.sum(axis=2)), total)
    return {f"{name}_norm": norm, f"{name}_cosine": np.clip(cosine, -1, 1)}


def _norms(x: Tensor, here: Tensor, everything: bool) -> Tensor:
    """(B, H, L) lengths, 0 where nothing counts."""
    norms: Tensor = torch.linalg.vector_norm(x, dim=3)
    return norms if everything else torch.where(here, norms, 0)


def seen_keys(valid: NDArray[np.bool_], key: Tensor, allowed: Tensor | None) -> NDArray[np.bool_]:
    """(B, Lk) which keys some query that counts may see."""
    shape = (len(key), key.shape[2])
    some = valid.any(axis=1, keepdims=True)
    if allowed is None:
        return np.broadcast_to(some, shape)
    mask = allowed[:, 0]
    if mask.shape[1] > 1:
        counts = torch.from_numpy(valid).to(mask.device)[:, :, None]
        mask = mask if valid.all() else mask & counts
    seen = np.broadcast_to(array(mask.any(dim=1)), shape)
    result: NDArray[np.bool_] = seen & some
    return result
