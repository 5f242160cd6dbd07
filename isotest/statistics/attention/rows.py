"""Numbers of each sequence and head from its scores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from isotest.errors import NonFiniteError
from isotest.statistics.accumulator import divide
from isotest.statistics.attention.arrays import array, double, mask_like, quotient
from isotest.statistics.attention.histogram import edges

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from torch import Tensor

    Array = NDArray[np.float64]

_SQUARABLE = 1e15
"""Scores beyond need float64, lest their squares overflow in float32."""

_LARGEST = 1e150
"""Scores beyond have squares that overflow in float64, too."""

_WORTH_THREADS = 1 << 20
"""Entries from which on sorting in several threads is faster."""

QUANTILES = {"score_q05": 0.05, "score_median": 0.5, "score_q95": 0.95}


def of_scores(
    scores: Tensor, seen: Tensor | None, *, quantiles: bool = True
) -> tuple[dict[str, Array], NDArray[np.int64]]:
    """Numbers of (N, H, R, Lk) scores, of which those at (N, 1, R, Lk) count; overwrites them.

    Args:
        scores: as above.
        seen: which count; ``None``: all.
        quantiles: whether those of ``QUANTILES`` are among the numbers; they take longer than all
            the others.
    """
    sequences, heads, _, length = scores.shape
    if seen is None:
        keys = np.full((sequences, 1, scores.shape[2]), length)
    else:
        keys = array(seen.sum(dim=3))
        scores.masked_fill_(~seen, -torch.inf)
    usable = keys > 0
    ordered = _sorted(scores)
    lowest = _pick(ordered, length - keys)
    top = ordered[..., -1]
    furthest = _require_finite(double(top), double(lowest), usable)
    if furthest > _SQUARABLE and scores.dtype != torch.float64:
        return of_scores(scores.double(), seen, quantiles=quantiles)

    below = scores.sub_(torch.where(mask_like(usable, top), top, 0)[..., None])
    weights = below.exp()
    if seen is not None:
        below.masked_fill_(~seen, 0)
    partition = double(weights.sum(dim=3))
    entropy = np.log(partition, where=partition > 0, out=np.zeros_like(partition))
    entropy -= quotient(double((weights * below).sum(dim=3)), partition)
    spread, shift = double((below * below).sum(dim=3)), double(below.sum(dim=3))

    row_top = double(top)
    maximum = quotient(np.ones_like(partition), partition)
    halves = [
        _weight(double(_pick(ordered, length - keys + place)), row_top, partition, usable)
        for place in ((keys - 1) // 2, keys // 2)
    ]
    median = (halves[0] + halves[1]) / 2
    minimum = _weight(double(lowest), row_top, partition, usable)
    chosen = usable.repeat(heads, axis=1)
    several = chosen & (keys > 1)
    possible = np.log(np.maximum(keys, 2))
    each = quotient(np.ones(keys.shape), keys.astype(np.float64)).repeat(heads, axis=1)
    values = {
        "row_max": _mean(maximum, chosen),
        "row_median": _mean(median, chosen),
        "row_min": _mean(minimum, chosen),
        "sequence_max": _extreme(maximum, chosen, np.max, -np.inf),
        "sequence_min": _extreme(minimum, chosen, np.min, np.inf),
        # Rounding can carry it beyond its range.
        "entropy": _mean(np.clip(entropy / possible, 0, 1), several),
        "uniform": _mean(each, chosen),
        "uniform_max": _extreme(each, chosen, np.max, -np.inf),
        "uniform_min": _extreme(each, chosen, np.min, np.inf),
    }
    mean, variance = _moments(row_top, shift, spread, keys)
    values |= {"score_mean": mean, "score_variance": variance}
    counts = keys.sum(axis=(1, 2))
    if quantiles:
        ordered = _sorted(ordered.flatten(2))[:, :, None]
        values |= _quantiles(ordered[:, :, 0], counts)
    return values, _histogram(ordered, counts)


def _moments(
    top: Array, shift: Array, spread: Array, keys: NDArray[np.int64]
) -> tuple[Array, Array]:
    """(N, H) mean and variance from each row's sums of s − top and (s − top)²."""
    n = keys.astype(np.float64)
    total = n.sum(axis=2)
    usable = n > 0
    row_mean = np.where(usable, top, 0) + quotient(shift, n)
    row_spread = spread - quotient(shift * shift, n)
    mean = quotient((n * row_mean).sum(axis=2), total)
    between = np.where(usable, row_mean - mean[..., None], 0)
    variance = quotient((row_spread + n * between**2).sum(axis=2), total)
    nothing = np.broadcast_to(total == 0, mean.shape)
    return np.where(nothing, np.nan, mean), np.where(nothing, np.nan, np.maximum(variance, 0))


