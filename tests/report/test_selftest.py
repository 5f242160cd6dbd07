"""The matrix of a self-test: what a person reads, and what a program does."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from isotest.faults import FAULTS
from isotest.report.selftest import selftest_document, selftest_lines
from isotest.selftest import STRENGTHS, EntryTest, Probe, SuiteTest, Trial

if TYPE_CHECKING:
    from isotest.selftest import Reason


def trial(number: int, smallest: float | None, reason: Reason = "beyond") -> Trial:
    """Of a fault that is red from ``smallest`` on, each strength measured."""
    fault = FAULTS[number]
    strengths = STRENGTHS if fault.graded else STRENGTHS[:1]
    red = {"anisotropy": reason}
    return Trial(
        fault,
        tuple(
            Probe(strength, red if smallest is not None and strength >= smallest else {})
            for strength in strengths
        ),
    )


def entry(model: str, **other: Trial) -> EntryTest:
    """All noticed from 1/64 on, but attention, of which nothing is measured; and ``other``."""
    trials = {fault.name: trial(number, 1 / 64) for number, fault in enumerate(FAULTS)}
    trials["saturated head"] = Trial(FAULTS[5], (), "attention is not measured")
    trials.update({name.replace("_", " "): value for name, value in other.items()})
    return EntryTest(model, {}, tuple(trials.values()), "sha256:w")


def suite(*entries: EntryTest) -> SuiteTest:
    return SuiteTest("vision/a", STRENGTHS, entries, {})


def text(found: SuiteTest, width: int = 1000) -> list[str]:
    return selftest_lines(found, width=width)


def row(found: SuiteTest, model: str) -> list[str]:
    """Cells of the matrix; a mark stands with its strength."""
    (line,) = [line for line in text(found) if line.startswith(f"{model}  ")]
    return line.replace(" ?", "?").split()[1:]


def test_a_cell_is_the_smallest_strength_that_is_red() -> None:
    found = suite(entry("vit", rogue_dimension=trial(2, 1 / 4)))
    assert row(found, "vit") == [
        "green", "1/64", "1/64", "1/4", "1/64", "1/64", "1/64", "red", "red",
    ]  # fmt: skip
    assert found.passed
    assert (
        "vit: weakest on 'rogue dimension': would miss 1/8 × its own length added to one dimension "
        "of every representation, after the middle block; from 1/4 on, red: anisotropy (beyond)"
    ) in text(found)


def test_what_goes_unnoticed_is_missed_and_named() -> None:
    found = suite(entry("vit", sequence_mean=trial(3, None)))
    assert row(found, "vit")[4] == "missed"
    assert not found.passed
    assert (
        "vit: 'sequence mean' went unnoticed: no check of the suite objects to every position "
        "moved all of the way to the mean of its sequence, after the last block"
    ) in text(found)
    assert text(found)[-1].endswith("1 went unnoticed")


def test_what_is_red_for_want_of_data_is_marked_and_explained() -> None:
    found = suite(entry("vit", collapsed_rank=trial(1, 1 / 8, "cannot tell")))
    assert row(found, "vit")[2] == "1/8?"
    assert any(line.startswith("  ?  ") and "cannot tell" in line for line in text(found))
    assert not any(line.startswith("  ?  ") for line in text(suite(entry("vit"))))


def test_one_check_that_is_sure_is_enough() -> None:
    unsure = trial(1, 1 / 8, "cannot tell")
    probes = [
        replace(probe, objections={**probe.objections, "rank_residual": "beyond"})
        if probe.objections
        else probe
        for probe in unsure.probes
    ]
    found = suite(entry("vit", collapsed_rank=replace(unsure, probes=tuple(probes))))
    assert row(found, "vit")[2] == "1/8"


def test_what_does_not_apply_says_why() -> None:
    reason = "every input is one representation"
    cnn = entry("cnn", sequence_mean=Trial(FAULTS[3], (), reason))
    found = suite(cnn, entry("vit"))
    assert (row(found, "cnn")[4], row(found, "vit")[4]) == ("-", "1/64")
    assert found.passed
    assert f"Not planted: sequence mean: {reason}" in text(found)
    # What applies to none of the entries has no column.
    assert len(row(suite(cnn), "cnn")) == len(row(found, "cnn")) - 1
    assert f"Not planted: sequence mean: {reason}" in text(suite(cnn))


def test_a_red_entry_is_not_read_as_noticing_everything() -> None:
    red = EntryTest("vit", {"anisotropy": "beyond"}, (), "sha256:w")
    found = suite(red, entry("beit"))
    assert row(found, "vit")[0] == "red"
    assert "1/64" not in row(found, "vit")
    assert not found.passed
    (line,) = [line for line in text(found) if line.startswith("vit: red without a fault")]
    assert "anisotropy (beyond)" in line
    assert "no fault was planted" in line
    assert text(found)[-1].endswith("1 entry is red without a fault")


def test_red_only_afterwards_is_said_to_be_unsteady() -> None:
    found = suite(replace(entry("vit"), unchanged={"anisotropy": "beyond"}))
    assert not found.passed
    assert any("measuring is unsteady" in line for line in text(found))


def test_nothing_is_missed_down_to_the_smallest_strength() -> None:
    trials = {
        fault.name.replace(" ", "_"): trial(number, 1 / 128)
        for number, fault in enumerate(FAULTS)
        if fault.graded and fault.name != "saturated head"
    }
    lines = text(suite(entry("vit", **trials)))
    assert any("down to 1/128, the smallest strength tried" in line for line in lines)


def test_full_faults_only() -> None:
    quick = tuple(Trial(fault, (Probe(1.0, {"anisotropy": "beyond"}),)) for fault in FAULTS)
    found = SuiteTest("vision/a", (1.0,), (EntryTest("vit", {}, quick, "sha256:w"),), {})
    assert row(found, "vit") == ["green", *["red"] * len(FAULTS)]
    assert not any("weakest" in line for line in text(found))
    assert any("a vector of 1 × the mean length" in line for line in text(found))


def test_fits_the_terminal() -> None:
    found = suite(entry("vit"), entry("smollm2-135m", rogue_dimension=trial(2, None)))
    for width in (80, 100, 120):
        assert max(map(len, text(found, width))) <= width
    # Of a short name, all columns stand in one table of 100 cells.
    assert sum(line.startswith("vit  ") for line in text(suite(entry("vit")), 100)) == 1


def test_as_data() -> None:
    skipped = replace(suite(entry("vit", collapsed_rank=trial(1, None))), skipped={"x": "gone"})
    document = json.loads(json.dumps(selftest_document(skipped), allow_nan=False))
    assert (document["suite"], document["passed"]) == ("vision/a", False)
    assert document["strengths"] == [1, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125]
    assert document["skipped"] == {"x": "gone"}
    assert list(document["faults"]) == [fault.name for fault in FAULTS]
    assert document["entries"]["vit"]["weights"] == "sha256:w"
    faults = document["entries"]["vit"]["faults"]
    assert faults["collapsed rank"]["result"] == "missed"
    assert faults["collapsed rank"]["smallest"] is None
    assert faults["common direction"]["smallest"] == 1 / 64
    assert faults["common direction"]["measured"][0] == {
        "strength": 1.0,
        "objections": {"anisotropy": "beyond"},
    }
