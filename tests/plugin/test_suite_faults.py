"""A faulty suite: file, line, what was expected; nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plugin.project import net

if TYPE_CHECKING:
    from tests.plugin.project import Project

FAULTS = [
    ("max = 0.999", "maks = 0.999", 6, "unknown key 'maks' in [checks.anisotropy]; known: "),
    ("anisotropy]", "anisotropi]", 5, "unknown check 'anisotropi'; did you mean 'anisotropy'"),
    ("python:nets", "pyton:nets", 12, "unknown scheme 'pyton'; did you mean 'python'"),
    ("folder:", "fodler:", 3, "unknown scheme 'fodler'; did you mean 'folder'"),
    ('modality = "vision"', "modality = vision", 1, "no valid TOML: "),
    ("size = 32", "sise = 32", 13, "'sise' in [models.preprocess]; did you mean 'size'"),
    ('name = "net"', 'name = "a/b"', 11, "the name 'a/b' contains '/'"),
    ('name = "net"', 'name = "net[1]"', 11, "the name 'net[1]' contains '['"),
]


@pytest.mark.parametrize(("right", "wrong", "line", "message"), FAULTS)
def test_a_fault_is_one_line_with_its_place(
    project: Project, right: str, wrong: str, line: int, message: str
) -> None:
    path = project.suite()
    text = path.read_text()
    assert right in text
    path.write_text(text.replace(right, wrong))
    result = project.run()
    assert result.ret == 2
    (found,) = (each for each in result.outlines if each.startswith("suites/tiny.toml:"))
    assert found.startswith(f"suites/tiny.toml:{line}: ")
    assert message in found
    for tracebacks in ("*Traceback*", "*.py:*", "*Error:*"):
        result.stdout.no_fnmatch_line(tracebacks)


def test_all_faults_of_a_file_are_told_at_once(project: Project) -> None:
    path = project.suite()
    text = path.read_text()
    for right, wrong, *_ in FAULTS[:3]:
        text = text.replace(right, wrong)
    path.write_text(text)
    result = project.run()
    result.stdout.fnmatch_lines(
        [
            "suites/tiny.toml:5: *anisotropi*",
            "suites/tiny.toml:6: *maks*",
            "suites/tiny.toml:12: *pyton*",
        ]
    )


def test_a_faulty_suite_stops_the_healthy_ones_beside_it(project: Project) -> None:
    """As pytest does with any file that it cannot collect; and the exit code is not that of 5."""
    project.suite(name="a")
    project.write("suites/b.toml", "[checks]")
    result = project.run()
    assert result.ret == 2
    result.assert_outcomes(errors=1)


def test_a_faulty_suite_is_one_message_with_workers(project: Project) -> None:
    project.write("suites/b.toml", "[checks]")
    result = project.distributed()
    assert result.ret not in (0, 3, 5)
    result.stdout.fnmatch_lines(["suites/b.toml: 'modality' is missing*"])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_a_toml_file_that_is_no_suite_is_an_error(project: Project) -> None:
    """A gate that is misspelt down to the tables must not vanish."""
    project.suite(name="a")
    project.write("suites/b.toml", "[tool.x]\ny = 1")
    result = project.run()
    assert result.ret == 2
    result.stdout.fnmatch_lines(["suites/b.toml: no isotest suite: expected*"])


def test_an_empty_suites_folder_is_not_green(project: Project) -> None:
    (project.path / "suites").mkdir()
    assert project.run().ret == 5


def test_a_node_id_that_does_not_exist(project: Project) -> None:
    project.suite(net("a"))
    for nodeid in ("suites/tiny.toml::b", "suites/tiny.toml::a::anisotropi"):
        result = project.run(nodeid)
        assert result.ret == 4
        result.stderr.fnmatch_lines([f"ERROR: not found: *{nodeid}"])


def test_suites_that_junit_could_not_tell_apart_are_refused(project: Project) -> None:
    # JUnit's classname joins folders by dots.
    project.suite(name="a.b")
    project.suite(name="a/b")
    result = project.run()
    assert result.ret == 2
    result.stdout.fnmatch_lines(["*is the same as * in JUnit, where folders are joined by dots*"])
