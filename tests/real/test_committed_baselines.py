"""The committed baselines of other modalities hold on this machine; vision's are the README's."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from junitparser import JUnitXml

from tests.real.vit import ROOT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("where", "entries"),
    [
        ("suites/language/pretrained.toml", {"minilm-l6", "smollm2-135m"}),
        ("suites/chemistry/pretrained.toml", {"rxnmapper"}),
        ("suites/proteins/pretrained.toml", {"antiberty"}),
        ("suites/language/tokens.toml::pythia-160m-untrained", {"pythia-160m-untrained"}),
        ("suites/language/characters.toml::canine-c-untrained", {"canine-c-untrained"}),
        ("suites/speech/transformers.toml::hubert-base-untrained", {"hubert-base-untrained"}),
    ],
)
def test_a_run_is_green_and_skips_nothing(tmp_path: Path, where: str, entries: set[str]) -> None:
    run = subprocess.run(
        [
            sys.executable,
            *("-m", "pytest", "-p", "no:cacheprovider", "--isotest", where),
            f"--junitxml={tmp_path / 'junit.xml'}",
        ],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=580,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    report = JUnitXml.fromfile(str(tmp_path / "junit.xml"))
    cases: list[Any] = [case for suite in report for case in suite]
    assert not [case.name for case in cases if case.is_skipped]
    compared = {case.classname.rpartition(".")[2] for case in cases if case.name == "anisotropy"}
    assert compared == entries
