"""``isotest_profile``: a test of one's own on what the suites beside it measure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plugin.project import RESNET, VIT, hub, net

if TYPE_CHECKING:
    from tests.plugin.project import Project

TEST = """
def test_width(isotest_profile):
    assert isotest_profile.layers[-1].width == 8
    assert isotest_profile.sequences == 12
"""


def test_a_test_runs_once_for_each_model_of_the_suite_beside_it(project: Project) -> None:
    project.suite(net("a"), net("b.1"))
    project.write("suites/test_it.py", TEST)
    result = project.run("suites/test_it.py", "-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["suites/test_it.py::test_width[[]a] PASSED*", "suites/test_it.py::test_width[[]b.1] *"]
    )


def test_with_several_suites_the_ids_say_which(project: Project) -> None:
    project.suite(net("a"), name="one")
    project.suite(net("a"), name="two")
    project.write("suites/test_it.py", TEST)
    result = project.run("suites/test_it.py", "--collect-only", "-q")
    assert [line for line in result.outlines if "::" in line] == [
        "suites/test_it.py::test_width[one-a]",
        "suites/test_it.py::test_width[two-a]",
    ]


def test_checks_and_tests_share_one_measurement(project: Project) -> None:
    """A model is measured once, whoever asks first."""
    text = (project.path / "nets.py").read_text()
    project.write(
        "nets.py", text.replace("return Net()", "open('log', 'a').write('x'); return Net()")
    )
    project.suite(checks="[checks.anisotropy]\nmax = 0.999")
    project.write("suites/test_it.py", TEST)
    result = project.run()
    assert result.ret == 0
    assert (project.path / "log").read_text() == "x"


def test_a_failing_assertion_is_shown_as_pytest_does(project: Project) -> None:
    project.suite()
    project.write("suites/test_it.py", TEST.replace("== 12", "== 13"))
    result = project.run("suites/test_it.py")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["E       *assert 12 == 13*"])


def test_what_is_missing_is_a_skip_where_optional_and_else_a_failure(project: Project) -> None:
    project.suite(net(), hub("a", more="optional = true"), hub("b"))
    project.write("suites/test_it.py", TEST)
    result = project.run("suites/test_it.py", "-rs")
    result.assert_outcomes(passed=1, skipped=1, errors=1)
    result.stdout.fnmatch_lines(["source 'hub:isotest-tests/b': *--isotest-download"])
    result.stdout.fnmatch_lines(["SKIPPED * source 'hub:isotest-tests/a': *--isotest-download"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_stand_in_is_what_the_fixture_gives(project: Project) -> None:
    project.write("other.py", (project.path / "nets.py").read_text())
    project.suite(net())
    project.write(
        "suites/test_it.py",
        "def test_it(isotest_profile):\n"
        "    assert isotest_profile.provenance.source == 'python:other:net'",
    )
    options = ("suites/test_it.py", "--isotest-model", "net=python:other:net")
    assert project.run(*options).ret == 0


def test_without_a_suite_beside_the_test_one_message_says_so(project: Project) -> None:
    project.suite()
    project.write("tests/test_it.py", TEST)
    result = project.run("tests")
    assert result.ret == 2
    result.stdout.fnmatch_lines(
        ["tests/test_it.py::test_width uses isotest_profile, and no suite (*.toml) is beside it*"]
    )
    result.stdout.no_fnmatch_line("*_manager.py*")


def test_a_faulty_suite_beside_the_test_is_one_message(project: Project) -> None:
    project.write("tests/a.toml", 'modality = "vison"')
    project.write("tests/test_it.py", TEST)
    result = project.run("tests/test_it.py")
    assert result.ret == 2
    result.stdout.fnmatch_lines(
        ["tests/a.toml:1: modality = 'vison': expected 'vision', 'text', *"]
    )
    result.stdout.no_fnmatch_line("*_manager.py*")


@pytest.mark.parametrize("flag", [(), ("--collect-only",)])
def test_other_tests_of_the_file_do_not_need_the_flag(
    project: Project, flag: tuple[str, ...]
) -> None:
    project.write("tests/test_it.py", TEST + "\ndef test_other(): pass")
    project.plain(*flag).stdout.fnmatch_lines(["*1 passed, 1 error*" if not flag else "*2 tests*"])


def test_with_workers(project: Project) -> None:
    project.suite(VIT, RESNET)
    project.write("suites/test_it.py", TEST.replace("layers[-1].width == 8", "layers"))
    project.record("suites/tiny.toml")
    assert project.run().ret == 0
    result = project.distributed()
    result.assert_outcomes(passed=9)
