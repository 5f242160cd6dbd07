"""The recipe for a metric in a package of one's own, followed word for word; and its faults."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from isotest.cli import main
from isotest.entry import Settings, measure_entry
from isotest.profile_json import read_profile
from isotest.statistics.registry import METRICS
from isotest.statistics.registry.installed import Registry
from isotest.suite import load_suite
from tests.plugin.project import NETS, VIT, net
from tests.plugin.test_junit import read

if TYPE_CHECKING:
    from tests.plugin.project import Project

RECIPE = Path(__file__).parents[2] / "docs" / "recipes" / "metric.md"
CHANGED = NETS.replace(
    "return Net()", "net = Net()\n    net.stem.bias.data.add_(2.0)\n    return net"
)


def recipe() -> dict[str, str]:
    """The files of the recipe's package, and the suite's checks, by name."""
    text = RECIPE.read_text(encoding="utf-8")
    block = re.compile(r"^In (a suite|`([^`]+)`).*?^```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return {name or where: content for where, name, content in block.findall(text)}


def install(project: Project, points: dict[str, str], files: dict[str, str]) -> Path:
    """A folder as pip would leave it, to be put on the import path."""
    information = "site/odd_metrics-1.0.dist-info"
    lines = "\n".join(f"{name} = {value}" for name, value in points.items())
    project.write(f"{information}/entry_points.txt", f"[isotest.metrics]\n{lines}\n")
    metadata = "Metadata-Version: 2.4\nName: odd-metrics\nVersion: 1.0\n"
    project.write(f"{information}/METADATA", metadata)
    for name, text in files.items():
        project.write(f"site/{name}", text)
    return project.path / "site"


def find(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs see what is installed there: of a process of their own, and of this one."""
    len(METRICS)
    forget(monkeypatch)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.syspath_prepend(folder)
    for module in [name for name in sys.modules if name.partition(".")[0] == "odd_metrics"]:
        monkeypatch.delitem(sys.modules, module)


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry looks anew, as that of a new process would; afterwards it is as before."""
    monkeypatch.delitem(vars(METRICS), "_all")


@pytest.fixture
def package(project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = recipe()
    points = tomllib.loads(files["pyproject.toml"])["project"]["entry-points"]["isotest.metrics"]
    modules = {name: text for name, text in files.items() if name.endswith(".py")}
    folder = install(project, points, modules)
    find(folder, monkeypatch)
    return folder


def isotest(project: Project, *arguments: str) -> pytest.RunResult:
    command = (sys.executable, "-m", "isotest.cli", *arguments)
    return project.pytester.run(*command, timeout=60)


def test_the_recipe_from_entry_point_to_report(
    project: Project, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = project.suite(checks=recipe()["a suite"])

    project.record()
    for layer in read_profile(project.baseline(), remedy="").layers:
        share, length = (layer.estimates[name] for name in ("odd_share", "median_norm"))
        assert share.value is not None
        assert 0 < share.value < 1
        assert share.se is not None
        # 12 images of 32 × 32 in patches of 8 × 8.
        assert length.basis == "all 192 representations"

    green = project.run("--junitxml=green.xml")
    assert green.ret == 0, green.stdout.str()
    green.assert_outcomes(passed=6)
    cases = read(project.path / "green.xml", green.ret)
    assert {name.rpartition("::")[2] for name in cases} > {"odd_share", "median_norm"}

    project.write("nets.py", CHANGED)
    red = project.run("--junitxml=red.xml", "--isotest-json=red.json")
    assert red.ret == 1
    red.stdout.fnmatch_lines(["*odd_share*layer 0*"])
    cases = read(project.path / "red.xml", red.ret)
    (case,) = (case for name, case in cases.items() if name.endswith("net::odd_share"))
    assert "at layer 0" in case.result[0].message
    report = (project.path / "red.json").read_text()
    assert '"odd_share"' in report
    assert '"median_norm"' in report

    shown = isotest(project, "show", str(project.baseline()), "--metric", "odd_share")
    assert shown.ret == 0
    shown.stdout.fnmatch_lines(["*odd_share*"])

    (package / "odd_metrics-1.0.dist-info" / "entry_points.txt").unlink()
    forget(monkeypatch)
    gone = project.run()
    assert gone.ret == 2
    gone.stdout.fnmatch_lines([f"suites/{path.name}:*unknown check 'odd_share'*"])
    # A baseline that was recorded with it is still a file to look at.
    assert isotest(project, "show", str(project.baseline()), "--metric", "odd_share").ret == 0


def test_editors_know_it_and_committed_pages_do_not(project: Project, package: Path) -> None:
    schema = json.loads(isotest(project, "schema").stdout.str())
    checks = schema["properties"]["checks"]
    while "$ref" in checks:
        checks = schema["$defs"][checks["$ref"].rpartition("/")[2]]
    assert "odd_share" in checks["properties"]
    generate = RECIPE.parents[1] / "generate.py"
    code = f"import runpy; print(runpy.run_path({str(generate)!r})['metrics']())"
    table = project.pytester.run(sys.executable, "-c", code).stdout.str()
    assert "`anisotropy`" in table
    assert "`odd_share`" not in table


METRIC = """
from isotest.statistics.metric import Metric

