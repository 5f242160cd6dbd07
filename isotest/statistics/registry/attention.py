"""Metrics of attention: scores before the softmax, its rows, queries and keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isotest.statistics.metric import Metric

ATTENTION: tuple[Metric, ...] = ()
