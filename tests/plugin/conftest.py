"""A project to run pytest in, with the heavy imports paid once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from isotest.entry import Settings, measure_entry
from isotest.suite import load_suite
from tests.plugin.project import VIT, Project, suite, write_images

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session", autouse=True)
def _imported_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Runs inside this process forget what they import; what is here already stays."""
    from importlib import import_module

    for module in ("data.python", "models.hub", "models.path", "models.python", "plugin.run"):
        import_module(f"isotest.{module}")

    folder = tmp_path_factory.mktemp("imports")
    write_images(folder / "images", 2)
    (folder / "suites").mkdir()
    (folder / "suites" / "a.toml").write_text(suite(VIT))
    loaded = load_suite(folder / "suites" / "a.toml")
    measure_entry(loaded, loaded.models[0], Settings())


@pytest.fixture
def project(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Project:
    """An empty folder with images in it and a cache of its own."""
    cache: Path = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("ISOTEST_CACHE_DIR", str(cache))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("CI", raising=False)
    return Project(pytester, cache)
