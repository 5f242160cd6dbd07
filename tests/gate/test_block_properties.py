"""``block_properties``: a block that was tried for nothing is not green."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from isotest.gate.checks import BlockPropertiesCheck
from isotest.gate.verdict import Outcome
from isotest.profile import BlockProperty

from .profiles import judge, profile

if TYPE_CHECKING:
    from isotest.gate.verdict import Verdict

ANY = BlockPropertiesCheck()
HOLDS = BlockProperty("shape", "holds", "25 batches")
ABSENT = BlockProperty("causal", "not applicable", "the block is not causal")
LEAK = BlockProperty(
    "softmax_rows", "violated", "row 2 of head 0 adds up to 1.5", "check_block(make, seed=3)"
)


def tried(*properties: BlockProperty, check: BlockPropertiesCheck = ANY) -> Verdict:
    made = replace(profile({"anisotropy": [0.1]}), properties=properties)
    return judge(made, None, check, "block_properties")


def test_nothing_tried_is_not_green() -> None:
    verdict = tried()
    assert (verdict.outcome, verdict.allowed) == (Outcome.INCONCLUSIVE, False)
    assert "no property was tried" in verdict.headline


def test_where_none_applies_nothing_was_compared() -> None:
    verdict = tried(ABSENT)
    assert (verdict.outcome, verdict.allowed) == (Outcome.INCONCLUSIVE, False)
    assert "causal: the block is not causal" in verdict.message


def test_a_violation_fails_with_its_counterexample_and_how_to_see_it_again() -> None:
    other = BlockProperty("finite", "violated", "NaN for an input of 1e4")
    verdict = tried(HOLDS, LEAK, other, ABSENT)
    assert verdict.outcome is Outcome.FAILED
    assert verdict.headline.endswith(
        "::block_properties: softmax_rows is violated (1 more violated): row 2 of head 0 adds up "
        "to 1.5"
    )
    for words in ("check_block(make, seed=3)", "NaN for an input of 1e4", "the block is not cau"):
        assert words in verdict.message
    assert verdict.properties["violated"] == "softmax_rows, finite"


def test_the_headline_is_one_line_whatever_the_counterexample_is() -> None:
    verdict = tried(replace(LEAK, text="row 2 adds up to 1.5\nso does row 3"))
    assert verdict.headline.endswith("violated: row 2 adds up to 1.5")
    assert "softmax_rows: so does row 3" in verdict.message


def test_a_result_that_nobody_knows_is_a_violation() -> None:
    unknown = replace(HOLDS, result="skipped")  # type: ignore[arg-type]
    assert tried(HOLDS, replace(unknown, name="finite")).outcome is Outcome.FAILED


def test_what_holds_is_named_and_counted() -> None:
    verdict = tried(HOLDS, ABSENT)
    assert (verdict.outcome, verdict.compared) == (Outcome.PASSED, 1)
    assert "1 of 2 properties hold, none is violated: shape" in verdict.headline
    assert "the block is not causal" in verdict.message


@pytest.mark.parametrize(
    ("name", "outcome", "words"),
    [
        ("shape", Outcome.PASSED, "1 of 2 properties hold"),
        # A leak makes a causal block one that is not causal, to which the property does not apply.
        ("causal", Outcome.FAILED, "causal must hold and does not apply: the block is not causal"),
        ("shpae", Outcome.FAILED, "shpae must hold and was not tried; did you mean 'shape'"),
    ],
)
def test_a_property_that_must_hold(name: str, outcome: Outcome, words: str) -> None:
    verdict = tried(HOLDS, ABSENT, check=BlockPropertiesCheck(holds=(name,)))
    assert verdict.outcome is outcome
    assert words in verdict.headline


def test_a_violated_property_that_must_hold_is_said_once() -> None:
    verdict = tried(HOLDS, LEAK, check=BlockPropertiesCheck(holds=("softmax_rows",)))
    assert verdict.outcome is Outcome.FAILED
    assert verdict.message.count("adds up to 1.5") == 1
