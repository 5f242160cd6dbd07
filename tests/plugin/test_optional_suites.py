"""A suite of optional entries alone, none of which is here: skipped, but never a green run."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from tests.plugin.project import Project, hub, net

LIMIT = "[checks.anisotropy]\nmax = 0.999"
OPTIONAL = "optional = true"


@pytest.mark.parametrize("run", ["run", "distributed"])
def test_beside_a_suite_that_was_evaluated_it_is_skipped_and_said(
    project: Project, run: str
) -> None:
    project.suite(net(), checks=LIMIT)
    project.suite(hub("a", OPTIONAL), hub("b", OPTIONAL), name="claims", checks=LIMIT)
    result = getattr(project, run)("--isotest-json=r.json", "--junitxml=j.xml", "-rs")
    assert result.ret == 0
    # The limit, finite and two findings of one suite; of the other what is missing, and a finding.
    result.assert_outcomes(passed=5, skipped=5)
    text = result.stdout.str()
    assert (
        "suite skipped: suites/claims.toml: nothing in it was evaluated: every one of its 2" in text
    )
    for model in ("a", "b"):
        assert f"isotest-tests/{model} is not in the Hugging Face cache" in text
    assert "--isotest-download" in text
    findings = json.loads((project.path / "r.json").read_text())["findings"]
    (skipped,) = [finding for finding in findings if finding["skipped"]]
    assert skipped["id"] == "suites/claims.toml::(suite)::evaluated"
    cases = ET.parse(project.path / "j.xml").getroot().iter("testcase")
    (case,) = [
        case
        for case in cases
        if case.get("name") == "evaluated" and "claims" in str(case.get("classname"))
    ]
    (child,) = case
    assert child.tag == "skipped"


def test_a_run_of_nothing_else_is_red(project: Project) -> None:
    project.suite(hub("a", OPTIONAL), name="claims", checks=LIMIT)
    project.suite(hub("a", OPTIONAL), name="more", checks=LIMIT)
    result = project.run()
    assert result.ret == 1
    result.assert_outcomes(skipped=4, failed=2, passed=2)


@pytest.mark.parametrize("selected", [["suites"], ["suites/tiny.toml", "suites/claims.toml::a"]])
def test_one_entry_that_is_not_optional_makes_a_suite_red_run_or_not(
    project: Project, selected: list[str]
) -> None:
    project.suite(net(), checks=LIMIT)
    project.suite(hub("a", OPTIONAL), hub("b"), name="claims", checks=LIMIT)
    result = project.run("--isotest-allow-skips", *selected)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["suites/claims.toml: no check compared anything*"])


def test_an_evaluation_of_finite_alone_excuses_nothing(project: Project) -> None:
    """That numbers are finite says nothing about a model's geometry."""
    project.suite(net(), checks=LIMIT)
    project.suite(hub("a", OPTIONAL), name="claims", checks=LIMIT)
    result = project.run("suites/tiny.toml::net::finite", "suites/claims.toml")
    assert result.ret == 1


def test_an_entry_that_fails_is_not_skipped(project: Project) -> None:
    project.suite(net(), checks=LIMIT)
    broken = net("broken", "python:nets:nothing", more=OPTIONAL)
    project.suite(hub("a", OPTIONAL), broken, name="claims", checks=LIMIT)
    result = project.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["suites/claims.toml: no check compared anything*"])


def test_one_evaluated_entry_makes_the_suite_an_ordinary_one(project: Project) -> None:
    project.suite(net(more=OPTIONAL), hub("a", OPTIONAL), checks=LIMIT)
    result = project.run()
    assert result.ret == 0
    assert "suite skipped" not in result.stdout.str()
