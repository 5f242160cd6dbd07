"""The documentation of suites says what the code does."""

from __future__ import annotations

import re
import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest

from isotest.gate.checks import compares
from isotest.suite import load_suite
from tests.suite.cases import write

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def generate(tmp_path: Path) -> dict[str, Any]:
    """The generator, working on a copy of the pages."""
    for name in ("generate.py", "suites.md", "metrics.md"):
        shutil.copy(DOCS / name, tmp_path / name)
    return runpy.run_path(str(tmp_path / "generate.py"))


def test_generated_parts_are_up_to_date(generate: dict[str, Any]) -> None:
    assert generate["main"](["--check"]) == 0


def test_a_stale_page_is_noticed_and_repaired(
    generate: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "suites.md"
    fresh = path.read_text()
    path.write_text(fresh.replace("| `samples` |", "| `sample` |"))
    assert generate["main"](["--check"]) == 1
    assert "suites.md: stale" in capsys.readouterr().err
    assert path.read_text() != fresh
    assert generate["main"]([]) == 0
    assert path.read_text() == fresh


def test_a_page_without_marks_is_refused(generate: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "metrics.md").write_text("# Metrics\n")
    with pytest.raises(SystemExit, match="expected the marks"):
        generate["main"]([])


def test_the_examples_of_suites_are_valid(tmp_path: Path) -> None:
    page = (DOCS / "suites.md").read_text()
    examples = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    suites = [load_suite(write(tmp_path, example)) for example in examples]
    assert [len(suite.models) for suite in suites] == [4, 1]
    texts = suites[0]
    assert texts.measure_of(texts.models[1]).special_tokens == "include"
    assert not compares(texts.checks_of(texts.models[3])["anisotropy"])


@pytest.mark.parametrize("page", ["README.md", "docs/pretrained.md"])
def test_the_examples_of_other_pages_are_valid(page: str, tmp_path: Path) -> None:
    text = (DOCS.parent / page).read_text(encoding="utf-8")
    examples = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert examples
    for example in examples:
        suite = load_suite(write(tmp_path, example))
        assert all(suite.checks_of(model) for model in suite.models)
