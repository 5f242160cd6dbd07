"""The wheel holds what it needs, and measures from an environment and a folder of its own."""

from __future__ import annotations

import os
import site
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest
from junitparser import JUnitXml

ROOT = Path(__file__).resolve().parent.parent
SUITE = """
modality = "vision"

[data]
source = "sample:digits?split=held-out"
samples = 40

[checks.anisotropy]
max = 0.5

[[models]]
name = "digits"
source = "sample:digits"
"""
# Names the installation that runs, in the run itself.
CONFTEST = """
import isotest


def pytest_report_header():
    return f"isotest from {isotest.__file__}"
"""


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**inherited, "PIP_NO_INDEX": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = ("-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    run(sys.executable, *build, cwd=folder)
    (built,) = folder.iterdir()
    return built


def test_the_wheel_holds_the_package_its_samples_and_their_licences(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
        information = next(name.split("/")[0] for name in names if ".dist-info/" in name)
        entry_points = archive.read(f"{information}/entry_points.txt").decode()
    package = {name for name in names if name.startswith("isotest/")}
    assert package == {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "isotest").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert names - package == {
        f"{information}/{name}"
        for name in (
            "METADATA",
            "WHEEL",
            "RECORD",
            "entry_points.txt",
            "licenses/LICENSE",
            "licenses/isotest/samples/LICENSES.md",
        )
    }
    assert {
        "isotest/py.typed",
        "isotest/samples/LICENSES.md",
        "isotest/samples/photographs/astronaut-0.png",
        "isotest/samples/photographs/metadata.jsonl",
        "isotest/samples/models/digits/model.safetensors",
    } <= package
    assert any(name.startswith("isotest/samples/digits/") for name in package)
    kinds = {Path(name).suffix for name in package}
    samples = {".png", ".flac", ".jsonl", ".json", ".safetensors", ".txt"}
    assert kinds <= {".py", ".typed", ".md"} | samples
    assert "[pytest11]\nisotest = isotest.plugin" in entry_points
    assert "[console_scripts]\nisotest = isotest.cli:main" in entry_points


def test_the_wheel_runs_a_suite_from_another_folder(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False, symlinks=os.name != "nt")
    scripts = environment / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / "python"
    pip = ("-m", "pip", "--python", python, "install", "--no-deps", "--quiet", wheel)
    run(sys.executable, *pip, cwd=tmp_path)
    borrow_dependencies(environment)

    project = tmp_path / "project"
    (project / "suites").mkdir(parents=True)
    (project / "suites" / "small.toml").write_text(SUITE)
    (project / "conftest.py").write_text(CONFTEST)
    cache = str(tmp_path / "cache")
    output = run(
        *(python, "-m", "pytest", "--isotest", "--junitxml=junit.xml"),
        cwd=project,
        ISOTEST_CACHE_DIR=cache,
        OMP_NUM_THREADS="1",
    )
    assert f"isotest from {environment}" in output
    report = JUnitXml.fromfile(str(project / "junit.xml"))
    cases = [case for suite in report for case in suite]
    assert {"finite", "anisotropy"} <= {case.name for case in cases}
    assert all(case.is_passed for case in cases)
    assert run(scripts / "isotest", "--version", cwd=project).startswith("isotest ")


def borrow_dependencies(environment: Path) -> None:
    """Everything but isotest comes from here: a path behind the environment's own on sys.path.

    Unlike this environment's own folder, a path in a .pth file has its .pth files not read, so an
    editable installation here stays out of sight.
    """
    (packages,) = environment.rglob("site-packages")
    paths = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    (packages / "dependencies.pth").write_text("\n".join(dict.fromkeys(paths)) + "\n")
