"""``collapse_bound``: a bound that says nothing is not green, and a violated one never is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from isotest.errors import BaselineError
from isotest.gate.checks import CollapseBoundCheck
from isotest.gate.verdict import Outcome, Verdict
from isotest.profile import Profile, SequenceBound
from isotest.profile_json import dump_profile, load_profile

from .profiles import judge, profile

# c·‖res(X)‖² = 0.01 and ‖res(X)‖ = 0.1: bounds 0.1·0.01 and 0.1·0.01⁴.
HOLDS = SequenceBound(
    outcome="holds",
    reason="log₁₀ of the residual: -12, of the bound: -9",
    heads=2,
    head_width=8,
    beta=0.5,
    gamma=1.0,
    score_range=0.25,
    contraction=0.01,
    residuals=(0.1, 2e-4, 1e-12),
    log10_bounds=(-3.0, -9.0),
)
VIOLATED = replace(
    HOLDS,
    outcome="violated",
    reason="behind layer 2, log₁₀ of the residual: -8, of the bound: -9",
    residuals=(0.1, 2e-4, 1e-8),
)
VACUOUS = replace(
    HOLDS,
    outcome="vacuous",
    reason="c·‖res(X)‖² = 3: it contracts only below 1",
    contraction=3.0,
    log10_bounds=(1.0, 4.0),
)
FAILED = SequenceBound(
    "precondition failed", "it is about pure attention, and the stack has a skip", 2, 8
)
ANY = CollapseBoundCheck()


def made(*bounds: SequenceBound, sequences: int | None = None) -> Profile:
    """A profile of as many sequences as bounds, each a block of its own."""
    count = len(bounds) if sequences is None else sequences
    found = profile({"anisotropy": [0.1, 0.1, 0.1]}, blocks=count)
    return replace(
        found,
        sequences=count,
        units=count,
        block_sequences=(1,) * count,
        bounds=bounds,
    )


def judged(*bounds: SequenceBound, expect: Any = "holds", **options: Any) -> Verdict:
    check = CollapseBoundCheck(expect=expect)
    return judge(made(*bounds, **options), None, check, "collapse_bound")


def test_without_an_outcome_nothing_was_compared() -> None:
    for expect in ("holds", "vacuous", "precondition failed"):
        verdict = judged(expect=expect, sequences=2)
        assert (verdict.outcome, verdict.allowed) == (Outcome.INCONCLUSIVE, False)
        assert "nothing was compared: the profile holds no bound" in verdict.headline


@pytest.mark.parametrize("expect", ["holds", "vacuous", "precondition failed"])
def test_a_violated_bound_is_red_whatever_is_expected(expect: Any) -> None:
    for bounds in ((HOLDS, VIOLATED), (VACUOUS, VIOLATED), (FAILED, VIOLATED)):
        verdict = judged(*bounds, expect=expect)
        assert verdict.outcome is Outcome.FAILED
        assert (
            "the bound is violated in 1 of 2 sequences, the first of them number 1: behind layer 2"
            in verdict.headline
        )
        # The sequence that violates it, with the bound behind each layer.
        assert "0: 0.1, 1: 0.0002 (bound 0.001), 2: 1e-08 (bound 1e-09)" in verdict.message


def test_an_outcome_that_nobody_knows_is_red() -> None:
    unknown = replace(HOLDS, outcome="probably")  # type: ignore[arg-type]
    assert judged(HOLDS, unknown).outcome is Outcome.FAILED


def test_a_sequence_without_its_bound_is_red() -> None:
    verdict = judged(HOLDS, HOLDS, sequences=3)
    assert verdict.outcome is Outcome.FAILED
    assert "computed of 2 sequences, and 3 were measured" in verdict.headline


@pytest.mark.parametrize("other", [VACUOUS, FAILED])
def test_a_bound_that_says_nothing_compared_nothing(other: SequenceBound) -> None:
    for bounds in ((other, other), (HOLDS, other)):
        verdict = judged(*bounds)
        assert (verdict.outcome, verdict.allowed) == (Outcome.INCONCLUSIVE, False)
        assert "nothing was compared, as the bound says nothing" in verdict.headline
        assert other.reason in verdict.headline
        assert f"say expect = {other.outcome!r}" in verdict.message


@pytest.mark.parametrize(("expect", "found"), [("vacuous", VACUOUS), (FAILED.outcome, FAILED)])
def test_what_is_expected_is_green_in_every_sequence_or_red(
    expect: Any, found: SequenceBound
) -> None:
    verdict = judged(found, found, expect=expect)
    assert (verdict.outcome, verdict.compared) == (Outcome.PASSED, 2)
    assert f"the bound says nothing, as expected: '{expect}' in all 2" in verdict.headline
    for bounds in ((HOLDS, HOLDS), (found, HOLDS)):
        verdict = judged(*bounds, expect=expect)
        assert verdict.outcome is Outcome.FAILED
        assert f"expected '{expect}', found 'holds' in" in verdict.headline


def test_where_it_holds_layers_and_preconditions_are_named() -> None:
    further = replace(HOLDS, beta=0.7, residuals=(0.1, 1e-5, 1e-12))
    verdict = judged(HOLDS, further)
    assert (verdict.outcome, verdict.compared) == (Outcome.PASSED, 4)
    # 0.001 / 0.0002; the bound of the second layer is a thousand times as large as the residual.
    assert "all 2 sequences, behind all 2 layers; closest to it is the residual behind layer 1, by "
    assert "by a factor of 5" in verdict.headline
    for words in (
        "β = 0.5 to 0.7, γ = 1, H = 2, d_qk = 8",
        "a row spans 0.25",
        "c·‖res(X)‖² = 0.01",
    ):
        assert words in verdict.message
    assert verdict.properties["outcome"] == "holds: 2"
    assert verdict.properties["residual_out"] == "1e-12 to 1e-12"


def test_what_is_below_the_smallest_float_is_not_compared() -> None:
    deep = replace(HOLDS, residuals=(0.1, 2e-4, 0.0), log10_bounds=(-3.0, -400.0))
    verdict = judged(deep)
    assert (verdict.outcome, verdict.compared) == (Outcome.PASSED, 1)
    assert "behind at least 1 of 2 layers" in verdict.headline
    lost = replace(deep, log10_bounds=(-320.0, -400.0), residuals=(0.1, 0.0, 0.0))
    same = replace(
        HOLDS, reason="all representations are the same already", residuals=(0.0,) * 3,
        log10_bounds=(),
    )  # fmt: skip
    for bound, words in ((lost, "below the smallest float"), (same, "are the same already")):
        for bounds in ((bound,), (HOLDS, bound)):
            verdict = judged(*bounds)
            assert (verdict.outcome, verdict.allowed) == (Outcome.INCONCLUSIVE, False)
            assert words in verdict.headline


def test_a_file_brings_back_what_was_found() -> None:
    kept = made(HOLDS, VIOLATED, VACUOUS, FAILED)
    assert load_profile(dump_profile(kept, "kept")) == kept
    # A profile without a bound is written as it was before there were any.
    assert b"bounds" not in dump_profile(replace(kept, bounds=()), "none")


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        (replace(HOLDS, beta=float("nan")), "the bound of sequence 1 of model 'vit' is nan"),
        (replace(HOLDS, beta=None), "has some of β, γ, scores, contraction and residuals"),
        (replace(FAILED, outcome="holds"), "is called 'holds', and yet it has no residuals"),
        (replace(HOLDS, log10_bounds=(-3.0,)), "known behind 1 layers, and the residual at 3"),
        (replace(HOLDS, heads=0), "greater than 0"),
    ],
)
def test_a_profile_that_contradicts_itself_is_not_written(bound: SequenceBound, words: str) -> None:
    with pytest.raises(BaselineError, match=words):
        dump_profile(made(HOLDS, bound), "bad")


def test_as_many_bounds_as_sequences() -> None:
    with pytest.raises(BaselineError, match="bounds are those of 1 sequences, but sequences is 2"):
        dump_profile(made(HOLDS, sequences=2), "bad")
