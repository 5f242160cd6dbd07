"""The README's training-CI example, whole: train, gate, and see the faults go red."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from junitparser import JUnitXml

ROOT = Path(__file__).resolve().parent.parent
RUNS = {
    "healthy": (),
    "equal-labels": ("--fault", "equal-labels"),
    "learning-rate": ("--fault", "learning-rate"),
}


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Seed 1 (the shipped one is seed 0), healthy and with each fault, trained side by side."""
    folder = tmp_path_factory.mktemp("checkpoints")
    running = {
        name: subprocess.Popen(
            [
                sys.executable,
                str(ROOT / "examples/digits/train.py"),
                "--seed",
                "1",
                "--output",
                str(folder / name),
                *arguments,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name, arguments in RUNS.items()
    }
    for name, process in running.items():
        output, _ = process.communicate()
        assert process.returncode == 0, f"{name}:\n{output}"
    return {name: folder / name for name in RUNS}


def gate(checkpoint: Path, junit: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "--isotest",
        "suites/vision/digits.toml",
        "--isotest-model",
        f"digits=path:{checkpoint}",
        f"--junitxml={junit}",
    ]
    environment = {**os.environ, "COLUMNS": "200", "CI": "true"}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def test_training_again_with_another_seed_is_green(
    checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    done = gate(checkpoints["healthy"], tmp_path / "junit.xml")
    assert done.returncode == 0, done.stdout
    report = JUnitXml.fromfile(str(tmp_path / "junit.xml"))
    assert report.failures == report.errors == report.skipped == 0
    assert report.tests >= 3


@pytest.mark.parametrize("fault", ["equal-labels", "learning-rate"])
def test_a_fault_in_training_is_red_and_says_what_happened(
    checkpoints: dict[str, Path], tmp_path: Path, fault: str
) -> None:
    done = gate(checkpoints[fault], tmp_path / "junit.xml")
    assert done.returncode == 1, done.stdout
    # Which check, from what to what and how sure, why, and what to type next.
    assert "digits::anisotropy" in done.stdout
    assert "above max = 0.19" in done.stdout
    assert "times its own error bar" in done.stdout
    assert "would have passed" in done.stdout
    assert "cause        drift" in done.stdout
    assert "isotest diff" in done.stdout
    assert "Traceback" not in done.stdout
    assert JUnitXml.fromfile(str(tmp_path / "junit.xml")).failures > 0