ODD = Metric("odd", "-", "up", 0.1, "odd_metrics.none:None", "-")
TAKEN = Metric("anisotropy", "-", "up", 0.1, "odd_metrics.none:None", "-")
SHARE_OF_NOTHING = Metric("share", "-", "up", 0.1, "a:A", "-", floor_scale="lengt")
NOT_ONE = "odd"
"""

FAULTS = [
    (
        "odd",
        "odd_metrics:GONE",
        "cannot be imported: AttributeError: module 'odd_metrics' has no attribute 'GONE'",
    ),
    (
        "odd",
        "odd_metric:ODD",
        "cannot be imported: ModuleNotFoundError: No module named 'odd_metric'",
    ),
    ("odd", "odd_metrics.broken:ODD", "cannot be imported: ZeroDivisionError: division by zero"),
    ("odd", "odd_metrics:NOT_ONE", "expected an isotest.statistics.metric.Metric, found str"),
    ("even", "odd_metrics:ODD", "expected the metric 'even', found 'odd'; name the entry point"),
    ("anisotropy", "odd_metrics:TAKEN", "there is already a metric 'anisotropy'"),
    (
        "share",
        "odd_metrics:SHARE_OF_NOTHING",
        "its floor is a share of 'lengt', which is no metric",
    ),
]


@pytest.mark.parametrize(("name", "value", "message"), FAULTS)
def test_a_faulty_package_is_one_message(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    value: str,
    message: str,
) -> None:
    files = {"odd_metrics/__init__.py": METRIC, "odd_metrics/broken.py": "1 / 0"}
    find(install(project, {name: value}, files), monkeypatch)
    project.suite()
    start = f"package odd-metrics, entry point {name} = '{value}' of isotest.metrics: "

    run = project.run()
    assert run.ret == 2
    (found,) = (line for line in run.outlines if "odd-metrics" in line and "ERROR" not in line)
    assert f"{start}{message}" in found
    for traceback in ("*Traceback*", "*.py:*", "*INTERNALERROR*"):
        run.stdout.no_fnmatch_line(traceback)

    capsys.readouterr()
    assert main(["schema"]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith(f"isotest: {start}{message}")
    assert error.count("\n") == 1


def test_without_the_flag_no_package_is_looked_at(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"odd_metrics/__init__.py": "1 / 0"}
    monkeypatch.setenv("PYTHONPATH", str(install(project, {"odd": "odd_metrics:ODD"}, files)))
    project.write(
        "tests/test_it.py",
        """
import sys

def test_it():
    assert not {"odd_metrics", "isotest.statistics.registry", "torch"} & set(sys.modules)
""",
    )
    result = project.pytester.run(*project.command("tests"))
    result.assert_outcomes(passed=1)


def test_what_computes_is_missing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metric is there, its accumulator is not: the checks of the entry are red, and say why."""
    files = {"odd_metrics/__init__.py": METRIC}
    find(install(project, {"odd": "odd_metrics:ODD"}, files), monkeypatch)
    project.suite(net(), checks="[checks.odd]\nmax = 1.0")
    run = project.run()
    assert run.ret == 1
    run.stdout.fnmatch_lines(["*metric 'odd'*'odd_metrics.none:None'*No module named*"])
    run.stdout.no_fnmatch_line("*Traceback*")


def test_a_measurement_with_it_is_not_cached(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing tells when the code of another package changes."""
    from isotest.cache import ProfileCache

    path = project.suite(VIT)
    suite, cache = load_suite(path), ProfileCache()

    def cached() -> bool:
        return measure_entry(suite, suite.models[0], Settings(), cache=cache).cached

    assert [cached(), cached()] == [False, True]
    # To a registry without metrics of its own, all are another's.
    monkeypatch.setattr("isotest.entry.METRICS", Registry(()))
    assert [cached(), cached()] == [False, False]
