"""Metrics of attention: scores before the softmax, its rows, queries and keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isotest.statistics.metric import RELATIVE, SHARE, Metric

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isotest.statistics.metric import Worse

GODEY = "Godey, de la Clergerie and Sagot 2023"
ZHAI = "Zhai et al. 2023"

# A score that moves by this moves a weight by a thousandth.
_SCORE = 1e-3


@dataclass(frozen=True)
class _Row:
    """A metric of either kind of attention: its name behind the prefix, and the rest."""

    name: str
    summary: str
    worse: Worse
    floor: float
    lowest: float = float("-inf")
    highest: float = float("inf")
    relative: bool = False
    source: str = GODEY


_ROWS = (
    _Row("score_mean", "mean score before the softmax", "both", _SCORE),
    _Row("score_std", "standard deviation of the scores", "up", _SCORE, lowest=0.0),
    _Row("score_q05", "5 % quantile of a head's scores", "both", _SCORE),
    _Row("score_median", "median of a head's scores", "both", _SCORE),
    _Row("score_q95", "95 % quantile of a head's scores", "both", _SCORE),
    _Row("row_max", "largest weight of a query's row", "up", SHARE, 0.0, 1.0),
    _Row("row_median", "median weight of a query's row", "down", RELATIVE, 0.0, 1.0, relative=True),
    _Row("row_min", "smallest weight of a query's row", "down", RELATIVE, 0.0, 1.0, relative=True),
    _Row("sequence_max", "largest weight of a head in a sequence", "up", SHARE, 0.0, 1.0),
    _Row(
        "sequence_min",
        "smallest weight of a head in a sequence",
        "down",
        RELATIVE,
        0.0,
        1.0,
        relative=True,
    ),
    _Row(
        "entropy",
        "entropy of a query's weights, as a share of the possible",
        "down",
        SHARE,
        0.0,
        1.0,
        source=ZHAI,
    ),
    _Row(
        "entropy_lowest",
        "that entropy of the head where it is lowest",
        "down",
        SHARE,
        0.0,
        1.0,
        source=ZHAI,
    ),
    _Row(
        "query_norm", "mean Euclidean length of the queries", "both", RELATIVE, 0.0, relative=True
    ),
    _Row("key_norm", "mean Euclidean length of the keys", "both", RELATIVE, 0.0, relative=True),
    _Row("query_cosine", "mean cosine over pairs of a head's queries", "up", SHARE, -1.0, 1.0),
    _Row("key_cosine", "mean cosine over pairs of a head's keys", "up", SHARE, -1.0, 1.0),
)


def _metrics(prefix: str, kind: str, where: str) -> Iterator[Metric]:
    for row in _ROWS:
        name = f"{prefix}{row.name}"
        yield Metric(
            name=name,
            summary=f"{row.summary}{where}",
            worse=row.worse,
            floor=row.floor,
            floor_scale=name if row.relative else None,
            accumulator=f"isotest.statistics.attention.accumulator:{kind}",
            source=row.source,
            lowest=row.lowest,
            highest=row.highest,
            weight="sequences",
            default=False,
        )


ATTENTION: tuple[Metric, ...] = (
    *_metrics("attention_", "SelfAttention", ""),
    *_metrics("cross_attention_", "CrossAttention", ", in cross-attention"),
)
