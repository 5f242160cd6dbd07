"""The evaluator of ``collapse_bound``: what the bound of rank collapse says, and if it holds."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

from isotest.gate.message import verdict_of
from isotest.gate.part import Case, Part, failed, nothing_compared
from isotest.gate.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.gate.checks import CollapseBoundCheck
    from isotest.gate.verdict import Verdict
    from isotest.profile import SequenceBound

_SMALLEST = math.log10(sys.float_info.min)
"""Below, a residual has become zero or lost digits, and says nothing of a bound."""

_KNOWN = ("holds", "vacuous", "precondition failed")
"""Every outcome but "violated"; one that nobody knows is as bad."""


def evaluate_collapse_bound(case: Case, check: CollapseBoundCheck) -> Verdict:
    """Fail where the bound is violated, and where it is not as the suite expects.

    Where it says nothing of a sequence (vacuous, a precondition failed) and is expected to hold,
    nothing was compared.
    """
    return verdict_of(case, [_judge(case, check)])


def _judge(case: Case, check: CollapseBoundCheck) -> Part:
    bounds = case.profile.bounds
    if not bounds:
        return nothing_compared(
            "nothing was compared: the profile holds no bound; it is computed where a stack "
            "'block:' is measured for this check, in a suite of modality 'embeddings'"
        )
    if len(bounds) != case.profile.sequences:
        return failed(
            f"the bound was computed of {len(bounds)} sequences, and {case.profile.sequences} were "
            "measured"
        )
    violated = [number for number, each in enumerate(bounds) if each.outcome not in _KNOWN]
    if violated:
        first = bounds[violated[0]]
        return Part(
            Outcome.FAILED,
            f"the bound is {first.outcome} in {_of(violated, bounds)}: {first.reason}",
            details=_details(bounds, violated[0]),
            compared=len(bounds),
            properties=_properties(bounds),
        )
    other = [number for number, each in enumerate(bounds) if each.outcome != check.expect]
    if other:
        return _unexpected(check, bounds, other)
    if check.expect != "holds":
        return Part(
            Outcome.PASSED,
            f"the bound says nothing, as expected: {check.expect!r} in all {len(bounds)} "
            f"sequences: {bounds[0].reason}",
            details=_details(bounds, 0),
            compared=len(bounds),
            properties=_properties(bounds),
        )
    return _held(bounds)


def _unexpected(
    check: CollapseBoundCheck, bounds: Sequence[SequenceBound], other: Sequence[int]
) -> Part:
    first = bounds[other[0]]
    found = f"{first.outcome!r} in {_of(other, bounds)}: {first.reason}"
    if check.expect == "holds":
        return Part(
            Outcome.INCONCLUSIVE,
            f"nothing was compared, as the bound says nothing: {found}",
            details=(
                *_details(bounds, other[0]),
                ("to accept it", f"if that is as it should be, say expect = {first.outcome!r}"),
            ),
            properties=_properties(bounds),
        )
    return Part(
        Outcome.FAILED,
        f"expected {check.expect!r}, found {found}",
        details=_details(bounds, other[0]),
        compared=len(bounds),
        properties=_properties(bounds),
    )


def _held(bounds: Sequence[SequenceBound]) -> Part:
    judged = [_judged_layers(each) for each in bounds]
    idle = [number for number, layers in enumerate(judged) if not layers]
    if idle:
        first = bounds[idle[0]]
        why = "the bound is zero, or below the smallest float, behind every layer"
        if first.residuals and first.residuals[0] == 0:
            why = first.reason
        return Part(
            Outcome.INCONCLUSIVE,
            f"nothing was compared in {_of(idle, bounds)}: {why}",
            details=_details(bounds, idle[0]),
            properties=_properties(bounds),
        )
    closest, layer = min(
        ((number, layer) for number, layers in enumerate(judged) for layer in layers),
        key=lambda place: _room(bounds[place[0]], place[1]),
    )
    room = _room(bounds[closest], layer)
    return Part(
        Outcome.PASSED,
        f"the bound holds in all {len(bounds)} sequences, behind {_count(judged, bounds)} layers; "
        f"closest to it is the residual behind layer {layer}, by a factor of "
        f"{10.0 ** min(room, 300):.3g}",
        details=_details(bounds, closest),
        compared=sum(map(len, judged)),
        properties=_properties(bounds),
    )


def _count(judged: Sequence[Sequence[int]], bounds: Sequence[SequenceBound]) -> str:
    """Behind how many layers: of all, or of those where there is a float to compare with."""
    least, depth = min(map(len, judged)), len(bounds[0].residuals) - 1
    return f"all {depth}" if least == depth else f"at least {least} of {depth}"


def _judged_layers(bound: SequenceBound) -> list[int]:
    """The layers behind which the bound is a float that a residual can be held against."""
    if not bound.residuals or bound.residuals[0] == 0:
        return []
    return [layer for layer, log in enumerate(bound.log10_bounds, start=1) if log >= _SMALLEST]


def _room(bound: SequenceBound, layer: int) -> float:
    """log₁₀ of how many times smaller the residual is than the bound."""
    residual = bound.residuals[layer]
    return bound.log10_bounds[layer - 1] - (math.log10(residual) if residual > 0 else _SMALLEST)


def _of(numbers: Sequence[int], bounds: Sequence[SequenceBound]) -> str:
    if len(numbers) == len(bounds):
        return f"all {len(bounds)} sequences"
    return f"{len(numbers)} of {len(bounds)} sequences, the first of them number {numbers[0]}"


def _details(bounds: Sequence[SequenceBound], shown: int) -> tuple[tuple[str, str], ...]:
    """The preconditions over all sequences, and one sequence layer by layer."""
    computed = [each for each in bounds if each.residuals]
    if not computed:
        return (("network", f"H = {bounds[0].heads}, d_qk = {bounds[0].head_width}"),)
    one = computed[0]
    sizes = (
        f"β = {_range(computed, 'beta')}, γ = {_range(computed, 'gamma')}, H = {one.heads}, "
        f"d_qk = {one.head_width}"
    )
    found = [
        ("sizes", sizes),
        ("scores", f"a row spans {_range(computed, 'score_range')}"),
        ("contraction", f"c·‖res(X)‖² = {_range(computed, 'contraction')}, contracts below 1"),
    ]
    one = bounds[shown]
    if one.residuals:
        layers = [f"0: {one.residuals[0]:.3g}"]
        # Without a contraction what the bound comes to is no help to anybody.
        logs = one.log10_bounds if one.outcome in ("holds", "violated") else ()
        for layer, residual in enumerate(one.residuals[1:], start=1):
            bound = f" (bound {_power(logs[layer - 1])})" if logs else ""
            layers.append(f"{layer}: {residual:.3g}{bound}")
        shortened = layers if len(layers) <= 9 else [*layers[:8], f"… {layers[-1]}"]
        found.append(("residual", f"of sequence {shown}, layer by layer: {', '.join(shortened)}"))
    return tuple(found)


def _power(log10: float) -> str:
    return f"{10.0**log10:.3g}" if abs(log10) < 300 else f"10^{log10:.3g}"


def _range(bounds: Sequence[SequenceBound], name: str) -> str:
    values = [value for each in bounds if (value := getattr(each, name)) is not None]
    if not values:
        return "unknown"
    low, high = f"{min(values):.4g}", f"{max(values):.4g}"
    return low if low == high else f"{low} to {high}"


def _properties(bounds: Sequence[SequenceBound]) -> dict[str, str | float]:
    outcomes = dict.fromkeys(each.outcome for each in bounds)
    counts = {name: sum(each.outcome == name for each in bounds) for name in outcomes}
    properties: dict[str, str | float] = {
        "outcome": ", ".join(f"{name}: {count}" for name, count in counts.items()),
        "heads": float(bounds[0].heads),
        "head_width": float(bounds[0].head_width),
    }
    if any(each.residuals for each in bounds):
        for name in ("beta", "gamma", "score_range", "contraction"):
            properties[name] = _range(bounds, name)
        for name, end in (("residual_in", 0), ("residual_out", -1)):
            sizes = [each.residuals[end] for each in bounds if each.residuals]
            properties[name] = f"{min(sizes):.4g} to {max(sizes):.4g}"
        last = [each.log10_bounds[-1] for each in bounds if each.log10_bounds]
        if last:
            properties["log10_bound"] = f"{min(last):.4g} to {max(last):.4g}"
    return properties
