"""The front door: dispatch, the comparison outside pytest, and what importing costs."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from pydantic import BaseModel

from isotest.gate import compare
from isotest.gate.checks import FiniteCheck, MetricCheck, Regression
from isotest.gate.registry import EVALUATORS, evaluator_of
from isotest.gate.verdict import Outcome, Verdict

from .profiles import accepted, profile

if TYPE_CHECKING:
    from isotest.gate.checks import Check

CURVES = {"anisotropy": [0.1, 0.2], "mean_norm": [1.0, 2.0]}


def test_every_registered_evaluator_exists() -> None:
    for kind in EVALUATORS:
        assert callable(evaluator_of(kind()))


def test_an_unregistered_check_is_refused() -> None:
    class Odd(BaseModel):
        pass

    with pytest.raises(TypeError, match="no evaluator for Odd"):
        evaluator_of(Odd())


def test_comparing_asks_finite_and_every_metric_of_the_baseline() -> None:
    verdicts = compare(profile(CURVES), accepted(CURVES))
    assert [verdict.check for verdict in verdicts] == ["finite", "anisotropy", "mean_norm"]
    assert {verdict.outcome for verdict in verdicts} == {Outcome.PASSED}


def test_comparing_misses_a_metric_that_was_dropped() -> None:
    verdicts = compare(profile({"anisotropy": [0.1, 0.2]}), accepted(CURVES))
    assert verdicts[-1].outcome is Outcome.FAILED
    assert "mean_norm" in verdicts[-1].headline


def test_comparing_finds_a_change_and_takes_checks_by_name() -> None:
    risen = profile({**CURVES, "anisotropy": [0.1, 0.4]})
    checks: dict[str, Check] = {
        "limit": MetricCheck(metric="anisotropy", max=0.3),
        "anisotropy": MetricCheck(baseline=Regression(margin=0.5)),
        "finite": FiniteCheck(),
    }
    outcomes = [verdict.outcome for verdict in compare(risen, accepted(CURVES), checks)]
    assert outcomes == [Outcome.FAILED, Outcome.PASSED, Outcome.PASSED]
    assert Outcome.FAILED in {v.outcome for v in compare(risen, accepted(CURVES))}


def test_comparing_other_data_is_no_comparison() -> None:
    base = accepted(CURVES)
    base = replace(base, provenance=replace(base.provenance, data="e" * 64))
    verdicts = compare(profile(CURVES), base)
    assert [v.outcome for v in verdicts] == [Outcome.PASSED] + [Outcome.INCONCLUSIVE] * 2
    assert "not comparable: data" in verdicts[1].headline


def test_comparing_with_nothing_is_red() -> None:
    verdicts = compare(profile(CURVES), None)
    assert [verdict.missing_baseline for verdict in verdicts] == [False, True, True]


def test_a_verdict_cannot_pass_or_be_allowed_without_having_compared() -> None:
    with pytest.raises(ValueError, match="without comparing anything"):
        Verdict("a", "m", Outcome.PASSED, "", "", compared=0)
    with pytest.raises(ValueError, match="only an inconclusive"):
        Verdict("a", "m", Outcome.FAILED, "", "", allowed=True)


def test_judging_imports_neither_torch_nor_scipy_stats() -> None:
    code = (
        "import sys; from tests.gate.profiles import *; from isotest.gate import compare;"
        "c = {'anisotropy': [0.1, 0.2], 'mean_norm': [1.0, 2.0]};"
        "compare(profile(c), accepted(c));"
        "print([m for m in ('torch', 'transformers', 'scipy.stats') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
