"""Regressions: has a curve moved beyond its margin since the baseline, for all that can be told?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from isotest.gate.multiplicity import holm
from isotest.gate.quantiles import t_above, t_below, t_quantile
from isotest.gate.verdict import Outcome
from isotest.profile import labelled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.statistics.metric import Worse

Where = Literal["beyond", "within", "undecided"]


@dataclass(frozen=True)
class LayerChange:
    """One layer's change since the baseline, and what it is measured against.

    Attributes:
        layer: its name.
        base: the baseline's value.
        new: this run's value.
        change: ``new - base`` as the paired jackknife estimates it.
        se: standard error of ``change``.
        df: degrees of freedom of ``se``.
        margin: largest accepted change, in the metric's unit.
        floor: the part of the margin that no suite can take away.
        at: where the layer stands on the axis of an experiment, if it does.
    """

    layer: str
    base: float
    new: float
    change: float
    se: float
    df: float
    margin: float
    floor: float = 0.0
    at: float | None = None

    @property
    def label(self) -> str:
        """The layer's name, with where it stands."""
        return labelled(self.layer, self.at)

    def worsening(self, worse: Worse) -> float:
        """The change in the direction that counts: positive is worse."""
        return {"up": self.change, "down": -self.change, "both": abs(self.change)}[worse]

    def p_beyond(self, worse: Worse) -> float:
        """p-value of H0: the change is within the margin. Small means beyond."""
        if worse == "both":
            one_sided = [self._p_exceeds(self.change), self._p_exceeds(-self.change)]
            return min(1.0, 2 * min(one_sided))
        return self._p_exceeds(self.worsening(worse))

    def p_within(self, worse: Worse) -> float:
        """p-value of H0: the change is beyond the margin. Small means within."""
        if worse == "both":
            return max(self._p_stays(self.change), self._p_stays(-self.change))
        return self._p_stays(self.worsening(worse))

    def moved(self, alpha: float) -> bool:
        """Whether it changed at all, either way, margin or not."""
        return replace(self, margin=0.0).p_beyond("both") < alpha

    def margin_needed(self, worse: Worse, alpha: float) -> float:
        """The smallest margin at which this layer is within at level ``alpha``."""
        half = 0.0 if self.se == 0 else t_quantile(1 - alpha, self.df) * self.se
        return max(0.0, self.worsening(worse) + half)

    def _p_exceeds(self, change: float) -> float:
        # Without any spread the change is known exactly, and the margin's floor keeps it honest.
        if self.se == 0:
            return 0.0 if change > self.margin else 1.0
        return t_above((change - self.margin) / self.se, self.df)

    def _p_stays(self, change: float) -> float:
        if self.se == 0:
            return 0.0 if change <= self.margin else 1.0
        return t_below((change - self.margin) / self.se, self.df)


@dataclass(frozen=True)
class Judgement:
    """The changes of all counted layers, judged together.

    Attributes:
        changes: one per counted layer, in depth order.
        where: of each layer, where its change lies.
        adjusted: of each layer, Holm's adjusted p-value of being beyond the margin.
        worse: the direction that counts.
        alpha: family-wise error over the layers.
    """

    changes: tuple[LayerChange, ...]
    where: tuple[Where, ...]
    adjusted: tuple[float, ...]
    worse: Worse
    alpha: float

    @property
    def outcome(self) -> Outcome:
        """Failed if one layer is beyond, passed if all are within, else inconclusive."""
        if "beyond" in self.where:
            return Outcome.FAILED
        if all(where == "within" for where in self.where):
            return Outcome.PASSED
        return Outcome.INCONCLUSIVE

    def at(self, where: Where) -> tuple[LayerChange, ...]:
        """The layers whose change lies there."""
        return tuple(c for c, w in zip(self.changes, self.where, strict=True) if w == where)


def judge_changes(changes: Sequence[LayerChange], worse: Worse, alpha: float) -> Judgement:
    """Place every layer's change: beyond its margin, within it, or undecided.

    With s·Δ the change in the direction that counts and m the margin, one-sided t tests of both
    hypotheses: *beyond* if H0: s·Δ ≤ m is rejected at ``alpha`` after Holm's correction over the
    layers; *within* if H0: s·Δ ≥ m is rejected at ``alpha``. Passing needs *every* layer within, an
    intersection-union test, which needs no correction. ``worse="both"`` tests |Δ|: two one-sided
    tests each way.

    Args:
        changes: one per layer, in depth order, at least one.
        worse: the direction that counts.
        alpha: family-wise error over the layers.

    Source: Schuirmann (1987) for the two one-sided tests; Berger (1982) for intersection-union.

    >>> still = LayerChange("0", base=0.2, new=0.2, change=0.0, se=0.001, df=63, margin=0.02)
    >>> risen = LayerChange("1", base=0.2, new=0.3, change=0.1, se=0.001, df=63, margin=0.02)
    >>> judge_changes([still, risen], "up", 0.01).where
    ('within', 'beyond')
    """
    adjusted = holm([change.p_beyond(worse) for change in changes])
    where = tuple(
        _place(change, p, worse, alpha) for change, p in zip(changes, adjusted, strict=True)
    )
    return Judgement(tuple(changes), where, adjusted, worse, alpha)


def _place(change: LayerChange, adjusted: float, worse: Worse, alpha: float) -> Where:
    if adjusted < alpha:
        return "beyond"
    return "within" if change.p_within(worse) <= alpha else "undecided"


def layer_margin(floor: float, base: float, margin: float, margin_relative: float | None) -> float:
    """The largest accepted change at a layer whose baseline value is ``base``.

    max(margin, margin_relative·|base|, floor), where floor is the metric's own at this layer: what
    float32 on another machine may move, never taken for a change.
    """
    return max(margin, (margin_relative or 0.0) * abs(base), floor)


def margin_that_passes(judgement: Judgement, margin_relative: float | None) -> float:
    """The smallest ``margin`` for which the verdict would be passed, all else unchanged.

    Zero where the relative margin and the floor are enough by themselves.
    """
    needed = 0.0
    for change in judgement.changes:
        own = change.margin_needed(judgement.worse, judgement.alpha)
        if own > layer_margin(change.floor, change.base, 0.0, margin_relative):
            needed = max(needed, own)
    return needed


def relative_margin_that_passes(judgement: Judgement, margin: float) -> float | None:
    """The smallest ``margin_relative`` for which the verdict would be passed.

    ``None`` if no finite one would: a baseline of zero leaves nothing to be relative to.
    """
    needed = 0.0
    for change in judgement.changes:
        own = change.margin_needed(judgement.worse, judgement.alpha)
        if own > layer_margin(change.floor, change.base, margin, None):
            if change.base == 0:
                return None
            needed = max(needed, own / abs(change.base))
    return needed if math.isfinite(needed) else None
