"""Part of every entry: representations, directions and finite numbers at every layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.gate.curve import non_finite
from isotest.gate.layers import describe_layers
from isotest.gate.message import verdict_of
from isotest.gate.part import Case, Part, failed, nothing_compared
from isotest.gate.verdict import Outcome

if TYPE_CHECKING:
    from isotest.gate.checks import FiniteCheck
    from isotest.gate.verdict import Verdict


def evaluate_finite(case: Case, check: FiniteCheck) -> Verdict:
    """Pass only if every layer holds representations that have a direction, and finite numbers.

    A layer whose representations all have zero length is dead: cosines and shares are undefined
    there, and curves that skip it would look healthy. Constant activations are finite and have a
    direction; limits on the curves are what judges them.
    """
    return verdict_of(case, [_judge(case)])


def _judge(case: Case) -> Part:
    layers = case.profile.layers
    if not layers or not any(layer.estimates for layer in layers):
        return nothing_compared("there is nothing to compare: the profile holds no measured value")
    empty = [layer.name for layer in layers if layer.representations < 1]
    if empty:
        return failed(f"no representation was seen at layer {describe_layers(empty)}", *empty)
    dead = [layer.name for layer in layers if layer.zero_length >= layer.representations]
    if dead:
        return failed(
            f"every representation has zero length at layer {describe_layers(dead)}: its output is "
            "all zeros",
            *dead,
        )
    faults = [
        (layer, metric, fault)
        for layer in layers
        for metric, estimate in layer.estimates.items()
        if (fault := non_finite(estimate)) is not None
    ]
    if faults:
        layer, metric, fault = faults[0]
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        return failed(
            f"{metric} at layer {layer.label} is not finite: {fault}{more}",
            *dict.fromkeys(layer.name for layer, _, _ in faults),
        )
    unexplained = [
        layer.name
        for layer in layers
        if any(e.value is None and not e.undefined for e in layer.estimates.values())
    ]
    if unexplained:
        return failed(
            f"a value is missing without a reason at layer {describe_layers(unexplained)}",
            *unexplained,
        )
    return Part(
        Outcome.PASSED,
        f"representations and finite numbers at all {len(layers)} layers",
        compared=len(layers),
    )
