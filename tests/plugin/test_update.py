"""``--isotest-update`` and ``--isotest-prune``: who may write, what is written, what is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plugin.project import GATED, net

if TYPE_CHECKING:
    from tests.plugin.project import Project

OTHER = """

def other():
    model = Net()
    model.stem.bias.data.add_(1.0)
    return model
"""


def change_the_model(project: Project) -> None:
    """``net`` becomes a model whose anisotropy is far beyond the margin."""
    text = (project.path / "nets.py").read_text()
    project.write("nets.py", text.replace("return Net()", "return other()") + OTHER)


def test_missing_writes_what_is_missing_and_nothing_else(project: Project) -> None:
    project.suite(net("a"))
    project.record()
    before = project.baselines()
    project.suite(net("a"), net("b"))
    result = project.run("--isotest-update=missing")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["recorded baselines/tiny/b.json"])
    after = project.baselines()
    assert sorted(after) == ["tiny/a.json", "tiny/b.json"]
    assert after["tiny/a.json"] == before["tiny/a.json"]


def test_missing_still_gates_the_entries_that_have_a_baseline(project: Project) -> None:
    project.suite()
    project.record()
    before = project.baselines()
    change_the_model(project)
    assert project.run("--isotest-update=missing").ret == 1
    assert project.baselines() == before


def test_failing_writes_what_fails_and_says_what_changes(project: Project) -> None:
    project.write("same.py", (project.path / "nets.py").read_text())
    project.suite(net(), net("same", "python:same:net"))
    project.record()
    before = project.baselines()
    change_the_model(project)
    result = project.run("--isotest-update=failing")
    assert result.ret == 0, "the wish to record is the wish to accept"
    result.stdout.fnmatch_lines(
        ["recorded anew baselines/tiny/net.json", "    anisotropy at layer 0: * → *"]
    )
    result.stdout.no_fnmatch_line("*recorded*same.json")
    after = project.baselines()
    assert after["tiny/same.json"] == before["tiny/same.json"]
    assert after["tiny/net.json"] != before["tiny/net.json"]
    assert project.run().ret == 0


def test_failing_replaces_a_baseline_that_cannot_be_read(project: Project) -> None:
    project.suite()
    project.record()
    project.baseline().write_text("{")
    assert project.run().ret == 1
    assert project.run("--isotest-update=failing").ret == 0
    assert project.run().ret == 0


def test_all_writes_every_entry_and_says_that_nothing_changed(project: Project) -> None:
    project.suite()
    project.record()
    result = project.run("--isotest-update=all")
    assert result.ret == 0
    assert "recorded anew baselines/tiny/net.json" in result.outlines
    result.stdout.no_fnmatch_line("* at layer *")


def test_a_gate_run_writes_nothing_but_its_cache(project: Project) -> None:
    project.suite()
    project.record()
    before = {path for path in project.path.rglob("*") if "__pycache__" not in path.parts}
    assert project.run().ret == 0
    after = {path for path in project.path.rglob("*") if "__pycache__" not in path.parts}
    assert after == before


def test_nothing_is_recorded_that_does_not_reproduce(project: Project) -> None:
    text = (project.path / "nets.py").read_text()
    project.write("nets.py", text.replace("torch.manual_seed(seed)", "torch.seed()"))
    project.suite()
    result = project.run("--isotest-update=missing")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["*'net' is not recorded: measured twice*", "*anisotropy at layer*", "*must reproduce*"]
    )
    assert project.baselines() == {}


def test_a_stand_in_is_never_recorded(project: Project) -> None:
    project.suite()
    result = project.run("--isotest-update=all", "--isotest-model", "net=python:nets:net")
    assert result.ret == 1
    assert project.baselines() == {}


@pytest.mark.parametrize("option", ["--isotest-update=all", "--isotest-prune"])
def test_writing_is_refused_in_ci(
    project: Project, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    project.suite()
    result = project.run(option)
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"ERROR: {option} would change baselines, and CI is set*"])
    assert project.baselines() == {}
    assert project.run().ret == 1, "a gate runs there, and is red without baselines"


def test_writing_in_ci_can_be_allowed(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    project.suite()
    assert project.run("--isotest-update=all", "--isotest-allow-ci-writes").ret == 0
    assert list(project.baselines()) == ["tiny/net.json"]


def test_prune_removes_what_no_entry_claims(project: Project) -> None:
    project.suite(net("a"), net("b"), net("c"))
    project.suite(net("d"), name="gone")
    project.record()
    (project.path / "suites" / "gone.toml").unlink()
    limits = "[models.checks.anisotropy]\nmax = 0.999"
    project.suite(net("a"), net("c", more=limits))
    result = project.run("--isotest-prune")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "removed baselines/gone/d.json",
            "removed baselines/tiny/b.json",
            "removed baselines/tiny/c.json",
        ]
    )
    assert list(project.baselines()) == ["tiny/a.json"]
    assert not (project.path / "baselines" / "gone").exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("-k", "a"), "-k"),
        (("-m", "isotest_vision"), "-m"),
        (("--isotest-model", "a=python:nets:net"), "--isotest-model"),
        (("suites/tiny.toml",), "only some suites were named"),
        (("suites/tiny.toml::a",), "only some suites were named"),
        (("--deselect", "suites/tiny.toml::b"), "--deselect"),
    ],
)
def test_prune_is_refused_on_part_of_the_suites(
    project: Project, options: tuple[str, ...], reason: str
) -> None:
    project.suite(net("a"))
    stray = project.write("baselines/tiny/b.json", "{}")
    result = project.run("--isotest-prune", *options)
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"ERROR: --isotest-prune *full, unfiltered run*({reason})*"])
    assert stray.exists()


@pytest.mark.parametrize("path", [(), ("suites",)])
def test_recording_and_pruning_go_together_and_with_workers(
    project: Project, path: tuple[str, ...]
) -> None:
    project.suite(net("a"), checks=GATED)
    stray = project.write("baselines/tiny/b.json", "{}")
    run = project.run if path else project.distributed
    result = run("--isotest-update=missing", "--isotest-prune", *path)
    assert result.ret == 0
    assert {"recorded baselines/tiny/a.json", "removed baselines/tiny/b.json"} <= {*result.outlines}
    assert not stray.exists()


def test_prune_spares_the_baselines_of_suites_elsewhere(project: Project) -> None:
    """A suite beside tests is no part of a full run of the suites folder, and still claims."""
    project.suite(net("a"))
    project.suite(net("b"), net("c"), name="../tests/own")
    assert project.run("suites", "tests", "--isotest-update=missing").ret == 0
    project.suite(net("b"), name="../tests/own")
    assert project.run("--isotest-prune").ret == 0
    assert sorted(project.baselines()) == ["tests/own/b.json", "tiny/a.json"]
    (project.path / "tests" / "own.toml").unlink()
    assert project.run("--isotest-prune").ret == 0
    assert sorted(project.baselines()) == ["tiny/a.json"]


def test_nothing_is_pruned_while_a_suite_cannot_be_read(project: Project) -> None:
    project.suite(net("a"))
    project.write("suites/broken.toml", "modality = ")
    stray = project.write("baselines/tiny/b.json", "{}")
    assert project.run("--isotest-prune").ret == 2
    result = project.run("--isotest-prune", "--continue-on-collection-errors")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["FAILED suites::(suite)::pruned - suites/broken.toml:1: no valid*"]
    )
    assert stray.exists()


def test_a_baseline_whose_suite_is_gone_is_red_on_a_full_run(project: Project) -> None:
    project.suite(net())
    gone = project.suite(net(), name="gone")
    project.record()
    gone.unlink()
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["*1 baseline file(s) that no gated entry claims*", "*baselines/gone/net.json*"]
    )
    assert project.run("suites/tiny.toml").ret == 0
    assert project.run("--isotest-prune").ret == 0
    assert project.run().ret == 0
