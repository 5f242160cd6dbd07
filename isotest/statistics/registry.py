"""The metrics isotest knows: what each is called, which way is worse, where its formula lives.

Importing this costs nothing (no torch): the gate reads it to judge profiles that were measured
earlier. ``accumulator`` is an object reference, ``module:name``, resolved when something is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Worse = Literal["up", "down", "both"]


@dataclass(frozen=True)
class Metric:
    """What the gate and the reports need to know of a metric.

    Attributes:
        name: the field's term, as it stands in suites and profiles.
        summary: one line for reports and the generated reference.
        worse: the direction that counts as a regression unless a suite says otherwise.
        floor: the smallest change that is ever judged real; absolute if ``relative_floor`` is
            false, else a share of the baseline's magnitude. It absorbs the rounding of float32
            forward passes on other machines and keeps a zero spread from making a zero band.
        relative_floor: see ``floor``.
        weight: what a block weighs by in the jackknife.
        accumulator: object reference of the accumulator that yields it.
        source: where the definition comes from.
    """

    name: str
    summary: str
    worse: Worse
    floor: float
    relative_floor: bool
    weight: Literal["representations", "sequences"]
    accumulator: str
    source: str
