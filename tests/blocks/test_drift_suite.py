"""The drift experiment as a suite: measured, cached, gated, and red where a block is at fault."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from isotest.cache import ProfileCache
from isotest.entry import Settings, measure_entry
from isotest.errors import IsotestError
from isotest.selftest import selftest
from isotest.suite import load_suite

if TYPE_CHECKING:
    from pathlib import Path

    from tests.plugin.project import Project

CHECKS = """
[checks.closer]
metric = "anisotropy"
minus = "input"
min = 0.0
max = 0.5

[checks.anisotropy]
layers = "output.0"
max = 0.8
baseline = { margin = 0.01 }

[checks.fixed_point]
min = 3.8
max = 4.2

[checks.mean_norm]
layers = "output.any"
min = 3.99
max = 4.01

[checks.attention_query_norm]
layers = "output.2"
min = 0.3

[checks.query_expectation_gap]
max = 1e-5
"""

SYNTHETIC = 'source = "block:bert"\nconfig = { width = 16, heads = 2, hidden = 32 }'

NETS = '''
import torch
from torch import nn
from isotest.blocks import BlockConfig, TransformerBlock

CONFIG = BlockConfig(width=16, heads=2, hidden=32)


class Model(nn.Module):
    """A model with blocks in it, none of which is trained."""

    def __init__(self):
        super().__init__()
        self.embeddings = nn.Embedding(7, 16)
        self.layer = nn.ModuleList(TransformerBlock(CONFIG, seed=s) for s in range(2))


class Collapses(nn.Module):
    """Every output is the mean of its sequence's, as after a softmax that sees nothing."""

    def __init__(self):
        super().__init__()
        self.inner = TransformerBlock(CONFIG, seed=0)

    def forward(self, x):
        y = self.inner(x)
        return torch.nn.functional.layer_norm(y.mean(dim=(0, 1), keepdim=True) + 0 * y, (16,))


class Explodes(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)

    def forward(self, x):
        return x / (x.norm() < 30)


def block():
    return Model().layer[0]


def nothing():
    raise RuntimeError("no block today")
'''


def write(project: Project, entry: str = SYNTHETIC, checks: str = CHECKS, more: str = "") -> None:
    project.write("blocks.py", NETS)
    project.write(
        "suites/tiny.toml",
        f"""
modality = "embeddings"
[data]
source = "embeddings:normal?std=0.1&vocabulary=50&length=12"
samples = 3
[drift]
norms = [0, 2, 8]
replicates = 3
{more}
[[models]]
name = "net"
{entry}
{checks}
""",
    )


def profile(project: Project) -> dict[str, object]:
    document: dict[str, object] = json.loads(project.baseline().read_bytes())
    return document


def test_a_sound_block_is_recorded_and_then_green(project: Project) -> None:
    write(project)
    project.record()
    result = project.run()
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["*tiny.toml: 1 model on embeddings:normal*"])
    document = profile(project)
    assert document["modality"] == "embeddings"
    layers = document["layers"]
    assert isinstance(layers, list)
    assert [layer["name"] for layer in layers] == [
        f"{side}.{k}" for side in ("input", "output") for k in range(3)
    ]
    assert [layer["at"] for layer in layers] == [0, 2, 8, 0, 2, 8]


def test_a_planted_collapse_is_red(project: Project) -> None:
    write(project, 'source = "python:blocks:block"')
    project.record()
    write(project, 'source = "python:blocks:Collapses"')
    result = project.run("-rf")
    failed = {line.split("::")[2].split()[0] for line in result.outlines if "FAILED" in line}
    assert {"closer", "anisotropy"} <= failed, result.stdout.str()
    result.stdout.fnmatch_lines(
        ["*::anisotropy: is 1.000* at layer output.0 (N = 0), above max = 0.8*"]
    )


def test_replicates_of_a_seeded_source_have_weights_of_their_own(project: Project) -> None:
    for entry, weights in (
        (SYNTHETIC, "of each replicate"),
        ('source = "python:blocks:Model"\nblock = "layer.1"', "the same"),
    ):
        write(project, entry)
        project.run("--isotest-update=all")
        provenance = profile(project)["provenance"]
        assert isinstance(provenance, dict)
        assert provenance["protocol"]["weights"] == weights
        assert provenance["protocol"]["drift.norms"] == "0, 2, 8"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("norms = [0, 2, 8]", "norms = [0, 2, 9]"),
        ("replicates = 3", "replicates = 4"),
        ("samples = 3", "samples = 4"),
        ("std=0.1", "std=0.2"),
        ("vocabulary=50", "vocabulary=51"),
        ("length=12", "length=13"),
        ("block:bert", "block:bert?seed=1"),
        ('source = "block:bert"', 'source = "block:bert"\nblock = "blocks.0"'),
        ('source = "block:bert"', 'source = "block:bert"\nwidth = 16'),
        ("heads = 2", "heads = 4"),
    ],
)
def test_the_cache_knows_all_that_decides_the_numbers(
    project: Project, tmp_path: Path, before: str, after: str
) -> None:
    write(project, checks="[checks.mean_norm]\nmin = 0\n")
    path, cache = project.path / "suites" / "tiny.toml", ProfileCache(tmp_path)

    def cached() -> bool:
        suite = load_suite(path)
        return measure_entry(suite, suite.models[0], Settings(), cache=cache).cached

    assert [cached(), cached()] == [False, True]
    text = path.read_text()
    assert text.count(before) == 1
    path.write_text(text.replace(before, after))
    assert not cached()


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (
            'source = "python:blocks:Model"\nblock = "layers.0"',
            "*Model has no module 'layers.0' to be the block; did you mean 'layer.0'*",
        ),
        ('source = "python:blocks:Model"', "*source 'python:blocks:Model': Model fails on*"),
        ('source = "python:blocks:nothing"', "*raised RuntimeError: no block today*"),
        (
            'source = "python:blocks:Explodes"',
            "*'net', replicate 0, N = 8, sequences 0–2: output: *",
        ),
        (
            'source = "python:blocks:block"\nwidth = 8',
            "*where its width is not 8, say what it is with 'width'*",
        ),
    ],
)
def test_what_is_wrong_with_a_block_is_one_message(project: Project, entry: str, says: str) -> None:
    write(project, entry, "[checks.mean_norm]\nmin = 0\n")
    result = project.run("-rf")
    assert result.ret == 1
    result.stdout.fnmatch_lines([says])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_stand_in_is_measured_in_an_entrys_place(project: Project) -> None:
    write(project, 'source = "python:blocks:Model"\nblock = "layer.0"')
    project.record()
    assert project.run("--isotest-model=net=python:blocks:Model").ret == 0
    result = project.run("--isotest-model=net=python:blocks:Collapses")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*Collapses has no module 'layer.0' to be the block*"])


def test_all_metrics_can_be_had(project: Project) -> None:
    write(project, more='[measure]\nmetrics = "all"')
    project.record()
    (names,) = {tuple(layer["estimates"]) for layer in profile(project)["layers"]}  # type: ignore[attr-defined]
    assert {"score_sign", "effective_rank", "attention_score_q05", "twonn"} <= set(names)


def test_the_self_test_says_that_it_is_not_for_blocks(project: Project) -> None:
    write(project)
    suites = project.path / "suites"
    with pytest.raises(IsotestError, match=r"suite with a table .drift. feeds one block"):
        selftest(suites / "tiny.toml", suites=suites, baselines=project.path / "baselines")
