"""Without ``--isotest`` an unrelated run does not notice that the plugin is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.project import Project


def test_nothing_is_imported_that_costs_time(project: Project) -> None:
    project.write(
        "tests/test_it.py",
        """
import sys

def test_it():
    heavy = {"torch", "transformers", "timm", "datasets", "numpy", "scipy", "pydantic", "PIL"}
    assert not heavy & set(sys.modules)
    own = {name for name in sys.modules if name.partition(".")[0] == "isotest"}
    assert own == {"isotest", "isotest.plugin", "isotest.plugin.options"}
""",
    )
    result = project.pytester.run(*project.command("tests"))
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize("arguments", [(), ("suites",), (".",)])
def test_no_suite_is_collected(project: Project, arguments: tuple[str, ...]) -> None:
    project.suite()
    project.write("suites/test_it.py", "def test_it(): pass")
    result = project.plain(*arguments)
    assert result.ret == 0
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*isotest *=*")


@pytest.mark.parametrize("suffix", ["", "::net", "::net::finite"])
def test_a_suite_that_is_named_says_in_one_line_what_is_missing(
    project: Project, suffix: str
) -> None:
    project.suite()
    result = project.plain(f"suites/tiny.toml{suffix}")
    assert result.ret == 4
    (line,) = (line for line in result.errlines if line)
    assert line == (
        f"ERROR: suites/tiny.toml{suffix} is an isotest suite: "
        "add --isotest to measure and gate its models"
    )


def test_tests_that_are_no_gates_run_beside_suites_with_the_flag(project: Project) -> None:
    project.suite()
    project.write("tests/test_it.py", "def test_it(): pass\ndef test_other(): assert 0")
    project.record()
    result = project.run("tests", "suites")
    result.assert_outcomes(passed=6, failed=1)
    result = project.distributed("tests")
    result.assert_outcomes(passed=1, failed=1)


def test_pyproject_is_no_suite(project: Project) -> None:
    project.suite()
    project.write("suites/pyproject.toml", "[project]\nname = 'x'")
    project.record()
    assert project.run().ret == 0


def test_a_gate_works_without_pytest_xdist(project: Project) -> None:
    project.suite()
    project.record()
    assert project.run("-p", "no:xdist").ret == 0
    assert project.run("-p", "no:xdist", "--isotest-dtype", "float64").ret == 1
