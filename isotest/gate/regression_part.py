"""A regression over a profile: pairs the layers, judges their changes, and says so."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from isotest.gate.curve import non_finite
from isotest.gate.diagnosis import diagnose, diagnosis_lines
from isotest.gate.layers import describe_layers
from isotest.gate.numerals import (
    decimals_for,
    decimals_of_change,
    number,
    p_value,
    percent,
    round_up,
    signed,
)
from isotest.gate.pairing import mismatch
from isotest.gate.part import Case, Part, failed, nothing_compared
from isotest.gate.regressions import (
    Judgement,
    LayerChange,
    judge_changes,
    layer_margin,
    margin_that_passes,
    relative_margin_that_passes,
)
from isotest.gate.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.estimate import Estimate
    from isotest.gate.checks import Regression
    from isotest.profile import LayerProfile, Profile
    from isotest.statistics.metric import Metric


def judge_regression(
    case: Case, metric: Metric, demand: Regression, selected: Sequence[str], baseline: Profile
) -> Part:
    """Compare the selected layers of a profile with a comparable baseline.

    Args:
        case: what is judged.
        metric: the metric, with its floor and its default direction.
        demand: margins, direction and level.
        selected: names of the layers that count; all layers must exist on both sides.
        baseline: the baseline of the same data and protocol.
    """
    fault = mismatch(case.profile, baseline, (metric.name,))
    if fault is not None:
        return fault
    if case.profile.block_sequences != baseline.block_sequences:
        return nothing_compared("not comparable: the blocks of sequences differ in number or size")
    changes: list[LayerChange] = []
    undefined: list[str] = []
    for layer, base_layer in zip(case.profile.layers, baseline.layers, strict=True):
        if layer.name not in selected:
            continue
        paired = _pair(case.profile, layer, base_layer, metric, demand)
        if isinstance(paired, Part):
            return paired
        if paired is None:
            undefined.append(layer.name)
        else:
            changes.append(paired)
    if not changes:
        return nothing_compared(
            f"there is nothing to compare: {metric.name} is undefined at every selected layer on "
            "both sides"
        )
    judgement = judge_changes(changes, demand.worse or metric.worse, demand.alpha)
    return _describe(case, metric, demand, judgement, undefined, baseline)


def _pair(
    profile: Profile,
    layer: LayerProfile,
    base_layer: LayerProfile,
    metric: Metric,
    demand: Regression,
) -> LayerChange | Part | None:
    """The layer's change; ``None`` if it is undefined alike on both sides; else what is wrong."""
    from isotest.statistics.jackknife import paired_change

    new, base = layer.estimates[metric.name], base_layer.estimates[metric.name]
    for estimate, where in ((new, ""), (base, " in the baseline")):
        fault = non_finite(estimate)
        if fault is not None:
            return failed(
                f"{metric.name} at layer {layer.label} is not finite{where}: {fault}", layer.name
            )
    if new.value is None or base.value is None:
        return _undefined(new, base, metric.name, layer)
    if len(profile.block_sequences) < 2:
        return Part(
            Outcome.INCONCLUSIVE,
            "too few independent sequences: at least 2 are needed for an error bar, the data have "
            f"{profile.units}",
            layers=(layer.name,),
            undecided=True,
        )
    if min(len(new.blocks), len(base.blocks)) < 2:
        side = "this run" if len(new.blocks) < 2 else "the baseline"
        return failed(
            f"{metric.name} at layer {layer.label} has no error bar in {side}", layer.name
        )
    sizes, base_sizes = layer.block_representations, base_layer.block_representations
    differ = sizes != base_sizes and not profile.decides_positions(layer.name)
    weights: Sequence[float] = profile.block_sequences
    if metric.weight == "representations" and len(sizes) == len(base_sizes):
        # They differ where other weights divide a text otherwise: halfway between the two then.
        weights = [(size + other) / 2 for size, other in zip(sizes, base_sizes, strict=True)]
    if differ or len({len(new.blocks), len(base.blocks), len(weights)}) > 1:
        return nothing_compared(
            f"not comparable: layer {layer.label} has {layer.representations} representations in "
            f"{len(new.blocks)} blocks, in the baseline {base_layer.representations} in "
            f"{len(base.blocks)}"
        )
    if new.basis != base.basis and not profile.decides_positions(layer.name):
        return nothing_compared(
            f"not comparable: {metric.name} at layer {layer.label} was measured from "
            f"{new.basis or 'everything'}, in the baseline from {base.basis or 'everything'}; "
            "record the baseline again"
        )
    change, se, df = paired_change(new, base, weights)
    if se is None or not math.isfinite(se) or not math.isfinite(change):
        return failed(
            f"the change of {metric.name} at layer {layer.label} has no finite error bar: {se}",
            layer.name,
        )
    floor = metric.floor_at(base_layer.estimates)
    return LayerChange(
        layer=layer.name,
        base=base.value,
        new=new.value,
        change=change,
        se=se,
        df=df,
        margin=layer_margin(floor, base.value, demand.margin, demand.margin_relative),
        floor=floor,
        at=layer.at,
    )


def _undefined(new: Estimate, base: Estimate, metric: str, layer: LayerProfile) -> Part | None:
    if new.value is None and base.value is None:
        if (new.vacuous and base.vacuous) or new.undefined == base.undefined:
            return None
        return failed(
            f"{metric} is undefined at layer {layer.label} for another reason than in the "
            f"baseline: {new.undefined}; there: {base.undefined}",
            layer.name,
        )
    if new.value is None:
        return failed(
            f"{metric} is undefined at layer {layer.label}: {new.undefined}; in the baseline it "
            f"was {base.value:.4g}",
            layer.name,
        )
    return failed(
        f"{metric} is {number(new.value)} at layer {layer.label}, but undefined in the baseline: "
        f"{base.undefined}",
        layer.name,
    )


