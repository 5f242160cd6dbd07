"""What is measured of one call of attention: numbers of each sequence and head.

Scores and softmax rows are taken of at most ``ROWS`` queries of each sequence (of each window,
where it has several), or of as many as are asked for: every k-th one that counts, with the smallest
k that suffices. Which those are depends on the sequence's length alone. Scores are computed a few
sequences at a time, in the precision of queries and keys but at least float32, and summed in
float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from isotest.errors import MeasurementError
from isotest.statistics.attention.arrays import array, upcast
from isotest.statistics.attention.rows import of_scores
from isotest.statistics.attention.vectors import of_vectors, seen_keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    Array = NDArray[np.float64]

ROWS = 32
"""Queries of a sequence whose scores are computed at most."""

_ENTRIES = {"cpu": 1 << 18}
_ENTRIES_ELSEWHERE = 1 << 26
"""Scores at a time: on the CPU few enough for the caches."""


@dataclass(frozen=True)
class Maps:
    """What one call showed of each sequence.

    Attributes:
        values: by name, (N, H) a number of each sequence and head, NaN where it has none; of
            keys, (N, Hk).
        histogram: (N, BINS) the sequence's scores, all heads together, in the fixed bins.
        thinned: whether some queries' scores were left out.
    """

    values: Mapping[str, Array]
    histogram: NDArray[np.int64]
    thinned: bool


def maps_of(
    query: Tensor,
    key: Tensor,
    *,
    scale: float,
    bias: Tensor | None = None,
    allowed: Tensor | None = None,
    queries: Tensor | None = None,
    softcap: float | None = None,
    sequences: int | None = None,
    rows: int | None = ROWS,
    quantiles: bool = True,
) -> Maps:
    """Reduce one call of attention to numbers of each sequence and head.

    Args:
        query: (B, H, Lq, dk), any floating dtype.
        key: (B, Hk, Lk, dk); query head h reads key head h // (H / Hk).
        scale: what q·kᵀ is multiplied by.
        bias: added to the scores, broadcastable to (B, H, Lq, Lk).
        allowed: bool, broadcastable to (B, 1, Lq, Lk), true where a query may see a key.
        queries: (B, Lq) bool, true where a query counts.
        softcap: c of c·tanh(scores / c).
        sequences: N; B is a multiple of it, and B / N successive rows are one sequence's windows.
        rows: of how many queries of a sequence scores are computed at most; ``None``: of all.
        quantiles: whether the scores' quantiles are wanted, which take longer than all the rest.

    Raises:
        NonFiniteError: a score that counts is NaN or infinite, or a query or key that counts.
        MeasurementError: shapes that do not fit together.
    """
    if query.device.type == "mps":  # it has no float64
        query, key = query.cpu(), key.cpu()
        bias = None if bias is None else bias.cpu()
        allowed = None if allowed is None else allowed.cpu()
    count = len(query) if sequences is None else sequences
    _check(query, key, bias, allowed, queries, count)
    valid = array(queries) if queries is not None else np.ones((len(query), query.shape[2]), bool)
    limit = max(1, query.shape[2]) if rows is None else rows
    places, present = chosen_rows(valid, limit)
    values: dict[str, list[Array]] = {}
    histograms: list[NDArray[np.int64]] = []
    windows = len(query) // max(count, 1)
    entries = _ENTRIES.get(query.device.type, _ENTRIES_ELSEWHERE)
    step = max(1, entries // max(1, windows * query.shape[1] * places.shape[1] * key.shape[2]))
    for first in range(0, count, step):
        part = slice(first * windows, (first + step) * windows)
        scores, seen = _scores(
            upcast(query[part]),
            upcast(key[part]),
            scale,
            _part(bias, part, len(query)),
            _part(allowed, part, len(query)),
            softcap,
            places[part],
            present[part],
        )
        some, histogram = of_scores(
            _by_sequence(scores, windows), _seen(seen, windows), quantiles=quantiles
        )
        for name, numbers in some.items():
            values.setdefault(name, []).append(numbers)
        histograms.append(histogram)
    everything = {name: np.concatenate(parts) for name, parts in values.items()}
    everything |= of_vectors("query", query, valid, windows)
    everything |= of_vectors("key", key, seen_keys(valid, key, allowed), windows)
    return Maps(everything, np.concatenate(histograms), bool((valid.sum(1) > limit).any()))


def chosen_rows(
    valid: NDArray[np.bool_], limit: int = ROWS
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Which queries' scores are computed.

    Args:
        valid: (B, Lq) which queries count.
        limit: how many of a sequence at most.

    Returns:
        (B, R) their positions, and (B, R) which of these there are; the others are 0.

    >>> valid = np.arange(70)[None] < np.array([[70], [3]])
    >>> rows, present = chosen_rows(valid)
    >>> rows[0, :4].tolist(), rows.shape, rows[1, present[1]].tolist()
    ([0, 3, 6, 9], (2, 24), [0, 1, 2])
    """
    counts = valid.sum(axis=1)
    stride = np.maximum(1, -(-counts // limit))
    rank = np.cumsum(valid, axis=1) - 1
    chosen = valid & (rank % stride[:, None] == 0)
    width = max(1, int(chosen.sum(axis=1).max(initial=0)))
    order = np.argsort(~chosen, axis=1, kind="stable")[:, :width]
    present = np.take_along_axis(chosen, order, axis=1)
    return np.where(present, order, 0), present


def _scores(
    query: Tensor,
    key: Tensor,
    scale: float,
    bias: Tensor | None,
    allowed: Tensor | None,
    softcap: float | None,
    rows: NDArray[np.int64],
    present: NDArray[np.bool_],
) -> tuple[Tensor, Tensor | None]:
    """(B, H, R, Lk) scores of the chosen rows, and (B, 1, R, Lk) which count; ``None``: all."""
    batch, heads, _, width = query.shape
    own, length = key.shape[1], key.shape[2]
    alike = bool(present.all() and (rows == rows[:1]).all())
    index = torch.from_numpy(rows[0] if alike else rows).to(query.device)
    chosen = _at(query, index)
    shared = chosen.reshape(batch, own, -1, width)  # the heads that read one key head, in a row
    scores = (shared @ key.transpose(2, 3)).view(batch, heads, -1, length)
    scores *= scale
    if bias is not None:
        scores += _at(bias, index).to(scores.dtype)
    if softcap is not None:
        scores = scores.div_(softcap).tanh_().mul_(softcap)
    seen = None
    if allowed is not None:
        seen = _at(allowed, index).expand(batch, 1, chosen.shape[2], length)
    if not present.all():
        here = torch.from_numpy(present).to(query.device)[:, None, :, None]
        seen = here.expand(batch, 1, -1, length) if seen is None else seen & here
    return scores, seen


def _at(x: Tensor, index: Tensor) -> Tensor:
    """Rows of (B, H, L, ·) at (R,) positions that all share, or at (B, R); L = 1: any row."""
    if x.shape[2] == 1:
        return x
    if index.dim() == 1:
        return x.index_select(2, index)
    batch = torch.arange(len(index), device=index.device)[:, None]
    return x.expand(len(index), -1, -1, -1)[batch, :, index].transpose(1, 2)


def _by_sequence(scores: Tensor, windows: int) -> Tensor:
    """(B, H, R, Lk) to (B / w, H, w · R, Lk)."""
    if windows == 1:
        return scores
    batch, heads, rows, length = scores.shape
    apart = scores.view(batch // windows, windows, heads, rows, length)
    return apart.transpose(1, 2).reshape(batch // windows, heads, windows * rows, length)


def _seen(seen: Tensor | None, windows: int) -> Tensor | None:
    return None if seen is None else _by_sequence(seen.contiguous(), windows)


def _part(x: Tensor | None, part: slice, batch: int) -> Tensor | None:
    return x if x is None or (len(x) == 1 and batch > 1) else x[part]


def _check(
    query: Tensor,
    key: Tensor,
    bias: Tensor | None,
    allowed: Tensor | None,
    queries: Tensor | None,
    sequences: int,
) -> None:
    """Refuse what an observer must not hand on."""
    shapes = f"queries {tuple(query.shape)} and keys {tuple(key.shape)}"
    if query.dim() != 4 or key.dim() != 4 or not query.is_floating_point():
        raise MeasurementError(f"expected (batch, heads, length, width), found {shapes}")
    same = (query.shape[0], query.shape[3]) == (key.shape[0], key.shape[3])
    if not same or query.shape[1] % key.shape[1] or not query.numel() or not key.numel():
        raise MeasurementError(f"expected queries and keys that fit together, found {shapes}")
    if sequences < 1 or len(query) % sequences:
        raise MeasurementError(
            f"expected a whole number of windows for each of {sequences} sequences, found {shapes}"
        )
    full = (*query.shape[:3], key.shape[2])
    for name, mask, wanted in (
        ("bias", bias, full),
        ("mask", allowed, (full[0], 1, *full[2:])),
    ):
        if mask is not None and (
            mask.dim() != 4
            or any(own not in (1, size) for own, size in zip(mask.shape, wanted, strict=True))
        ):
            raise MeasurementError(
                f"expected a {name} that fits {wanted}, found {tuple(mask.shape)}"
            )
    if queries is not None and tuple(queries.shape) != (full[0], full[2]):
        raise MeasurementError(
            f"expected a mask of queries {(full[0], full[2])}, found {tuple(queries.shape)}"
        )
