"""The JUnit file, as other programs read it.

Rules that readers impose, each checked here on every file:

- well-formed XML 1.0 without characters that XML 1.0 forbids (any reader: one such byte, and the
  whole file is refused);
- ``testsuite`` has ``tests``, ``failures``, ``errors``, ``skipped`` equal to what its elements say
  (Jenkins' and GitLab's totals come from one or the other);
- ``testcase`` has a ``classname`` and a ``name``, neither empty (Jenkins groups by the part of
  ``classname`` before the last dot, GitLab shows both);
- (``classname``, ``name``) is unique in the file (both follow a test from run to run by it; a
  repeated one overwrites the first);
- ``time`` is a plain non-negative decimal number (Jenkins' parser takes no exponent, no comma);
- ``failure`` has a ``message`` attribute, on one line, and a text (Jenkins shows the first as
  title, GitLab the second as output);
- a testcase has at most one of ``failure``, ``error``, ``skipped``;
- GitLab reads ``classname``, ``name``, ``time``, ``file`` and the texts, and needs ``file``, where
  present, to be a relative path;
- ``property`` has ``name`` and ``value`` (Jenkins keeps them, GitLab skips them).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from junitparser import Failure, JUnitXml, Skipped, TestCase, TestSuite

from tests.plugin.project import RESNET, VIT, hub

if TYPE_CHECKING:
    from pathlib import Path

    from tests.plugin.project import Project

FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read(path: Path, ret: int) -> dict[str, TestCase]:
    """Testcases by their whole name, after checking the rules and that the counts say ``ret``."""
    text = path.read_text(encoding="utf-8")
    assert not FORBIDDEN.search(text)
    ElementTree.fromstring(text)
    (suite,) = JUnitXml.fromfile(str(path))
    assert isinstance(suite, TestSuite)
    cases = list(suite)
    results = [result for case in cases for result in case.result]
    assert suite.tests == len(cases)
    assert suite.failures == sum(isinstance(result, Failure) for result in results)
    assert suite.skipped == sum(isinstance(result, Skipped) for result in results)
    assert suite.errors == len(results) - suite.failures - suite.skipped
    assert (suite.failures + suite.errors > 0) == (ret != 0)
    named = {f"{case.classname}::{case.name}": case for case in cases}
    assert len(named) == len(cases)
    for case in cases:
        assert case.classname
        assert case.name
        assert len(case.result) <= 1
        time = case._elem.get("time")
        assert time is not None
        assert re.fullmatch(r"\d+(\.\d+)?", time)
        file = case._elem.get("file")
        assert file is None or not file.startswith(("/", ".."))
        for result in case.result:
            assert result.message
            assert "\n" not in result.message
            assert isinstance(result, Skipped) or result.text
        for each in case._elem.iter("property"):
            assert each.get("name")
            assert each.get("value") is not None
    return named


def properties(case: TestCase) -> dict[str, str]:
    """Which junitparser itself reads for suites only."""
    return {each.get("name"): each.get("value") for each in case._elem.iter("property")}


@pytest.fixture
def gated(project: Project) -> Project:
    """Two entries that are green, measured into the cache, and one that is skipped."""
    project.suite(VIT, RESNET, hub(more="optional = true"))
    project.record()
    assert project.run().ret == 0
    return project


def test_one_testcase_a_check_and_one_a_finding(gated: Project) -> None:
    result = gated.run("--junitxml=j.xml")
    cases = read(gated.path / "j.xml", result.ret)
    assert sorted(cases) == [
        "suites.tiny.toml.(suite)::baselines",
        "suites.tiny.toml.(suite)::evaluated",
        "suites.tiny.toml.(suite)::family-wise",
        "suites.tiny.toml.absent::anisotropy",
        "suites.tiny.toml.absent::finite",
        "suites.tiny.toml.resnet::anisotropy",
        "suites.tiny.toml.resnet::finite",
        "suites.tiny.toml.vit::anisotropy",
        "suites.tiny.toml.vit::finite",
    ]
    (skipped,) = cases["suites.tiny.toml.absent::finite"].result
    assert "isotest-tests/absent is not in the Hugging Face cache" in skipped.message


def test_the_measured_values_are_properties(gated: Project) -> None:
    result = gated.run("--junitxml=j.xml")
    cases = read(gated.path / "j.xml", result.ret)
    values = properties(cases["suites.tiny.toml.resnet::anisotropy"])
    assert values["isotest_outcome"] == "passed"
    assert float(values["sequences"]) == 12
    assert float(values["max"]) == 0.999
    assert float(values["margin"]) == 0.02
    assert 0 < float(values["value"]) < 1
    assert float(values["value"]) - float(values["baseline"]) == pytest.approx(
        float(values["change"]), abs=1e-12
    )
    layers = dict(pair.split(":") for pair in values["values"].split())
    assert list(layers) == ["0", "1", "2"]
    assert all(0 < float(value) < 1 for value in layers.values())


def test_workers_write_the_same_file(gated: Project) -> None:
    files = []
    for run in (gated.run, gated.distributed):
        result = run("--junitxml=j.xml")
        cases = read(gated.path / "j.xml", result.ret)
        files.append({name: properties(case) for name, case in sorted(cases.items())})
    assert files[0] == files[1]


@pytest.mark.parametrize("family", ["xunit1", "xunit2"])
def test_a_red_file_says_why(gated: Project, family: str) -> None:
    gated.suite(VIT, checks="[checks.anisotropy]\nmax = -1.0\n[checks.mean_norm]\nmin = 0.0")
    result = gated.run("--junitxml=j.xml", "-o", f"junit_family={family}")
    assert result.ret == 1
    cases = read(gated.path / "j.xml", result.ret)
    (failure,) = cases["suites.tiny.toml.vit::anisotropy"].result
    assert isinstance(failure, Failure)
    assert re.fullmatch(r"is \S+ at layer \S+, above max = -1", failure.message)
    assert "layer" in failure.text
    assert "pytest --isotest suites/tiny.toml::vit::anisotropy" in failure.text
    assert properties(cases["suites.tiny.toml.vit::anisotropy"])["isotest_outcome"] == "failed"
    assert not cases["suites.tiny.toml.vit::mean_norm"].result
    (unclaimed,) = cases["suites.tiny.toml.(suite)::baselines"].result
    assert "baselines/tiny/resnet.json" in unclaimed.text


@pytest.mark.parametrize("run", ["run", "distributed"])
def test_failures_of_findings_alone_are_counted_as_the_exit_code_is(
    project: Project, run: str
) -> None:
    """Where every check is skipped, only the suite-level finding is red."""
    project.suite(hub("a", more="optional = true"), hub("b", more="optional = true"))
    result = getattr(project, run)("--junitxml=j.xml")
    assert result.ret == 1
    cases = read(project.path / "j.xml", result.ret)
    (failure,) = cases["suites.tiny.toml.(suite)::evaluated"].result
    assert failure.message
    red = [n for n, case in cases.items() if any(isinstance(r, Failure) for r in case.result)]
    assert red == ["suites.tiny.toml.(suite)::evaluated"]


def test_a_recording_and_a_report_that_fails_are_testcases(project: Project) -> None:
    project.suite(VIT)
    options = ("--isotest-update=all", "--isotest-json=nowhere/x.json", "--junitxml=j.xml")
    result = project.run(*options)
    assert result.ret == 1
    cases = read(project.path / "j.xml", result.ret)
    assert not cases["suites.tiny.toml.vit::recorded"].result
    assert cases["x.json.(report)::written"].result


def test_a_collection_error_is_an_error_in_the_file(project: Project) -> None:
    project.write("suites/broken.toml", "modality = ")
    result = project.run("--junitxml=j.xml")
    assert result.ret == 2
    (suite,) = JUnitXml.fromfile(str(project.path / "j.xml"))
    assert suite.errors == 1


def test_names_that_xml_reserves_and_control_characters_in_messages(project: Project) -> None:
    project.write(
        "odd.py", "def model():\n    raise RuntimeError('a \\x00 \\x1b[31m <b> & \\ud800 ü')"
    )
    project.suite(
        VIT.replace('"vit"', "'a <b> & \"é\"'"),
        '\n[[models]]\nname = "odd"\nsource = "python:odd:model"\n',
    )
    result = project.run("--junitxml=j.xml")
    assert result.ret == 1
    cases = read(project.path / "j.xml", result.ret)
    assert 'suites.tiny.toml.a <b> & "é"::finite' in cases
    assert "raised RuntimeError" in cases["suites.tiny.toml.odd::finite"].result[0].message