def _describe(
    case: Case,
    metric: Metric,
    demand: Regression,
    judgement: Judgement,
    undefined: Sequence[str],
    baseline: Profile,
) -> Part:
    outcome = judgement.outcome
    worst = max(judgement.changes, key=lambda c: c.worsening(judgement.worse) - c.margin)
    needed = round_up(margin_that_passes(judgement, demand.margin_relative))
    reasons = {
        Outcome.FAILED: judgement.at("beyond"),
        Outcome.INCONCLUSIVE: judgement.at("undecided"),
        Outcome.PASSED: (worst,),
    }[outcome]
    first = reasons[0]
    return Part(
        outcome,
        _reason(metric.name, first, outcome),
        details=(
            ("how sure", _size(first)),
            ("how sure", _certainty(case, judgement, first)),
            ("margin", _margin(metric, demand, judgement, first, needed)),
            ("layers", _layers(judgement, undefined)),
            *_cause(case, metric.name, baseline, first, outcome),
        ),
        layers=() if outcome is Outcome.PASSED else tuple(change.layer for change in reasons),
        compared=len(judgement.changes),
        properties={
            "worst_layer": worst.layer,
            "value": worst.new,
            "baseline": worst.base,
            "change": worst.change,
            "se": worst.se,
            "p": judgement.adjusted[judgement.changes.index(worst)],
            "margin": worst.margin,
            "margin_needed": needed,
            "values": _curve(judgement, "new"),
            "baseline_values": _curve(judgement, "base"),
        },
        undecided=outcome is Outcome.INCONCLUSIVE,
        accept=outcome is not Outcome.PASSED,
        p_value=min(judgement.adjusted),
    )


def _curve(judgement: Judgement, side: str) -> str:
    return " ".join(f"{change.layer}:{getattr(change, side):.4g}" for change in judgement.changes)


def _reason(metric: str, change: LayerChange, outcome: Outcome) -> str:
    decimals = decimals_of_change(change.change, change.se, change.new, change.base)
    path = f"{number(change.base, decimals)} -> {number(change.new, decimals)}"
    if outcome is Outcome.FAILED:
        moved = "rose" if change.change > 0 else "fell"
        return f"{metric} {moved} at layer {change.label}: {path}, margin {number(change.margin)}"
    if outcome is Outcome.INCONCLUSIVE:
        return (
            f"cannot tell whether {metric} stayed within its margin of {number(change.margin)} at "
            f"layer {change.label}: {path}"
        )
    return f"{metric} is within its margin; nearest to it is layer {change.label}: {path}"


def _size(change: LayerChange) -> str:
    """The change in its own error bars."""
    decimals = decimals_for(change.se, change.change)
    if change.se == 0:
        return f"{signed(change.change, decimals)}, the same in every block of sequences"
    times = abs(change.change) / change.se
    size = f"{signed(change.change, decimals)} ± {number(change.se, decimals)}"
    return f"{size}, {f'{times:.1f}' if times < 1000 else 'over 1000'} times its own error bar"


def _certainty(case: Case, judgement: Judgement, change: LayerChange) -> str:
    beyond = p_value(judgement.adjusted[judgement.changes.index(change)])
    within = p_value(change.p_within(judgement.worse))
    decided = {
        Outcome.FAILED: f"beyond the margin with {beyond}",
        Outcome.INCONCLUSIVE: f"neither beyond ({beyond}) nor within ({within})",
        Outcome.PASSED: f"within the margin with {within}",
    }[judgement.outcome]
    count = len(judgement.changes)
    holm = f"Holm over {count} layers, " if count > 1 else ""
    sequences = f"{case.profile.sequences} sequences in {change.df + 1:g} blocks"
    return f"{decided} ({holm}alpha {judgement.alpha:g}; {sequences})"


def _margin(
    metric: Metric, demand: Regression, judgement: Judgement, change: LayerChange, needed: float
) -> str:
    text = number(change.margin)
    if demand.margin_relative and change.margin == demand.margin_relative * abs(change.base):
        text += f" ({percent(demand.margin_relative)} of the baseline)"
    elif change.margin != demand.margin:
        text += f" (the floor of {metric.name})"
    if judgement.outcome is Outcome.PASSED:
        return text
    if demand.margin_relative is not None and demand.margin == 0:
        relative = relative_margin_that_passes(judgement, demand.margin)
        if relative is not None:
            return f"{text}; margin_relative = {round_up(relative):g} would have passed"
    return f"{text}; margin = {needed:g} would have passed"


def _layers(judgement: Judgement, undefined: Sequence[str]) -> str:
    texts = []
    for where in ("beyond", "undecided", "within"):
        names = [change.layer for change in judgement.at(where)]
        if names:
            texts.append(f"{where}: {describe_layers(names)}")
    if undefined:
        texts.append(f"undefined on both sides: {describe_layers(undefined)}")
    beyond = judgement.at("beyond")
    if beyond:
        earlier = judgement.changes[: judgement.changes.index(beyond[0])]
        moved = [change.layer for change in earlier if change.moved(judgement.alpha)]
        if moved:
            texts.append(f"moved before: {describe_layers(moved)}")
        elif earlier:
            texts.append("no earlier layer moved")
    return "; ".join(texts)


def _cause(
    case: Case, metric: str, baseline: Profile, change: LayerChange, outcome: Outcome
) -> tuple[tuple[str, str], ...]:
    if outcome is not Outcome.FAILED:
        return ()
    return diagnosis_lines(diagnose(metric, case.profile, baseline, change.layer))
