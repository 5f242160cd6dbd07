"""The committed baselines of other modalities hold on this machine; vision's are the README's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real.runs import green_run

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
    cases = green_run(tmp_path, where)
    assert not [case.name for case in cases if case.is_skipped]
    compared = {case.classname.rpartition(".")[2] for case in cases if case.name == "anisotropy"}
    assert compared == entries
