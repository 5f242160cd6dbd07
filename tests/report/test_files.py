"""What other programs and CI pages read."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from isotest.report.entry import CheckSummary, EntrySummary, Finding
from isotest.report.files import markdown, write_json, write_markdown
from tests.report.examples import SUITE, entry

if TYPE_CHECKING:
    from pathlib import Path


def test_json_holds_curves_and_verdicts(tmp_path: Path) -> None:
    entries = [
        entry("vit", [0.1, None], "passed", "failed", baseline=[0.1, 0.3]),
        entry("gone", None, "skipped", skipped="weights; download"),
    ]
    path = tmp_path / "results.json"
    write_json(entries, [], path)
    document = json.loads(path.read_text())
    assert document["format"] == "isotest-results"
    vit, gone = document["entries"]
    assert (vit["suite"], vit["model"], vit["result"], vit["green"]) == (
        SUITE,
        "vit",
        "failed",
        False,
    )
    assert vit["profile"]["layers"] == ["0", "final"]
    assert vit["profile"]["curves"]["anisotropy"] == [0.1, None]
    assert vit["baseline"]["curves"]["anisotropy"] == [0.1, 0.3]
    assert [check["result"] for check in vit["checks"]] == ["passed", "failed"]
    assert vit["profile"]["provenance"]["protocol"]["data.source"] == "sample:photographs"
    assert (gone["profile"], gone["skipped"]) == (None, "weights; download")


def test_json_never_holds_nan(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text("old")
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json([entry("vit", [float("nan"), 0.1], "passed")], [], path)
    assert path.read_text() == "old"


def test_a_report_that_cannot_be_written_is_an_os_error(tmp_path: Path) -> None:
    for write in (write_json, write_markdown):
        with pytest.raises(FileNotFoundError):
            write([], [], tmp_path / "no" / "folder.md")


def test_markdown_shows_a_row_a_model_and_the_messages_of_what_is_red(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    write_markdown([entry("vit", [0.1, 0.6], "passed", "failed", baseline=[0.1, 0.3])], [], path)
    text = path.read_text()
    assert "| vit | ❌ failed | ▁▅ 0.100…0.600 | ▁▃ 0.100…0.300 | 1 failed, 1 passed |" in text
    assert "check-1 failed\n  and why" in text
    assert "check-0 passed" not in text


def test_names_and_messages_cannot_break_out_of_the_markdown() -> None:
    hostile = "a|b`<script>*_"
    check = CheckSummary(hostile, "failed", green=False, message="x\n````\n# y\n</details>")
    text = markdown([EntrySummary(SUITE, hostile, checks=(check,))], [])
    assert "<script>" not in text
    (row,) = re.findall(r"^\| a.*$", text, re.MULTILINE)
    assert len(re.findall(r"(?<!\\)\|", row)) == 6
    # The message's own fence is shorter than the one around it.
    assert "`````text\nx\n````\n# y\n</details>\n`````" in text


def test_markdown_of_nothing_says_so() -> None:
    assert "No entry was run." in markdown([], [])


def test_a_red_finding_is_red_in_every_report(tmp_path: Path) -> None:
    entries = [entry("vit", [0.1], "passed")]
    findings = [Finding(f"{SUITE}::(suite)::baselines", "a file that <nobody> claims")]
    write_json(entries, findings, tmp_path / "results.json")
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["green"] is False
    assert results["findings"][0]["problem"] == "a file that <nobody> claims"
    text = markdown(entries, findings)
    assert "❌" in text
    assert "a file that <nobody> claims" in text
    write_json(entries, [Finding("x", None)], tmp_path / "results.json")
    assert json.loads((tmp_path / "results.json").read_text())["green"] is True
