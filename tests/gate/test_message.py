"""What a reader of a log is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isotest.gate.checks import MetricCheck, Regression
from isotest.gate.message import MessageContext
from isotest.gate.numerals import decimals_for, number, p_value, round_up, signed
from isotest.gate.verdict import Outcome

from .profiles import CONTEXT, SUITE, accepted, judge, profile, spread

NAMES = [*map(str, range(6)), "final"]
BASE = [0.10, 0.12, 0.14, 0.16, 0.18, 0.20, 0.10]
RISEN = [0.10, 0.12, 0.14, 0.16, 0.38, 0.50, 0.10]
EXTRA = {
    "drift_share": ([0.05] * 7, [0.05] * 4 + [0.24, 0.34, 0.05]),
    "dimension_share": ([0.02] * 7, [0.02] * 7),
}
NEW_PROFILE = profile(
    {
        "anisotropy": [spread(value, 0.002) for value in RISEN],
        **{name: new for name, (_, new) in EXTRA.items()},
    },
    names=NAMES,
)
BASELINE = accepted(
    {
        "anisotropy": [spread(value, 0.002)[::-1] for value in BASE],
        **{name: base for name, (base, _) in EXTRA.items()},
    },
    names=NAMES,
)
CHECK = MetricCheck(baseline=Regression(margin=0.02, worse="up"))
DIFF = replace(CONTEXT, diff="isotest diff suites/vision/tiny.toml vit")


def test_the_headline_names_suite_model_check_layer_and_the_way() -> None:
    verdict = judge(NEW_PROFILE, BASELINE, CHECK)
    assert verdict.headline == (
        f"{SUITE}::vit::anisotropy: rose at layer 4: 0.180 -> 0.380, margin 0.02"
    )
    assert verdict.message.startswith(verdict.headline + "\n")
    assert verdict.layers == ("4", "5")


def test_the_message_answers_every_question() -> None:
    message = judge(NEW_PROFILE, BASELINE, CHECK, context=DIFF).message
    for text in (
        "times its own error bar",
        "beyond the margin with p",
        "Holm over 7 layers, alpha 0.01; 32 sequences in 8 blocks",
        "would have passed",
        "beyond: 4-5; within: 0-3, final; no earlier layer moved",
        "drift 100% (drift_share 0.05 -> 0.24",
        f"again: pytest --isotest {SUITE}::vit::anisotropy",
        "look: isotest diff suites/vision/tiny.toml vit",
        f"if the change is wanted: {CONTEXT.accept}",
    ):
        assert text in message, text
    assert len(message.splitlines()) <= 12


def test_labels_are_aligned_and_the_text_survives_any_log() -> None:
    message = judge(NEW_PROFILE, BASELINE, CHECK).message
    starts = {len(line) - len(line[15:].lstrip()) for line in message.splitlines()[1:]}
    assert starts == {15}
    assert message.encode("cp1252")


def test_the_margin_that_would_have_passed_does_pass() -> None:
    verdict = judge(NEW_PROFILE, BASELINE, CHECK)
    needed = float(verdict.properties["margin_needed"])
    assert f"margin = {needed:g} would have passed" in verdict.message
    at_needed = MetricCheck(baseline=Regression(margin=float(f"{needed:g}"), worse="up"))
    assert judge(NEW_PROFILE, BASELINE, at_needed).outcome is Outcome.PASSED
    below = MetricCheck(baseline=Regression(margin=needed * 0.99, worse="up"))
    assert judge(NEW_PROFILE, BASELINE, below).outcome is not Outcome.PASSED


def test_a_relative_margin_is_answered_by_a_relative_one_that_does_pass() -> None:
    relative = MetricCheck(baseline=Regression(margin_relative=0.1, worse="up"))
    message = judge(NEW_PROFILE, BASELINE, relative).message
    assert "(10% of the baseline)" in message
    needed = float(message.partition("margin_relative = ")[2].split()[0])
    assert needed == pytest.approx(1.52, abs=0.02)
    enough = MetricCheck(baseline=Regression(margin_relative=needed, worse="up"))
    assert judge(NEW_PROFILE, BASELINE, enough).outcome is Outcome.PASSED


def test_earlier_movement_within_the_margin_is_told() -> None:
    creeping = [0.10, 0.12, 0.15, 0.17, 0.38, 0.50, 0.10]
    new = profile({"anisotropy": [spread(value, 0.002) for value in creeping]}, names=NAMES)
    assert "moved before: 2-3" in judge(new, BASELINE, CHECK).message


def test_a_stand_in_is_named_and_never_offered_as_the_new_baseline() -> None:
    context = replace(CONTEXT, stand_in="path:runs/my last")
    message = judge(NEW_PROFILE, BASELINE, CHECK, context=context).message
    assert "path:runs/my last, in place of vit" in message
    assert "--isotest-model 'vit=path:runs/my last'" in message
    assert "--isotest-update" not in message


def test_outside_pytest_no_command_is_made_up() -> None:
    context = MessageContext.for_library("vision/tiny", "vit")
    message = judge(NEW_PROFILE, BASELINE, CHECK, context=context).message
    assert message.startswith("vision/tiny::vit::anisotropy: ")
    assert "pytest" not in message
    assert judge(NEW_PROFILE, None, CHECK, context=context).message == (
        "vision/tiny::vit::anisotropy: there is no baseline"
    )


def test_limit_and_regression_are_both_told() -> None:
    check = MetricCheck(max=0.45, baseline=Regression(margin=0.02, worse="up"))
    verdict = judge(NEW_PROFILE, BASELINE, check)
    assert "above max = 0.45" in verdict.headline
    assert "also         failed: anisotropy rose at layer 4" in verdict.message
    assert verdict.layers == ("4", "5")
    assert verdict.compared == 14


def test_inconclusive_says_what_is_missing() -> None:
    new = profile({"anisotropy": [spread(0.22, 0.05)]})
    verdict = judge(new, accepted({"anisotropy": [0.2]}), CHECK)
    assert verdict.headline.endswith(
        "cannot tell whether anisotropy stayed within its margin of 0.02 at layer 0: 0.200 -> 0.220"
    )
    assert "neither beyond (p = 0.5) nor within (p = 0.5)" in verdict.message


def test_properties_of_a_regression_are_plain_and_complete() -> None:
    properties = judge(NEW_PROFILE, BASELINE, CHECK).properties
    assert properties.keys() >= {
        "worst_layer", "value", "baseline", "change", "se", "p", "margin", "margin_needed",
        "sequences", "blocks", "values", "baseline_values",
    }  # fmt: skip
    assert {type(value) for value in properties.values()} <= {str, float}
    assert properties["worst_layer"] == "5"
    assert properties["change"] == pytest.approx(0.3)
    assert properties["values"] == "0:0.1 1:0.12 2:0.14 3:0.16 4:0.38 5:0.5 final:0.1"


def test_numbers_have_the_digits_that_their_errors_support() -> None:
    assert [decimals_for(se, 0.4) for se in (0.031, 0.0031, 0.3, 3.0)] == [3, 4, 2, 1]
    assert decimals_for(120.0, 22800.0) == 0
    assert decimals_for(1e-12, 0.4) == 6
    assert decimals_for(None, 0.4) == 4
    assert number(0.41239, 3) == "0.412"
    assert number(0.0, 2) == "0.00"
    assert number(3.14159e-9, 2) == "3.142e-09"
    assert signed(-0.5, 1) == "-0.5"
    assert p_value(1e-20) == "p < 1e-15"


@pytest.mark.parametrize("value", [0.1, 0.12345, 1.0, 99.91, 1e-9, 123456.7])
def test_rounding_up_never_falls_below(value: float) -> None:
    rounded = round_up(value)
    assert value <= rounded <= value * 1.01
    assert float(f"{rounded:g}") >= value
