"""What a profile says about drift, as a record: a row of figures 5 and 11."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from isotest.gate.drift import Finding, jackknife_interval
from isotest.gate.drift_check import correlate_profile
from isotest.gate.part import Part

if TYPE_CHECKING:
    from isotest.gate.correlation import Statistic
    from isotest.profile import LayerProfile, Profile

ALPHA = 0.05
"""The level of the figures' red dotted line."""

STATISTICS: tuple[Statistic, ...] = ("spearman", "pearson")

_Share = Annotated[float, Field(ge=0, le=1)]
_Coefficient = Annotated[float, Field(ge=-1, le=1)]


class _Record(BaseModel):
    # A report is read by programs of another age: keys may be added to it.
    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, allow_inf_nan=False)


class CorrelationRecord(_Record):
    """One statistic of one profile; what is undefined is ``None``.

    Attributes:
        coefficient: Spearman's ρ or Pearson's r of ``anisotropy`` and ``drift_norm`` over depth.
        p: two-sided, by Student's t, as scipy reports it and the figures plot it.
        p_exact: two-sided, over all orders up to nine layers, above that the same as ``p``; it
            decides the finding.
        interval: 95 % jackknife interval of the coefficient over the sequences.
        finding: the gate's own, at the level 0.05; ``"undefined"`` where a curve is not there.
        reason: why it is not identifiable or undefined; empty otherwise.
    """

    coefficient: _Coefficient | None = None
    p: _Share | None = None
    p_exact: _Share | None = None
    interval: tuple[_Coefficient, _Coefficient] | None = None
    finding: Finding | Literal["undefined"]
    reason: str = ""


class Highest(_Record):
    """The layer of the highest anisotropy, which is the one that there is to explain.

    Attributes:
        layer: its name.
        anisotropy: there.
        drift_share: there; ``None`` where it was not measured or is undefined.
        centered_anisotropy: there; likewise.
    """

    layer: str
    anisotropy: float
    drift_share: float | None = None
    centered_anisotropy: float | None = None


class DriftRecord(_Record):
    """A row of the drift figure.

    Attributes:
        layers: how many points were correlated.
        norm_variation: standard deviation of ``mean_norm`` over the layers ÷ its mean.
        highest: the layer of the highest anisotropy; ``None`` where anisotropy is nowhere defined.
        spearman, pearson: the two statistics.
    """

    layers: int = Field(ge=0)
    norm_variation: float | None = None
    highest: Highest | None = None
    spearman: CorrelationRecord
    pearson: CorrelationRecord

    def of(self, statistic: Statistic) -> CorrelationRecord:
        """The record of one of the two."""
        return self.spearman if statistic == "spearman" else self.pearson


def drift_record(profile: Profile) -> DriftRecord:
    """What a profile says about drift, whether or not its suite asks.

    Every profile has one: where the curves are not there to be correlated, it says so.
    """
    records: dict[Statistic, CorrelationRecord] = {}
    variation: float | None = None
    for statistic in STATISTICS:
        found = correlate_profile(profile, statistic, ALPHA)
        if isinstance(found, Part):
            records[statistic] = CorrelationRecord(finding="undefined", reason=found.reason)
            continue
        variation = found.norm_variation
        correlation = found.correlation(statistic)
        if correlation is None:
            records[statistic] = CorrelationRecord(finding=found.finding, reason=found.reason)
            continue
        records[statistic] = CorrelationRecord(
            coefficient=correlation.value,
            p=correlation.p_student,
            p_exact=correlation.p_value,
            interval=jackknife_interval(profile, statistic, correlation.value),
            finding=found.finding,
            reason=found.reason,
        )
    return DriftRecord(
        layers=len(profile.layers),
        norm_variation=variation,
        highest=_highest(profile),
        spearman=records["spearman"],
        pearson=records["pearson"],
    )


def _highest(profile: Profile) -> Highest | None:
    defined = [
        (value, layer)
        for layer in profile.layers
        if (value := _finite(layer, "anisotropy")) is not None
    ]
    if not defined:
        return None
    value, layer = max(defined, key=lambda point: point[0])
    return Highest(
        layer=layer.name,
        anisotropy=value,
        drift_share=_finite(layer, "drift_share"),
        centered_anisotropy=_finite(layer, "centered_anisotropy"),
    )


def _finite(layer: LayerProfile, metric: str) -> float | None:
    estimate = layer.estimates.get(metric)
    if estimate is None or estimate.value is None or not math.isfinite(estimate.value):
        return None
    return estimate.value