def _quantiles(ordered: Tensor, counts: NDArray[np.int64]) -> dict[str, Array]:
    """(N, H) quantiles of (N, H, M) ascending scores, of which the last (N,) count."""
    entries = ordered.shape[2]
    first = (entries - counts)[:, None]
    quantiles = {}
    for name, share in QUANTILES.items():
        place = np.maximum(counts - 1, 0) * share
        low = np.floor(place).astype(np.int64)
        high = np.minimum(low + 1, np.maximum(counts - 1, 0))
        part = (place - low)[:, None]
        here = [
            double(_pick(ordered, np.minimum(first + at[:, None], entries - 1)))
            for at in (low, high)
        ]
        with np.errstate(invalid="ignore"):
            value = here[0] + part * (here[1] - here[0])
        quantiles[name] = np.where(counts[:, None] > 0, value, np.nan)
    return quantiles


def _histogram(ordered: Tensor, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """(N, BINS) of (N, H, R, M) scores in ascending lists, of which (N,) of each head count.

    The others are −∞, hence first in their lists.
    """
    sequences, heads, lists, length = ordered.shape
    bounds = torch.tensor(edges(), dtype=ordered.dtype, device=ordered.device)
    low, high = int((bounds <= ordered[..., 0].min()).sum()), len(bounds)
    if not bool(torch.isnan(ordered[..., -1].max())):
        high = int((bounds <= ordered[..., -1].max()).sum())
    shape = (sequences, heads, lists, max(0, high - low))
    found = torch.searchsorted(ordered, bounds[low:high].expand(shape).contiguous())
    first = np.broadcast_to((lists * length - counts)[:, None, None], (sequences, heads, 1))
    below = np.full((sequences, heads, len(bounds) + 2), lists * length)
    below[..., : low + 1] = 0
    below[..., low + 1 : high + 1] = array(found.sum(dim=2))
    histogram: NDArray[np.int64] = np.diff(np.maximum(below, first), axis=2).sum(axis=1)
    return histogram


def _sorted(x: Tensor) -> Tensor:
    """Ascending along the last dimension; NaN last."""
    if x.device.type != "cpu":
        return x.sort(dim=-1).values
    # NumPy sorts several times as fast as torch, in one thread, and lets others run.
    threads = torch.get_num_threads()
    if threads == 1 or x.numel() < _WORTH_THREADS:
        return torch.from_numpy(np.sort(x.numpy(), axis=-1))
    lists = x.reshape(-1, x.shape[-1])
    parts = np.array_split(lists.numpy(), threads)
    with ThreadPoolExecutor(threads) as pool:
        ordered = list(pool.map(lambda part: np.sort(part, axis=-1), parts))
    return torch.from_numpy(np.concatenate(ordered)).view(x.shape)


def _pick(ordered: Tensor, places: NDArray[np.int64]) -> Tensor:
    """Of each list along the last dimension, the entry at its place; places are cut to fit."""
    inside = np.clip(places, 0, ordered.shape[-1] - 1)
    index = torch.from_numpy(inside).to(ordered.device).expand(ordered.shape[:-1])
    return ordered.gather(-1, index[..., None])[..., 0]


def _weight(score: Array, top: Array, partition: Array, usable: NDArray[np.bool_]) -> Array:
    """exp(score) as a share of its row's sum."""
    below = np.zeros_like(score)
    np.subtract(score, top, out=below, where=usable)
    return quotient(np.exp(below), partition)


def _mean(values: Array, chosen: NDArray[np.bool_]) -> Array:
    """(N, H) mean over the chosen rows; NaN without any."""
    return divide(np.where(chosen, values, 0).sum(axis=2), chosen.sum(axis=2, dtype=np.float64))


def _extreme(
    values: Array, chosen: NDArray[np.bool_], reduce: Callable[..., Any], otherwise: float
) -> Array:
    found = reduce(np.where(chosen, values, otherwise), axis=2)
    return np.where(chosen.any(axis=2), found, np.nan)


def _require_finite(top: Array, lowest: Array, usable: NDArray[np.bool_]) -> float:
    """The largest magnitude of a score."""
    magnitude = np.where(usable, np.maximum(np.abs(top), np.abs(lowest)), 0)
    bad = ~(magnitude < _LARGEST)
    if bad.any():
        head = int(np.argwhere(bad)[0][1])
        raise NonFiniteError(
            f"head {head} has scores that are NaN, infinite or beyond {_LARGEST:.0e}"
        )
    return float(magnitude.max(initial=0))
