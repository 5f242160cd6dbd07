"""Another seed of untrained weights is no regression: the margins are sized for it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from junitparser import JUnitXml

from tests.real.vit import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def test_another_seed_is_green_against_the_committed_baseline(tmp_path: Path) -> None:
    """The smallest entry; the suite's head says what was measured for the others."""
    source = "init:segformer?seed=1"
    run = subprocess.run(
        [
            sys.executable,
            *("-m", "pytest", "-p", "no:cacheprovider", "--isotest"),
            "suites/vision/transformers.toml::mit-b0-untrained",
            *("--isotest-model", f"mit-b0-untrained={source}"),
            f"--junitxml={tmp_path / 'junit.xml'}",
        ],
        cwd=ROOT,
        env={**os.environ, "ISOTEST_CACHE_DIR": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    report = JUnitXml.fromfile(str(tmp_path / "junit.xml"))
    cases: list[Any] = [case for suite in report for case in suite]
    compared = [case for case in cases if case.classname.endswith(".mit-b0-untrained")]
    assert len(compared) == 7, [case.name for case in cases]
    # It was the other seed that was measured, and it differs.
    changes = [
        abs(float(each.get("value")))
        for case in compared
        for each in case._elem.iter("property")
        if each.get("name") == "change"
    ]
    assert len(changes) == 4
    assert min(changes) > 1e-3
