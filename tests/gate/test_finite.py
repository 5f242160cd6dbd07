"""The check that every entry has."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from isotest.estimate import Estimate
from isotest.gate.checks import FiniteCheck
from isotest.gate.verdict import Outcome

from .profiles import judge, profile

if TYPE_CHECKING:
    from isotest.gate.verdict import Verdict
    from isotest.profile import Profile

GOOD = profile({"anisotropy": [0.1, 0.2, 0.3], "mean_norm": [1.0, 1.0, 1.0]})


def finite(made: Profile) -> Verdict:
    return judge(made, None, FiniteCheck(), "finite")


def altered(layer: int, **changes: object) -> Profile:
    layers = list(GOOD.layers)
    layers[layer] = replace(layers[layer], **changes)  # type: ignore[arg-type]
    return replace(GOOD, layers=tuple(layers))


def test_finite_numbers_pass_and_every_layer_counts() -> None:
    verdict = finite(GOOD)
    assert (verdict.outcome, verdict.compared) == (Outcome.PASSED, 3)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"representations": 0, "zero_length": 0}, "no representation was seen at layer 1"),
        ({"zero_length": 32}, "every representation has zero length at layer 1"),
        (
            {"estimates": {"mean_norm": Estimate(math.inf)}},
            "mean_norm at layer 1 is not finite: its value is inf",
        ),
        ({"estimates": {"mean_norm": Estimate(1.0, math.nan)}}, "standard error is nan"),
        ({"estimates": {"mean_norm": Estimate(1.0, 0.1, (1.0, math.nan))}}, "block 1 is nan"),
        ({"estimates": {"mean_norm": Estimate(None)}}, "missing without a reason at layer 1"),
    ],
)
def test_faults_fail_and_name_the_layer(changes: dict[str, object], text: str) -> None:
    verdict = finite(altered(1, **changes))
    assert (verdict.outcome, verdict.layers) == (Outcome.FAILED, ("1",))
    assert text in verdict.message


def test_some_zero_representations_and_undefined_values_are_no_fault() -> None:
    assert finite(altered(1, zero_length=31)).outcome is Outcome.PASSED
    undefined = {"anisotropy": Estimate(None, undefined="one sequence")}
    assert finite(altered(1, estimates=undefined)).outcome is Outcome.PASSED


def test_nothing_measured_is_never_green() -> None:
    empty = replace(GOOD, layers=())
    bare = replace(GOOD, layers=tuple(replace(layer, estimates={}) for layer in GOOD.layers))
    for made in (empty, bare):
        verdict = finite(made)
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert not verdict.allowed
