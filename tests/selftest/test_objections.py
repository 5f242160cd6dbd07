"""What counts as red in a self-test is what is red in a run, and why it is red is told apart."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from isotest.gate.checks import Check, FiniteCheck, MetricCheck, Regression
from isotest.selftest import objections
from tests.gate.profiles import accepted, profile, spread

if TYPE_CHECKING:
    from isotest.profile import Profile

# A change of 0.1, exact, and one that the blocks scatter around by 0.2 each.
BASE = accepted({"anisotropy": [0.1, 0.1]})
NOW = profile({"anisotropy": [0.1, 0.2]})
NOISY = profile({"anisotropy": [0.1, spread(0.2, 0.2)]})
OTHER = replace(NOW, provenance=replace(NOW.provenance, data="other"))


def regression(margin: float, **demands: object) -> MetricCheck:
    return MetricCheck.model_validate({"baseline": Regression(margin=margin), **demands})


@pytest.mark.parametrize(
    ("check", "now", "base", "reason"),
    [
        (regression(0.05), NOW, BASE, "beyond"),
        (regression(0.15), NOW, BASE, None),
        (MetricCheck(max=0.15), NOW, None, "beyond"),
        (MetricCheck(max=0.25), NOW, None, None),
        (regression(0.05), NOISY, BASE, "cannot tell"),
        # What a suite accepts is green: a fault that is hidden by noise would pass.
        (regression(0.05, inconclusive="pass"), NOISY, BASE, None),
        # It does not accept that nothing is compared, whatever else is in the check.
        (regression(0.05, inconclusive="pass"), OTHER, BASE, "nothing compared"),
        (regression(0.05, max=0.25), OTHER, BASE, "nothing compared"),
        (regression(0.05), OTHER, BASE, "nothing compared"),
        (regression(0.05), NOW, None, "no baseline"),
        (regression(0.05, inconclusive="pass"), NOW, None, "no baseline"),
        (FiniteCheck(), NOW, None, None),
        (FiniteCheck(), replace(NOW, layers=()), None, "nothing compared"),
    ],
)
def test_red_and_why(check: Check, now: Profile, base: Profile | None, reason: str | None) -> None:
    found = objections({"anisotropy": check}, now, base)
    assert found == ({} if reason is None else {"anisotropy": reason})


def test_every_check_has_its_say() -> None:
    checks: dict[str, Check] = {
        "anisotropy": regression(0.05),
        "finite": FiniteCheck(),
        "high": MetricCheck(metric="anisotropy", min=0.15),
    }
    assert objections(checks, NOW, BASE) == {"anisotropy": "beyond", "high": "beyond"}
