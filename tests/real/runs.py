"""A run of the repository's own suites, as a user starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from junitparser import JUnitXml

from tests.real.vit import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def green_run(tmp_path: Path, *arguments: str, **environment: str) -> list[Any]:
    """The test cases that JUnit lists of a ``pytest --isotest`` run, which must be green."""
    run = subprocess.run(
        [
            sys.executable,
            *("-m", "pytest", "-p", "no:cacheprovider", "--isotest", *arguments),
            f"--junitxml={tmp_path / 'junit.xml'}",
        ],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=580,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    report = JUnitXml.fromfile(str(tmp_path / "junit.xml"))
    return [case for suite in report for case in suite]
