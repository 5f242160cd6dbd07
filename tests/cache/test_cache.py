"""The cache is only ever a faster way to the same profile."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from importlib import metadata
from pathlib import Path

import pytest

from isotest import cache as cache_module
from isotest.cache import CacheWarning, ProfileCache, cache_folder, own_source_digest
from tests.baselines.cases import profile

PARTS: dict[str, object] = {
    "weights": "w",
    "data": "d",
    "samples": 45,
    "dtype": "float32",
    "config": {"depth": 3},
    "layers": None,
}


@pytest.fixture
def cache(tmp_path: Path) -> ProfileCache:
    return ProfileCache(tmp_path / "cache")


def test_what_is_put_is_had_under_its_key_only(cache: ProfileCache) -> None:
    key, other = cache.key(PARTS), cache.key({**PARTS, "samples": 44})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.get(key) is None
        cache.put(key, profile())
        assert cache.get(key) == profile()
        assert cache.get(other) is None


@pytest.mark.parametrize("name", PARTS)
def test_every_part_is_in_the_key(name: str, cache: ProfileCache) -> None:
    assert cache.key({**PARTS, name: "other"}) != cache.key(PARTS)
    assert cache.key({key: value for key, value in PARTS.items() if key != name}) != cache.key(
        PARTS
    )


def test_the_order_of_the_parts_is_not_in_the_key(cache: ProfileCache) -> None:
    assert cache.key(dict(reversed(PARTS.items()))) == cache.key(PARTS)


@pytest.mark.parametrize("library", ["torch", "transformers", "timm", "torchvision", "numpy"])
def test_versions_are_in_the_key(
    library: str, cache: ProfileCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = cache.key(PARTS)
    real = metadata.version
    monkeypatch.setattr(
        cache_module, "version", lambda name: "0.0.1" if name == library else real(name)
    )
    assert cache.key(PARTS) != before


def test_a_library_that_is_not_there_has_a_place_in_the_key(
    cache: ProfileCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = cache.key(PARTS)
    monkeypatch.setattr(cache_module, "_LIBRARIES", (*cache_module._LIBRARIES, "no-such-library"))
    assert cache.key(PARTS) != before


@pytest.mark.parametrize("change", ["edit", "add", "rename"])
def test_isotests_own_source_is_in_the_key(change: str, tmp_path: Path) -> None:
    package = tmp_path / "isotest"
    shutil.copytree(
        Path(cache_module.__file__).parent,
        package,
        ignore=shutil.ignore_patterns("samples", "__pycache__"),
    )

    def key() -> str:
        script = "import isotest.cache as c; from pathlib import Path; print(c.__file__);"
        script += "print(c.ProfileCache(Path('.')).key({}))"
        command = [sys.executable, "-c", script]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
        out = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        file, key = out.stdout.split()
        assert Path(file).is_relative_to(tmp_path)
        return key

    before = key()
    assert key() == before
    if change == "edit":
        with (package / "estimate.py").open("a") as file:
            file.write("# another formula\n")
    elif change == "add":
        (package / "gate" / "another.py").touch()
    else:
        (package / "selftest.py").rename(package / "trials.py")
    assert key() != before


def test_the_source_is_read_once_a_process() -> None:
    assert own_source_digest() is own_source_digest()


@pytest.mark.parametrize("damage", [b"", b"{", b"\x00" * 100, None])
def test_a_damaged_entry_warns_and_is_measured_again(
    damage: bytes | None, cache: ProfileCache
) -> None:
    key = cache.key(PARTS)
    cache.put(key, profile())
    (file,) = cache.folder.rglob("*.json")
    content = file.read_bytes()
    file.write_bytes(content.replace(b"0.113", b"0.114") if damage is None else damage)
    with pytest.warns(CacheWarning, match="it is measured again") as caught:
        assert cache.get(key) is None
    assert str(file) in str(caught[0].message)
    cache.put(key, profile())
    assert cache.get(key) == profile()


def test_it_can_always_be_deleted(cache: ProfileCache) -> None:
    key = cache.key(PARTS)
    cache.put(key, profile())
    shutil.rmtree(cache.folder)
    assert cache.get(key) is None
    cache.put(key, profile())
    assert cache.get(key) == profile()


def test_an_unwritable_folder_warns_once_and_goes_on(tmp_path: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.touch()
    cache = ProfileCache(blocked)
    with pytest.warns(CacheWarning, match="cannot be cached") as caught:
        cache.put(cache.key({"number": 0}), profile())
    assert len(caught) == 1
    assert str(blocked) in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.put(cache.key({"number": 1}), profile())
    assert cache.get(cache.key({"number": 0})) is None


def test_the_environment_chooses_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOTEST_CACHE_DIR", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    assert ProfileCache().folder == tmp_path / "mine"
    assert ProfileCache(tmp_path / "argument").folder == tmp_path / "argument"
    monkeypatch.setenv("ISOTEST_CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder().name == "isotest"


def test_nothing_heavy_is_imported() -> None:
    script = """
import sys
from pathlib import Path
import isotest.baselines, isotest.cache, isotest.content
from isotest.models.identity import model_identity
from isotest.data.identity import data_identity
from isotest.source import DATA_SCHEMES, MODEL_SCHEMES, parse_source
for text in ("init:vit", "timm:x", "hub:a/b", "path:.", "package:pytest/x", "sample:digits"):
    model_identity(parse_source(text, MODEL_SCHEMES), config={}, base=Path("tests"))
data_identity(parse_source("sample:photographs", DATA_SCHEMES), base=None)
isotest.cache.ProfileCache(Path(".")).key({})
heavy = {"torch", "transformers", "datasets", "timm", "torchvision", "scipy", "numpy"}
print(sorted(heavy & set(sys.modules)))
"""
    out = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert out.stdout == "[]\n"
