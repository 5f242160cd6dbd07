"""The self-test of a shipped suite objects to every fault; a toothless suite is found out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from isotest.baselines import BaselineStore
from isotest.cli import main
from isotest.entry import Settings, measure_entry
from isotest.faults import FAULTS
from isotest.report.selftest import selftest_lines
from isotest.selftest import STRENGTHS, selftest
from isotest.suite import load_suite
from tests.real.vit import ROOT, SUITES

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from isotest.selftest import SuiteTest

# Attention is planted in where it is measured, which no check of the suite below asks for.
PLANTED = [fault.name for fault in FAULTS if fault.name != "saturated head"]
GRADED = [fault.name for fault in FAULTS if fault.graded and fault.name in PLANTED]

SUITE = """
title = "Thirty digits"
modality = "vision"

[data]
source = "sample:digits?split=held-out"
samples = 32

{checks}

[[models]]
name = "digits"
source = "sample:digits"
"""

SHARP = """
[checks.anisotropy]
baseline = { margin = 0.02 }

[checks.rank_residual]
baseline = { margin_relative = 0.02 }
"""

TOOTHLESS = """
[checks.anisotropy]
baseline = { margin = 10 }

[checks.rank_residual]
baseline = { margin_relative = 10 }
"""


class Project:
    """A suite of the digits, in a folder of its own."""

    def __init__(self, folder: Path, checks: str, *, more: str = "") -> None:
        self.baselines = folder / "baselines"
        (folder / "suites").mkdir()
        self.file = folder / "suites" / "thirty.toml"
        self.demand(checks, more)

    def demand(self, checks: str, more: str = "") -> None:
        self.file.write_text(SUITE.replace("{checks}", checks) + more)

    @property
    def arguments(self) -> list[str]:
        folders = (f"--suites={self.file.parent}", f"--baselines={self.baselines}")
        return ["selftest", str(self.file), *folders]

    def record(self) -> None:
        suite = load_suite(self.file, root=self.file.parent)
        profile = measure_entry(suite, suite.models[0], Settings()).profile
        BaselineStore(self.baselines).write(profile)

    def test(self, **arguments: Any) -> tuple[SuiteTest, list[str]]:
        said: list[str] = []
        arguments |= {"suites": self.file.parent, "baselines": self.baselines}
        return selftest(self.file, say=said.append, **arguments), said


def test_the_digits_suite_objects_to_every_fault() -> None:
    command = [sys.executable, "-m", "isotest.cli", "selftest", "--quick"]
    run = subprocess.run(
        [*command, str(SUITES / "vision" / "digits.toml")],
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "OMP_NUM_THREADS": "1", "COLUMNS": "150"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    (row,) = [line.split() for line in run.stdout.splitlines() if line.startswith("digits ")]
    assert row == ["digits", "green", *["red"] * len(FAULTS)]
    assert "every full fault is red" in run.stdout
    # What goes on is said beside it, a line a fault.
    assert run.stderr.count("isotest: digits: ") == 2 + len(FAULTS)


def test_a_suite_without_teeth_is_found_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = Project(tmp_path, TOOTHLESS)
    project.record()
    assert main([*project.arguments, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["passed"] is False
    assert document["strengths"] == list(STRENGTHS)
    entry = document["entries"]["digits"]
    assert entry["unchanged"] == {"red": False, "objections": {}}
    results = {name: found["result"] for name, found in entry["faults"].items()}
    # What no margin hides: not a number, other data than the baseline's, a layer that is gone.
    hidden = GRADED[:-1]
    assert [name for name, result in results.items() if result == "missed"] == hidden
    for name in hidden:
        # Nothing is noticed of the whole, so less of it is not tried.
        assert entry["faults"][name]["measured"] == [{"strength": 1.0, "objections": {}}]
    assert entry["faults"]["not a number"]["measured"] == [
        {"strength": 1.0, "objections": {"measuring": "refused"}}
    ]
    for name in ("permuted data", "dropped layer"):
        assert set(entry["faults"][name]["measured"][0]["objections"].values()) == {
            "nothing compared"
        }


def smallest(found: SuiteTest) -> dict[str, float]:
    """Of each graded fault that was noticed, from which strength on."""
    (entry,) = found.entries
    return {
        trial.fault.name: trial.weakest.strength
        for trial in entry.trials
        if trial.fault.graded and trial.weakest is not None
    }


def test_what_a_margin_lets_pass_is_searched(tmp_path: Path) -> None:
    project = Project(tmp_path, SHARP)
    project.record()
    found, said = project.test()
    assert found.passed
    (entry,) = found.entries
    for trial in entry.trials:
        most = 4 if trial.fault.graded else 1
        assert len(trial.probes) == (most if trial.fault.name in PLANTED else 0)
        strengths = [probe.strength for probe in trial.probes]
        assert strengths == sorted(strengths, reverse=True)
        assert strengths[:1] in ([], [1.0])
    assert any("common direction: noticed from" in line for line in said)
    text = "\n".join(selftest_lines(found, width=100))
    assert "digits: weakest on '" in text
    # Ten times the margin, and more of every fault is needed, never less.
    project.demand(SHARP.replace("0.02", "0.2"))
    dull = smallest(project.test()[0])
    sharp = smallest(found)
    assert all(dull[name] >= sharp[name] for name in GRADED)
    assert dull["common direction"] > 2 * sharp["common direction"]


def test_an_entry_that_is_red_anyway_is_not_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = Project(tmp_path, SHARP)  # whose baseline nobody recorded
    assert main(project.arguments) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "digits: red without a fault: anisotropy (no baseline)" in text
    assert "record a baseline first (pytest --isotest --isotest-update=missing)" in text
    assert "0 faults planted" in text
    assert "1 entry is red without a fault" in text


OPTIONAL = """
[[models]]
name = "gone"
source = "path:nowhere"
optional = true
"""


def test_an_optional_entry_that_is_not_here_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = Project(tmp_path, "[checks.anisotropy]\nmin = 0.5", more=OPTIONAL)
    found, _ = project.test(strengths=(1.0,))
    assert list(found.skipped) == ["gone"]
    text = "\n".join(selftest_lines(found, width=400))
    assert "gone: skipped: " in text
    assert "nowhere" in text
    assert main([*project.arguments, "--model", "gone"]) == 2
    assert "nothing was tested: every entry was skipped: gone: " in capsys.readouterr().err
    assert main([*project.arguments, "--model", "digits", "--device", "cuda:77"]) == 2
    assert capsys.readouterr().err.endswith("use --device cpu\n")
    assert main([*project.arguments, "--model", "digit"]) == 2
    assert "did you mean 'digits'?" in capsys.readouterr().err


ATTENTIVE = """
[checks.attention_entropy_lowest]
baseline = { margin = 0.05 }
"""


def test_attention_is_planted_in_where_a_check_is_about_it(tmp_path: Path) -> None:
    project = Project(tmp_path, ATTENTIVE)
    project.record()
    found, _ = project.test(strengths=(1.0,))
    (entry,) = found.entries
    (trial,) = [trial for trial in entry.trials if trial.fault.name == "saturated head"]
    assert trial.probes[0].objections == {"attention_entropy_lowest": "beyond"}
