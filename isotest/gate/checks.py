"""What a suite can demand: the validated form of a ``[checks.*]`` table."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

Share = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
Margin = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Inconclusive = Literal["fail", "pass"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Regression(_Strict):
    """Compare with the stored baseline, layer by layer.

    The margin of a layer is the larger of ``margin`` and ``margin_relative`` × |baseline|, never
    below the metric's own floor.
    """

    margin: Margin = Field(0.0, description="largest accepted change, in the metric's own unit")
    margin_relative: Margin | None = Field(
        None, description="largest accepted change as a share of the baseline's magnitude"
    )
    worse: Literal["up", "down", "both"] | None = Field(
        None, description="the direction that counts; the metric's own unless given"
    )
    alpha: Share = Field(0.01, description="family-wise error over the layers of this check (Holm)")


class Trend(_Strict):
    """Compare the layers of one model with each other: step by step the curve must fall, or rise.

    A step leads from one selected layer to the next of the same part of the model. Each must be
    larger than ``by``, and than the metric's own floor, beyond the error bar of the step.
    """

    direction: Literal["falls", "rises"] = Field(description="where the curve must go with depth")
    by: Margin = Field(0.0, description="smallest step, in the metric's own unit")
    alpha: Share = Field(0.01, description="family-wise error over the steps of this check (Holm)")


class MetricCheck(_Strict):
    """Limits, a trend over depth and a regression on one metric's curve."""

    metric: str | None = Field(None, description="the metric; the check's own name unless given")
    max: FiniteFloat | None = Field(None, description="no selected layer above this value")
    min: FiniteFloat | None = Field(None, description="no selected layer below this value")
    reach: FiniteFloat | None = Field(
        None, description="at least one selected layer at or above this value"
    )
    trend: Trend | None = Field(
        None, description="from each selected layer to the next the curve falls, or rises"
    )
    layers: str = Field(
        "any",
        description="the layers that count, for limits and baseline alike: 'any' (every layer), "
        "'last' (last block), 'final' (final normalisation), '3', '3-7', 'decoder.any', or several "
        "with commas between",
    )
    baseline: Regression | None = Field(None, description="compare with the stored baseline")
    inconclusive: Inconclusive = Field(
        "fail",
        description="what an outcome that these data cannot decide counts as; a comparison that "
        "did not take place fails either way",
    )


class DriftCorrelationCheck(_Strict):
    """Is anisotropy explained by drift? Correlates the two curves over the layers."""

    statistic: Literal["spearman", "pearson"] = Field(
        "spearman", description="which correlation decides"
    )
    expect: Literal["explained", "not explained", "not identifiable"] | None = Field(
        None, description="the verdict that is demanded"
    )
    baseline: Literal["same-verdict"] | None = Field(
        None, description="demand the verdict that the stored baseline gives"
    )
    alpha: Share = Field(0.05, description="significance level of the correlation")
    inconclusive: Inconclusive = Field("fail", description="what an undecidable outcome counts as")


class FiniteCheck(_Strict):
    """Every layer has representations, directions and finite numbers; part of every entry."""


Check = MetricCheck | DriftCorrelationCheck | FiniteCheck
CheckT = TypeVar("CheckT", bound=Check)

_DEMANDS = ("max", "min", "reach", "trend", "expect")
"""Keys that demand something without a baseline."""


def compares(check: Check) -> bool:
    """Whether the check needs a baseline."""
    return getattr(check, "baseline", None) is not None


def without_baseline(check: CheckT) -> CheckT | None:
    """What the check demands without a baseline; ``None`` if nothing.

    >>> without_baseline(
    ...     MetricCheck(max=0.9, baseline=Regression(margin=0.1))
    ... )  # doctest: +NORMALIZE_WHITESPACE
    MetricCheck(metric=None, max=0.9, min=None, reach=None, trend=None, layers='any', baseline=None,
    inconclusive='fail')
    >>> without_baseline(MetricCheck(baseline=Regression(margin=0.1))) is None
    True
    """
    if not compares(check):
        return check
    demands = (getattr(check, name, None) for name in _DEMANDS)
    if all(demand is None for demand in demands):
        return None
    return cast("CheckT", check.model_copy(update={"baseline": None}))
