"""The evaluator of ``collapse_exponent``: how fast representations of a sequence become equal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from isotest.gate.curve import curve_text, defined_points
from isotest.gate.layers import describe_layers, part_of, select_layers
from isotest.gate.message import verdict_of
from isotest.gate.part import Case, Part, failed, nothing_compared
from isotest.gate.quantiles import t_quantile
from isotest.gate.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.gate.checks import CollapseExponentCheck
    from isotest.gate.verdict import Verdict
    from isotest.profile import LayerProfile

COVERAGE = 0.95
"""Of the intervals of all layers of a check together (Bonferroni)."""

EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""Of the dtypes that models run in."""

FLOOR = 2**10
"""Below so many ε, rounding has a say in a relative residual: it settles at about ε."""

_LEAST_FALL = 1e-3
"""A step by less than this share is none: its logarithm says nothing."""


@dataclass(frozen=True)
class _Exponent:
    """The local exponent over three layers in a row, with its interval over the blocks.

    Attributes:
        layers: the three, in depth order.
        value: the mean over blocks, each weighted by its sequences.
        half: half the width of the interval.
        blocks: the exponent in each block.
    """

    layers: tuple[LayerProfile, LayerProfile, LayerProfile]
    value: float
    half: float
    blocks: tuple[float, ...]

    @property
    def over(self) -> str:
        return describe_layers([layer.name for layer in self.layers])

    @property
    def interval(self) -> str:
        return f"{self.value:.3f} ({self.value - self.half:.3f} to {self.value + self.half:.3f})"


def evaluate_collapse_exponent(case: Case, check: CollapseExponentCheck) -> Verdict:
    """Judge the local exponent of a residual's curve, down to the float floor.

    With r_k the relative residual after block k, the exponent over layers k − 1, k, k + 1 is
    log(r_{k+1} / r_k) / log(r_k / r_{k−1}): p where r_{k+1} = c·r_k^p (Dong, Cordonnier and Loukas
    2021: 3 for pure attention near collapse; 1 where each block shrinks the residual by the same
    factor). It is found in each block of sequences; their mean is judged.

    Raises:
        IsotestError: ``layers`` cannot be understood.
    """
    return verdict_of(case, _parts(case, check), inconclusive=check.inconclusive)


def _parts(case: Case, check: CollapseExponentCheck) -> Sequence[Part]:
    names = [layer.name for layer in case.profile.layers]
    selected = select_layers(names, check.layers)
    numbered = [
        layer
        for layer in case.profile.layers
        if layer.name in selected and layer.name.rpartition(".")[2].isdecimal()
    ]
    if not numbered:
        return [
            nothing_compared(
                f"layers = {check.layers!r} matches no numbered layer: the model has "
                f"{describe_layers(names) or 'no layers at all'}"
            )
        ]
    dtype = case.profile.provenance.protocol.get("dtype")
    epsilon = EPSILON.get(str(dtype))
    if epsilon is None:
        return [
            nothing_compared(
                f"the profile's dtype is {dtype!r}, so that the float floor of its residuals is "
                f"not known; known: {', '.join(EPSILON)}"
            )
        ]
    return [
        _judge(case, check, list(layers), FLOOR * epsilon)
        for _, layers in groupby(numbered, key=lambda layer: part_of(layer.name))
    ]


def _judge(
    case: Case, check: CollapseExponentCheck, layers: list[LayerProfile], floor: float
) -> Part:
    """One part of the model, all of whose layers follow each other."""
    points = defined_points(check.metric, layers)
    if isinstance(points, Part):
        return points
    layers = [layer for layer, _ in points]
    on_axis = next((layer for layer in layers if layer.at is not None), None)
    if on_axis is not None:
        return nothing_compared(
            f"layer {on_axis.label} stands on the axis of an experiment: an exponent is one over "
            "the depth of a stack"
        )
    numbers = [int(layer.name.rpartition(".")[2]) for layer in layers]
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return nothing_compared(
            "an exponent is one of layers that follow each other, and these do not: "
            f"{describe_layers([layer.name for layer in layers])}"
        )
    expected = len(case.profile.block_sequences)
    blocks = {len(layer.estimates[check.metric].blocks) for layer in layers}
    if expected < 2 or blocks != {expected}:
        return nothing_compared(
            f"{check.metric} has no error bar at every layer: it takes two blocks of independent "
            "sequences, and a value of each of them"
        )
    sunk = [[block <= floor for block in layer.estimates[check.metric].blocks] for layer in layers]
    for k, (before, after) in enumerate(pairwise(sunk)):
        if any(was and not is_ for was, is_ in zip(before, after, strict=True)):
            return failed(
                f"{check.metric} is at the float floor, {floor:.2g}, at layer {layers[k].label} "
                f"and above it again at layer {layers[k + 1].label}: that is no collapse",
                layers[k].name,
                layers[k + 1].name,
            )
    above = next((k for k, blocks in enumerate(sunk) if any(blocks)), len(layers))
    notes = [("curve", curve_text(points))]
    if above < len(layers):
        sunk_names = describe_layers([layer.name for layer in layers[above:]])
        notes.append(("float floor", f"{floor:.2g}, reached at {sunk_names}, which do not count"))
    if above < 3:
        return Part(
            Outcome.INCONCLUSIVE,
            f"there is nothing to fit: {above} of {len(layers)} layers have a {check.metric} above "
            f"the float floor, {floor:.2g}, and an exponent takes three in a row",
            details=tuple(notes),
        )
    found = _exponents(case, check, layers[:above], tuple(notes))
    return found if isinstance(found, Part) else _describe(check, found, tuple(notes))


