"""Node ids, markers, filters, and paths of every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plugin.project import VIT, net, write_images

if TYPE_CHECKING:
    from tests.plugin.project import Project

TWO_CHECKS = """
[checks.anisotropy]
max = 0.999
[checks.mean_norm]
max = 99.0
"""


def collected(project: Project, *options: str) -> list[str]:
    result = project.run("--collect-only", "-q", *options)
    return [line for line in result.outlines if "::" in line]


def test_node_ids_are_suite_model_check_in_the_order_of_the_file(project: Project) -> None:
    project.suite(net("b"), net("a"), checks=TWO_CHECKS)
    ids = [
        f"suites/tiny.toml::{model}::{check}"
        for model in ("b", "a")
        for check in ("finite", "anisotropy", "mean_norm")
    ]
    assert collected(project) == ids
    for nodeid in ids:
        assert collected(project, nodeid) == [nodeid]
    assert collected(project, "suites/tiny.toml::a") == ids[3:]


def test_collecting_measures_and_writes_nothing(project: Project) -> None:
    project.suite(net("a", "python:nowhere:net"))
    before = sorted(project.path.rglob("*"))
    result = project.run("--collect-only", "--isotest-update=all", "--isotest-json=x.json")
    assert result.ret == 0
    assert sorted(project.path.rglob("*")) == before
    assert list(project.cache.rglob("*")) == []


def test_collecting_prunes_nothing(project: Project) -> None:
    project.suite()
    stray = project.write("baselines/tiny/b.json", "{}")
    project.run("--collect-only", "--isotest-prune")
    assert stray.exists()


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (("-m", "isotest_init"), {"vit"}),
        (("-m", "isotest_python"), {"net"}),
        (("-m", "isotest_vision"), {"vit", "net"}),
        (("-m", "isotest_vision and not isotest_init"), {"net"}),
        (("-m", "isotest_hub"), set()),
        (("-k", "vit"), {"vit"}),
        (("-k", "tiny and not vit"), {"net"}),
    ],
)
def test_markers_and_keywords_choose_entries(
    project: Project, options: tuple[str, ...], kept: set[str]
) -> None:
    project.suite(VIT, net())
    project.ini("addopts = --strict-markers --strict-config")
    assert {nodeid.split("::")[1] for nodeid in collected(project, *options)} == kept


def test_a_filter_that_leaves_the_limits_out_is_still_a_gate(project: Project) -> None:
    """``finite`` alone is what was asked for; a check that is asked for compares."""
    project.suite(net("a"), net("b"), checks=TWO_CHECKS)
    result = project.run("-k", "finite")
    assert result.ret == 0
    result.assert_outcomes(passed=4, deselected=4)
    result = project.run("-k", "mean_norm and b")
    assert result.ret == 0
    result.assert_outcomes(passed=3, deselected=5)


def test_a_filter_records_what_it_chooses(project: Project) -> None:
    project.suite(net("a"), net("b"))
    assert project.run("-k", "b", "--isotest-update=missing").ret == 0
    assert list(project.baselines()) == ["tiny/b.json"]


@pytest.mark.parametrize(
    "folder", ["with space", "v1.2/model.toml", "größe", "日本", "a'b", "$x;y", "UPPER"]
)
def test_paths_of_every_kind(project: Project, folder: str) -> None:
    """Suite, images and model names with spaces, dots, quotes and letters beyond ASCII."""
    write_images(project.path / "suites" / folder / "imgs ü.1")
    name = f"{folder}/suite 1.0 é"
    model = "net 1.0 (ü)"
    project.suite(net(model), name=name, data='source = "folder:imgs ü.1"')
    red = project.run("--junitxml=j.xml")
    assert red.ret == 1
    project.record()
    assert len(project.baselines()) == 1
    assert all(path.isascii() for path in project.baselines())
    nodeid = f"suites/{name}.toml::{model}::anisotropy"
    result = project.run("-v", nodeid)
    assert result.ret == 0
    result.assert_outcomes(passed=4)


def test_the_command_in_a_message_is_quoted_for_the_shell(project: Project) -> None:
    import shlex

    project.suite(net("net 1 (ü)"), name="with space, a'b")
    result = project.run()
    (line,) = (line for line in result.outlines if "record one: " in line)
    command = shlex.split(line.partition("record one: ")[2])
    assert command[0] == "pytest"
    assert project.plain(*command[1:]).ret == 0
    assert project.run().ret == 0


def test_a_suite_outside_of_the_suites_folder(project: Project) -> None:
    project.suite(name="../elsewhere/own")
    assert project.run("elsewhere", "--isotest-update=missing").ret == 0
    assert list(project.baselines()) == ["elsewhere/own/net.json"]
    assert project.run("elsewhere/own.toml").ret == 0


def test_from_another_folder(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.suite()
    project.record()
    monkeypatch.chdir(project.path / "suites")
    assert project.run("tiny.toml").ret == 0
    assert project.run().ret == 0
    result = project.run("--isotest-json", "out.json")
    assert result.ret == 0
    assert (project.path / "suites" / "out.json").exists()
