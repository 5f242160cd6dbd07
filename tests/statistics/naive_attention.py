"""Attention's statistics, head by head and row by row, from the definitions."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


@dataclass(frozen=True)
class Head:
    """One head of one sequence.

    Attributes:
        rows: of each query whose scores count, those over the keys that it may see.
        queries, keys: the vectors that count.
    """

    rows: list[list[float]]
    queries: list[Array]
    keys: list[Array]


def chosen(count: int, most: int = 32) -> list[int]:
    """Every k-th of ``count``, with the smallest k that leaves at most ``most``."""
    k = next(k for k in itertools.count(1) if len(range(0, count, k)) <= most)
    return list(range(0, count, k))


def head_of(
    query: Array,
    key: Array,
    scale: float,
    bias: Array,
    allowed: NDArray[np.bool_],
    queries: NDArray[np.bool_],
    softcap: float | None = None,
) -> Head:
    """From (Lq, d), (Lk, d), (Lq, Lk), (Lq, Lk) and (Lq,)."""
    valid = [i for i in range(len(query)) if queries[i]]
    rows = []
    for i in (valid[n] for n in chosen(len(valid))):
        row = []
        for j in range(len(key)):
            if not allowed[i, j]:
                continue
            score = scale * float(np.dot(query[i], key[j])) + bias[i, j]
            row.append(score if softcap is None else softcap * math.tanh(score / softcap))
        if row:
            rows.append(row)
    seen = [j for j in range(len(key)) if any(allowed[i, j] for i in valid)]
    return Head(rows, [query[i] for i in valid], [key[j] for j in seen])


def softmax(row: list[float]) -> list[float]:
    top = max(row)
    total = math.fsum(math.exp(score - top) for score in row)
    return [math.exp(score - top) / total for score in row]


def numbers(head: Head) -> dict[str, float]:
    """What the head shows of the sequence; NaN where it has no such number."""
    maps = [softmax(row) for row in head.rows]
    result = of_maps(maps)
    flat = [score for row in head.rows for score in row]
    result["score_mean"] = float(np.mean(flat)) if flat else math.nan
    for name, share in (("q05", 0.05), ("median", 0.5), ("q95", 0.95)):
        result[f"score_{name}"] = float(np.quantile(flat, share)) if flat else math.nan
    for name, vectors in (("query", head.queries), ("key", head.keys)):
        lengths = [float(np.linalg.norm(vector)) for vector in vectors]
        result[f"{name}_norm"] = float(np.mean(lengths)) if lengths else math.nan
        units = [vector / np.linalg.norm(vector) for vector in vectors if np.any(vector)]
        cosines = [float(a @ b) for a, b in itertools.combinations(units, 2)]
        result[f"{name}_cosine"] = float(np.mean(cosines)) if cosines else math.nan
    return result


def of_maps(maps: list[list[float]]) -> dict[str, float]:
    """What follows from softmax rows over the keys that each may see."""
    if not maps:
        names = ("row_max", "row_median", "row_min", "sequence_max", "sequence_min", "entropy")
        return dict.fromkeys(names, math.nan)
    entropies = [
        -math.fsum(p * math.log(p) for p in row if p > 0) / math.log(len(row))
        for row in maps
        if len(row) > 1
    ]
    return {
        "row_max": float(np.mean([max(row) for row in maps])),
        "row_median": float(np.mean([np.median(row) for row in maps])),
        "row_min": float(np.mean([min(row) for row in maps])),
        "sequence_max": max(max(row) for row in maps),
        "sequence_min": min(min(row) for row in maps),
        "entropy": float(np.mean(entropies)) if entropies else math.nan,
    }


def metrics(sequences: list[list[Head]]) -> dict[str, float]:
    """Every metric of sequences, a list of heads each: over sequences, then over heads."""
    table = [[numbers(head) for head in heads] for heads in sequences]
    result = over(table)
    # A score drawn by head, then sequence, then among its scores.
    heads = range(len(sequences[0]))
    of_head = [
        [[score for row in heads[h].rows for score in row] for heads in sequences] for h in heads
    ]
    of_head = [[scores for scores in own if scores] for own in of_head]
    mean = np.mean([np.mean([np.mean(scores) for scores in own]) for own in of_head])
    variance = np.mean(
        [np.mean([np.mean((np.array(s) - mean) ** 2) for s in own]) for own in of_head]
    )
    result["score_std"] = math.sqrt(variance)
    return result


def over(table: list[list[dict[str, float]]]) -> dict[str, float]:
    """Means of numbers by sequence and head, and the lowest entropy of a head."""
    result = {}
    for name in table[0][0]:
        by_head = [_mean([row[h][name] for row in table]) for h in range(len(table[0]))]
        result[name] = _mean(by_head)
        if name == "entropy":
            defined = [value for value in by_head if not math.isnan(value)]
            result["entropy_lowest"] = min(defined) if defined else math.nan
    return result


def _mean(values: list[float]) -> float:
    defined = [value for value in values if not math.isnan(value)]
    return float(np.mean(defined)) if defined else math.nan
