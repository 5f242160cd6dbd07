"""A run whose measurements are all cached is quick, and a damaged cache costs time, not truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plugin.project import RESNET, VIT, hub, write_images

if TYPE_CHECKING:
    from pathlib import Path

    from tests.plugin.project import Project


def entries(project: Project) -> list[Path]:
    return sorted((project.cache / "profiles").rglob("*.json"))


@pytest.fixture
def cached(project: Project) -> Project:
    """Recorded, and measured into the cache; beside an entry that cannot be had."""
    project.suite(VIT, hub("absent", "optional = true\nbaseline = false"))
    project.record()
    assert entries(project) == [], "a recording measures what is there, and keeps no copy"
    first = project.run()
    assert first.ret == 0
    first.stdout.fnmatch_lines(["*1 measured in*"])
    assert len(entries(project)) == 1
    return project


def test_a_fully_cached_run_imports_no_torch(cached: Project) -> None:
    cached.write(
        "conftest.py",
        """
import sys

def pytest_sessionfinish(session):
    print("\\nimported:", sorted({"torch", "transformers", "timm", "datasets"} & set(sys.modules)))
""",
    )
    result = cached.apart("-s")
    assert result.ret == 0
    assert "imported: []" in result.outlines
    result.stdout.fnmatch_lines(["*1 from the cache*"])


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\xfe", b'{"format": "isotest-profile"}'])
def test_a_damaged_entry_warns_and_is_measured_again(cached: Project, damage: bytes) -> None:
    (entry,) = entries(cached)
    entry.write_bytes(damage)
    result = cached.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*CacheWarning: damaged cache entry*", "*1 measured in*"])
    again = cached.run()
    again.stdout.fnmatch_lines(["*1 from the cache*"])
    again.assert_outcomes(passed=5, skipped=2, warnings=0)


def test_an_entry_is_not_read_for_other_images(cached: Project) -> None:
    write_images(cached.path / "images", seed=1)
    result = cached.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*not comparable: data: the baseline saw 12 samples *"])


def test_an_entry_is_not_read_for_other_weights(cached: Project) -> None:
    cached.suite(VIT.replace("seed=0", "seed=1"))
    cached.run().stdout.fnmatch_lines(["*1 measured in*"])


def test_the_cache_may_be_deleted_or_be_no_folder(
    cached: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for entry in entries(cached):
        entry.unlink()
    assert cached.run().ret == 0
    file = cached.write("file", "")
    monkeypatch.setenv("ISOTEST_CACHE_DIR", str(file))
    result = cached.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*CacheWarning: measurements cannot be cached in*"])


def test_the_same_measurement_serves_entries_of_other_names(cached: Project) -> None:
    cached.suite(VIT, VIT.replace('"vit"', '"twin"'), RESNET)
    assert cached.run().ret == 1, "without baselines"
    assert len(entries(cached)) == 2
