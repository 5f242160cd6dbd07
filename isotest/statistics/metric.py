"""What the gate and the reports need to know of a metric (torch-free)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isotest.estimate import Estimate

Worse = Literal["up", "down", "both"]

Experiment = Literal["drift", "paths", "recurrence"]
"""The tables of a suite that make it an experiment, by which the experiments are called."""


@dataclass(frozen=True)
class Metric:
    """One metric: what it is called, which way is worse, where its formula lives.

    Attributes:
        name: the field's term, as it stands in suites and profiles.
        summary: one line for reports and the generated reference.
        worse: the direction that counts as a regression unless a suite says otherwise.
        floor: the smallest change that is ever judged real. It absorbs the rounding of float32
            forward passes on other machines and keeps a zero spread from making a zero band.
        accumulator: object reference, ``"module:Class"``, of what takes in batches and yields it
            (:class:`isotest.statistics.accumulator.Accumulator`); resolved when measuring, so that
            the registry costs no import. Empty where ``experiment`` computes it.
        source: where the definition comes from.
        lowest, highest: no value is outside, whatever the data.
        floor_scale: the metric whose magnitude at the same layer ``floor`` is a share of; ``None``:
            ``floor`` is absolute. A spread of lengths rounds with the lengths, not with itself.
        weight: what a block weighs by in the jackknife.
        evaluator: of a metric of kept representations
            (:class:`isotest.statistics.kept.Kept`), the object reference of its function from a
            :class:`isotest.statistics.sample.Sample` to an ``Evaluated``.
        covariance: whether the evaluator reads ``Sample.covariances``; those of narrow layers are
            accumulated where such a metric is wanted.
        default: whether it is measured unless a suite says otherwise; those that cost a noticeable
            share of a forward pass are measured where a suite or one of its checks names them.
        experiment: the experiment that measures it; no other measurement can. ``None``: it is
            measured wherever there are representations, in the drift experiment, too.
    """

    name: str
    summary: str
    worse: Worse
    floor: float
    accumulator: str
    source: str
    lowest: float = -math.inf
    highest: float = math.inf
    floor_scale: str | None = None
    weight: Literal["representations", "sequences"] = "representations"
    evaluator: str | None = None
    covariance: bool = False
    default: bool = True
    experiment: Experiment | None = None

    def floor_at(self, estimates: Mapping[str, Estimate]) -> float:
        """The floor at a layer with these estimates, in the metric's own unit."""
        if self.floor_scale is None:
            return self.floor
        scale = estimates.get(self.floor_scale)
        return 0.0 if scale is None or scale.value is None else self.floor * abs(scale.value)


# Floors: float32 forward passes of one model on two machines differ by 1e-6 to 1e-5 of a value.
# A floor stands one to two orders above that, and one to two below a change anyone acts on.
SHARE = 1e-4
"""Floor of quantities between 0 (or −1) and 1."""

RELATIVE = 1e-3
"""Floor, as a share, of lengths and magnitudes, which have no natural scale."""
