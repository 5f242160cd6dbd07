"""``[checks.collapse_bound]`` in suites: measured with the stack, and only where it can be."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
import torch

from isotest.blocks import BlockConfig, TransformerStack
from isotest.blocks.bound import collapse_bound
from isotest.cache import ProfileCache
from isotest.data.embeddings import EmbeddingTable, draw
from isotest.entry import Settings, measure_entry
from isotest.errors import SuiteError
from isotest.suite import load_suite

if TYPE_CHECKING:
    from pathlib import Path

    from tests.plugin.project import Project

SUITE = """modality = "embeddings"
[data]
source = "embeddings:normal?std=0.001&vocabulary=50&length=6&bias=1"
samples = 3
[measure]
metrics = ["rank_residual"]
[[models]]
name = "net"
source = "block:san?seed=4"
config = { width = 16, heads = 2, depth = 2 }
[checks.collapse_bound]
"""

UNKNOWN = """from types import SimpleNamespace
import torch

class Net(torch.nn.Module):
    def __init__(self, **config):
        super().__init__()
        self.config = SimpleNamespace(width=16)
        blocks = [torch.nn.Sequential(torch.nn.Linear(16, 16)) for _ in range(3)]
        self.blocks = torch.nn.ModuleList(blocks)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
"""


def test_a_profile_holds_what_the_bound_says_of_each_sequence_fed_to_the_stack(
    tmp_path: Path,
) -> None:
    (tmp_path / "tiny.toml").write_text(SUITE)
    suite = load_suite(tmp_path / "tiny.toml")
    (spec,) = suite.models
    profile = measure_entry(suite, spec, Settings()).profile
    stack = TransformerStack(
        BlockConfig(
            width=16, heads=2, depth=2, attention_skip=False, mlp=False, layer_norm="none",
            bias=False,
        ),
        seed=4,
    )  # fmt: skip
    table = EmbeddingTable(std=0.001, vocabulary=50, length=6)
    x = draw(table, sequences=3, width=16, seed=0, replicate=0).biased(1.0)
    assert len(profile.bounds) == 3
    for kept, sequence in zip(profile.bounds, torch.from_numpy(x), strict=True):
        found = collapse_bound(stack.double(), sequence)
        assert (kept.outcome, kept.beta, kept.heads) == (found.outcome, found.beta, 2)
        assert kept.residuals == pytest.approx(found.residuals, rel=1e-9)
        assert kept.log10_bounds == pytest.approx(found.log10_bounds, rel=1e-12)
    # With no check that asks for it, nothing is computed; what is kept does not mix the two up.
    (tmp_path / "tiny.toml").write_text(SUITE.replace("collapse_bound]", "rank_residual]\nmax = 1"))
    without = load_suite(tmp_path / "tiny.toml")
    cache = ProfileCache(tmp_path / "cache")
    measured = [
        measure_entry(each, each.models[0], Settings(), cache=cache)
        for each in (without, suite, suite)
    ]
    assert [len(each.profile.bounds) for each in measured] == [0, 3, 3]
    assert [each.cached for each in measured] == [False, False, True]


@pytest.mark.parametrize(
    ("config", "expect", "words"),
    [
        ("", "holds", ""),
        ("", "vacuous", "expected 'vacuous', found 'holds' in all 3 sequences"),
        ('initialisation = "xavier", depth = 3', "vacuous", ""),
        (
            'initialisation = "xavier", depth = 3',
            "holds",
            "'vacuous' in all 3 sequences: c·‖res(X)",
        ),
        ("attention_skip = true", "precondition failed", ""),
        ("attention_skip = true", "holds", "pure attention, and the stack has a skip"),
    ],
)
def test_it_is_green_where_it_is_as_expected_and_red_elsewhere(
    project: Project, config: str, expect: str, words: str
) -> None:
    text = SUITE.replace("depth = 2", config or "depth = 2").replace("std=0.001", "std=0.1")
    text = text if config else SUITE
    project.write("suites/tiny.toml", f'{text}expect = "{expect}"\n')
    result = project.run("-rf", "--isotest-json=report.json", "--isotest-summary=report.md")
    assert result.ret == (1 if words else 0), result.stdout.str()
    assert words in result.stdout.str()
    report = json.loads((project.path / "report.json").read_text())
    (check,) = [c for e in report["entries"] for c in e["checks"] if c["name"] == "collapse_bound"]
    assert len(report["entries"][0]["profile"]["bounds"]) == 3
    assert check["green"] is not bool(words)
    assert words in check["message"]
    assert words in (project.path / "report.md").read_text()


@pytest.mark.parametrize(
    ("before", "after", "line", "words"),
    [
        (
            "[checks.collapse_bound]\n",
            "[checks.collapse_bound]\nmax = 1\n",
            12,
            "unknown key 'max'",
        ),
        (
            "[checks.collapse_bound]\n",
            '[checks.collapse_bound]\nexpect = "violated"\n',
            12,
            "expected 'holds', 'vacuous' or 'precondition failed'",
        ),
        ('"block:san?seed=4"', '"python:nets:make"', 9, "this source is python:"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_line(
    tmp_path: Path, before: str, after: str, line: int, words: str
) -> None:
    text = SUITE.replace(before, after)
    if "python" in after:
        text = text.replace("config = { width = 16, heads = 2, depth = 2 }\n", "")
    refused(tmp_path, text, line, words)


def test_it_has_no_place_in_other_suites(tmp_path: Path) -> None:
    text = SUITE.replace("[measure]", "[drift]\nnorms = [0, 1]\n[measure]").replace("&bias=1", "")
    refused(tmp_path, text, 13, "this suite has a table .drift., which studies one block")
    text = (
        'modality = "vision"\n[data]\nsource = "sample:digits"\n[[models]]\nname = "vit"\n'
        'source = "init:vit?seed=0"\n[models.checks.collapse_bound]\n[checks.anisotropy]\nmax = 1\n'
    )
    refused(tmp_path, text, 7, "this suite's modality is 'vision'")


def refused(folder: Path, text: str, line: int, words: str) -> None:
    path = folder / "suite.toml"
    path.write_text(text)
    with pytest.raises(SuiteError) as caught:
        load_suite(path)
    assert re.search(rf"suite.toml:{line}: .*{words}", str(caught.value)), caught.value


def test_what_stands_in_must_be_a_stack_of_blocks(project: Project) -> None:
    """A module that does what a stack does, and of whose weights nothing is known."""
    project.write("suites/tiny.toml", SUITE)
    project.write(
        "unknown.py",
        UNKNOWN,
    )
    result = project.run("-rf", "--isotest-model", "net=python:unknown:Net")
    assert result.ret == 1
    assert "is about a stack of blocks (block:), and this is a Net" in result.stdout.str()
