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
    minus: str | None = Field(
        None,
        description="a part of the model, such as 'input': what is judged is the difference, the "
        "value at each layer minus that at the layer of the same number in this part",
    )
    reach: FiniteFloat | None = Field(
        None, description="at least one selected layer at or above this value"
    )
    trend: Trend | None = Field(
        None, description="from each selected layer to the next the curve falls, or rises"
    )
    layers: str = Field(
        "any",
        description="the layers that count, for limits and baseline alike: 'any' (every layer), "
        "'last' (last block), 'final' (final normalisation), 'full' (a network itself, beside its "
        "paths), '3', '3-7', 'decoder.any', or several with commas between",
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


class FixedPointCheck(_Strict):
    """Where two curves over one axis meet: there is one such place, in every block of sequences.

    The axis is that of an experiment (the norm that is added to a block's input).
    """

    metric: str = Field("mean_norm", description="the metric that both curves are of")
    of: str = Field("output", description="the part of the model whose curve meets the other")
    minus: str = Field("input", description="the part of the model whose curve is met")
    min: FiniteFloat | None = Field(None, description="they meet at this place or behind it")
    max: FiniteFloat | None = Field(None, description="they meet at this place or before it")


class BlockPropertiesCheck(_Strict):
    """What must hold of every transformer block, tried on a block of the model.

    No property may be violated, and one at least must hold. What the block claims to be decides
    which properties apply to it.
    """

    heads: Annotated[int, Field(ge=1)] | None = Field(
        None, description="how many attention heads it has; found in the block unless given"
    )
    causal: bool | None = Field(
        None, description="no position sees a later one; found by trying, which cannot find a leak"
    )
    normalised: bool | None = Field(
        None, description="the output of each position is normalised; found by trying"
    )
    skip: bool | None = Field(
        None, description="the input is added to what the sublayers make of it; found by trying"
    )
    positions: bool = Field(
        False, description="it treats positions differently by their number (rotary embeddings)"
    )
    masked: bool = Field(
        False, description="its 'forward' takes a second argument, true where a position is valid"
    )
    scaled: bool = Field(True, description="scores are divided by the root of a head's width")
    examples: Annotated[int, Field(ge=1)] = Field(
        25, description="how many batches each property is tried on"
    )
    holds: Annotated[tuple[str, ...], Field(strict=False)] = Field(
        (),
        description="properties that must hold: not to be violated is not enough for them, as it "
        "is for all others that do not apply to the block",
    )


class CollapseExponentCheck(_Strict):
    """How fast the representations of a sequence become equal: the exponent from layer to layer.

    Of three layers in a row, log(r₂ / r₁) / log(r₁ / r₀), r being the rank residual, in every block
    of sequences; layers at the float floor do not count. Pure attention has 3 near collapse.
    """

    metric: Literal["rank_residual_composite", "rank_residual"] = Field(
        "rank_residual_composite", description="the residual whose curve it is"
    )
    exponent: Annotated[FiniteFloat, Field(gt=0)] = Field(
        3.0, description="what the exponent is to be, of every three layers in a row"
    )
    by: Annotated[FiniteFloat, Field(gt=0)] = Field(
        0.25, description="how far it may be from that, its interval over the blocks included"
    )
    layers: str = Field("any", description="the layers that count, as for a metric")
    inconclusive: Inconclusive = Field(
        "fail",
        description="what an interval that reaches across 'by' counts as; where there is nothing "
        "to fit, that fails either way",
    )


class CollapseBoundCheck(_Strict):
    """What the bound of rank collapse says of a stack of pure attention, of each sequence.

    The bound (theorem 2.2 of Dong, Cordonnier and Loukas 2021) says how small the residual is at
    most behind each layer. It has preconditions, and where it does not contract it is vacuous. That
    it is violated where it applies is never accepted.
    """

    expect: Literal["holds", "vacuous", "precondition failed"] = Field(
        "holds",
        description="what becomes of the bound, in every sequence; that it says nothing is only "
        "accepted where it is what is expected",
    )


class FiniteCheck(_Strict):
    """Every layer has representations, directions and finite numbers; part of every entry."""


Check = (
    MetricCheck
    | DriftCorrelationCheck
    | FixedPointCheck
    | BlockPropertiesCheck
    | CollapseExponentCheck
    | CollapseBoundCheck
    | FiniteCheck
)
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
    MetricCheck(metric=None, max=0.9, min=None, minus=None, reach=None, trend=None, layers='any',
    baseline=None, inconclusive='fail')
    >>> without_baseline(MetricCheck(baseline=Regression(margin=0.1))) is None
    True
    """
    if not compares(check):
        return check
    demands = (getattr(check, name, None) for name in _DEMANDS)
    if all(demand is None for demand in demands):
        return None
    return cast("CheckT", check.model_copy(update={"baseline": None}))


NO_RELATIVE_MARGIN = (
    "'margin_relative' has no meaning with 'minus': a difference may be zero, which leaves nothing "
    "to be relative to; give 'margin'"
)


def subtracted_from_itself(layers: str, minus: str) -> str:
    """The fault of a check whose difference is zero by construction."""
    return (
        f"layers = {layers!r} names layers of {minus!r}, and minus = {minus!r} subtracts them from "
        "themselves: that is zero in every model; name another part, or leave 'layers' out"
    )
