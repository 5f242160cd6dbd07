"""The self-test of a shipped suite objects to every fault; a toothless suite is found out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from isotest.baselines import BaselineStore
from isotest.entry import Settings, measure_entry
from isotest.faults import FAULTS
from isotest.suite import load_suite
from tests.real.vit import ROOT, SUITES

if TYPE_CHECKING:
    from pathlib import Path

TOOTHLESS = """
title = "A suite that accepts everything"
modality = "vision"

[data]
source = "sample:digits?split=held-out"
samples = 60

[checks.anisotropy]
baseline = { margin = 10 }

[checks.rank_residual]
baseline = { margin_relative = 10 }

[[models]]
name = "digits"
source = "sample:digits"
"""


def selftest(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "isotest.cli", "selftest", *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )


def cells(output: str) -> list[str]:
    """The row of the matrix for the entry digits."""
    header, row, *_ = output.splitlines()
    assert re.split(r"\s{2,}", header.strip()) == [*(fault.name for fault in FAULTS), "unchanged"]
    name, *found = row.split()
    assert name == "digits"
    return found


def test_the_digits_suite_objects_to_every_fault() -> None:
    run = selftest(SUITES / "vision" / "digits.toml")
    assert run.returncode == 0, run.stdout + run.stderr
    assert cells(run.stdout) == ["red"] * len(FAULTS) + ["green"]
    assert "all red, and green without them" in run.stdout


def test_a_suite_without_teeth_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "suites").mkdir()
    suite = tmp_path / "suites" / "toothless.toml"
    suite.write_text(TOOTHLESS)
    loaded = load_suite(suite, root=suite.parent)
    profile = measure_entry(loaded, loaded.models[0], Settings()).profile
    BaselineStore(tmp_path / "baselines").write(profile)
    folders = ("--suites", tmp_path / "suites", "--baselines", tmp_path / "baselines")
    run = selftest(suite, *folders)
    assert run.returncode == 1, run.stdout + run.stderr
    unnoticed = re.findall(r"^digits: '(.+)' went unnoticed", run.stdout, re.MULTILINE)
    # What no margin hides: not a number, other data than the baseline's, a layer that is gone.
    assert unnoticed == ["common direction", "collapsed rank", "rogue dimension"]
    assert cells(run.stdout) == ["green"] * 3 + ["red"] * 3 + ["green"]
    assert "3 wrong" in run.stdout
