"""Suites of modality ``tasks`` under pytest: green where they hold, red and said where not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import torch
from safetensors.torch import load_file, save_file

from isotest.blocks.tasks.stored import load, save
from tests.blocks.tasks.stored_networks import write_circle, write_sorting

if TYPE_CHECKING:
    from tests.plugin.project import Project

HEAD = """
modality = "tasks"
[data]
source = "task:sorting"
samples = 20
[paths]
counts = [1, 3]
repeats = 3
"""

NETWORK = """
[[models]]
name = "net"
source = "task:sorting?weights=w.safetensors"
"""

ACCURATE = """
[checks.path_accuracy]
layers = "full"
min = 0.2
"""

LONG_PATHS = """
[checks.long]
metric = "path_accuracy"
layers = "paths_1.6,paths_3.6"
max = 0.6

[checks.more]
metric = "path_accuracy"
layers = "paths_3.any"
minus = "paths_1"
min = -1
"""


def write(project: Project, checks: str, entry: str = NETWORK) -> None:
    project.write("suites/tiny.toml", HEAD + entry + checks)
    write_sorting(project.path / "suites" / "w.safetensors")


def test_a_suite_of_a_task_is_green_and_reported(project: Project) -> None:
    write(project, ACCURATE + "baseline = { margin = 0.0 }\n" + LONG_PATHS)
    project.record()
    result = project.run("--isotest-json=r.json", "--isotest-summary=r.md")
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(
        ["*tiny.toml: 1 model on task:sorting, 60 samples*", "*; path_accuracy over the*"]
    )
    document = json.loads((project.path / "r.json").read_bytes())
    profile = document["entries"][0]["profile"]
    assert profile["layers"][0] == "full"
    assert profile["drift"]["highest"] is None
    assert "path_accuracy (0…1)" in (project.path / "r.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("checks", "says"),
    [
        (
            '[checks.path_accuracy]\nlayers = "full"\nmin = 0.99\n',
            "*::path_accuracy: is 0.* at layer full, below min = 0.99*",
        ),
        (
            '[checks.path_residual]\nlayers = "paths_3.6"\nmin = 0.5\n',
            "*::path_residual: is 0.* at layer paths_3.6, below min = 0.5*",
        ),
        (
            '[checks.long]\nmetric = "path_accuracy"\nlayers = "paths_1.7"\nmax = 1\n',
            "*layers = 'paths_1.7' matches nothing: the model has layers full, paths_1.1-6, *",
        ),
        (
            '[checks.path_share]\nmin = -9\nmax = 9\nminus = "paths_1"\n',
            "*layer full has no partner in paths_1*",
        ),
        (
            '[checks.path_accuracy]\nlayers = "full"\nminus = "paths_2"\nmin = 0\n',
            "*minus = 'paths_2' is no part of the model*",
        ),
    ],
)
def test_what_does_not_hold_is_red(project: Project, checks: str, says: str) -> None:
    write(project, checks)
    result = project.run("-rf")
    assert result.ret == 1
    result.stdout.fnmatch_lines([says])
    result.stdout.no_fnmatch_line("*Traceback*")


def broken(project: Project, how: str) -> None:
    """Spoil the file of weights."""
    file = project.path / "suites" / "w.safetensors"
    if how == "missing":
        file.unlink()
    elif how == "cut short":
        file.write_bytes(file.read_bytes()[:-100])
    elif how == "of the other design":
        write_sorting(file, "modern")
    elif how == "of the circle":
        write_circle(file)
    else:
        tensors = load_file(file)
        tensors["head.bias"][0] = torch.nan
        save_file(tensors, file, metadata={"task": '"sorting"'})


@pytest.mark.parametrize(
    ("how", "says"),
    [
        (
            "missing",
            "*no weights at *w.safetensors; name a file that 'python -m isotest.blocks.tas*",
        ),
        ("cut short", "*w.safetensors: expected a whole safetensors file*"),
        ("of the other design", '*w.safetensors: expected design = "bert", found "modern"*'),
        ("of the circle", '*w.safetensors: expected task = "sorting", found "circle"*'),
        ("NaN", "*w.safetensors: expected finite numbers in head.bias, found NaN*"),
    ],
)
def test_weights_that_cannot_be_used_are_red(project: Project, how: str, says: str) -> None:
    write(project, ACCURATE)
    broken(project, how)
    result = project.run("-rf")
    assert result.ret == 1
    result.stdout.fnmatch_lines([says])
    result.stdout.no_fnmatch_line("*Traceback*")
    for check in ("finite", "path_accuracy"):
        result.stdout.fnmatch_lines([f"FAILED suites/tiny.toml::net::{check}*"])


def test_missing_weights_of_an_optional_entry_are_a_skip(project: Project) -> None:
    absent = NETWORK.replace('"net"', '"absent"').replace("w.s", "absent.s") + "optional = true\n"
    write(project, ACCURATE, NETWORK + absent)
    result = project.run("-rs")
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["SKIPPED *no weights at *absent.safetensors; name a file that*"])


def test_other_weights_are_judged_against_the_baseline(project: Project) -> None:
    """A retrained network is comparable with the old one: that is what a baseline is for."""
    checks = '[checks.path_accuracy]\nlayers = "full"\nbaseline = { margin = 0.01 }\n'
    write(project, checks)
    project.record()
    file = project.path / "suites" / "w.safetensors"
    tensors = {name: x.float() * (name != "head.weight") for name, x in load_file(file).items()}
    save(file, tensors, load(file).metadata)
    result = project.run("-rf")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*::path_accuracy: *layer full*"])
    result.stdout.no_fnmatch_line("*not comparable*")


def test_the_circle_is_green_and_red(project: Project) -> None:
    text = """
modality = "tasks"
[data]
source = "task:circle"
samples = 5
[recurrence]
steps = [0, 1, 10]
[[models]]
name = "net"
source = "task:circle?variant=attention&weights=w.safetensors"
[checks.start]
metric = "pair_distance"
layers = "step.0"
min = 0.599
max = 0.601
"""
    project.write("suites/tiny.toml", text)
    write_circle(project.path / "suites" / "w.safetensors")
    result = project.run()
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["*pair_distance_share over the layers*"])
    project.write(
        "suites/tiny.toml",
        text + '[checks.pair_distance_share]\nlayers = "step.1-10"\nmin = 0.99\nmax = 1.01\n',
    )
    result = project.run("-rf")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*::pair_distance_share: is * at layer step.1*"])