def _exponents(
    case: Case,
    check: CollapseExponentCheck,
    layers: Sequence[LayerProfile],
    notes: tuple[tuple[str, str], ...],
) -> list[_Exponent] | Part:
    """Of each three layers in a row; the part that says that a curve does not fall."""
    import numpy as np

    from isotest.statistics.jackknife import standard_error

    curves = np.log([layer.estimates[check.metric].blocks for layer in layers])
    steps = np.diff(curves, axis=0)
    flat = steps > math.log1p(-_LEAST_FALL)
    if flat.any():
        first = int(flat.any(axis=1).argmax())
        before, after = layers[first], layers[first + 1]
        count, total = int(flat[first].sum()), flat.shape[1]
        ratio = math.exp(float(np.mean(steps[first])))
        return Part(
            Outcome.FAILED,
            f"{check.metric} does not fall from layer {before.label} to {after.label} in {count} "
            f"of {total} blocks of sequences (× {ratio:.4g} on average): nothing collapses there",
            details=notes,
            layers=(before.name, after.name),
            compared=len(layers) - 1,
        )
    sizes = case.profile.block_sequences
    weights = np.asarray(sizes) / sum(sizes)
    exponents = steps[1:] / steps[:-1]
    quantile = t_quantile(1 - (1 - COVERAGE) / (2 * len(exponents)), len(sizes) - 1)
    made = []
    for k, row in enumerate(exponents):
        error = standard_error(row.tolist(), sizes)
        if error is None or not math.isfinite(error):
            return failed(f"the exponent at layer {layers[k + 1].label} has no finite error bar")
        triple = (layers[k], layers[k + 1], layers[k + 2])
        made.append(_Exponent(triple, float(row @ weights), quantile * error, tuple(row.tolist())))
    return made


def _describe(
    check: CollapseExponentCheck, found: Sequence[_Exponent], notes: tuple[tuple[str, str], ...]
) -> Part:
    low, high = check.exponent - check.by, check.exponent + check.by
    beyond = [e for e in found if e.value + e.half < low or e.value - e.half > high]
    open_ = [
        e for e in found if e not in beyond and (e.value - e.half < low or e.value + e.half > high)
    ]
    wanted = f"{check.exponent:g} ± {check.by:g}"
    properties: dict[str, str | float] = {
        "exponents": " ".join(f"{e.over}:{e.value:.4g}" for e in found),
        "wanted": wanted,
    }
    details = (
        ("exponents", "; ".join(f"over layers {e.over}: {e.interval}" for e in found)),
        *(
            ("blocks", f"over layers {e.over}: {min(e.blocks):.3f} to {max(e.blocks):.3f}")
            for e in beyond or open_ or found[:1]
        ),
        *notes,
    )
    culprits = beyond or open_
    if not culprits:
        values = [e.value for e in found]
        spread = f"{min(values):.3f}" + (f" to {max(values):.3f}" if len(values) > 1 else "")
        return Part(
            Outcome.PASSED,
            f"the exponent of {check.metric} is {spread} over {len(found)} threes of layers, "
            f"within {wanted}",
            details=details,
            compared=len(found),
            properties=properties,
        )
    worst = max(culprits, key=lambda e: abs(e.value - check.exponent))
    where = f"the exponent of {check.metric} over layers {worst.over} is {worst.interval}"
    reason = (
        f"{where}, not {wanted}"
        if beyond
        else f"these data cannot tell whether it is {wanted}: {where}"
    )
    return Part(
        Outcome.FAILED if beyond else Outcome.INCONCLUSIVE,
        reason,
        details=details,
        layers=tuple(dict.fromkeys(layer.name for e in culprits for layer in e.layers)),
        compared=len(found),
        properties=properties,
        undecided=not beyond,
    )
