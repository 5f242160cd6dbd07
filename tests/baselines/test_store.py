"""One file an entry, each in its place."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotest.baselines import BaselineStore, slug
from isotest.errors import BaselineError
from tests.baselines.cases import profile

if TYPE_CHECKING:
    from pathlib import Path

    from isotest.profile import Profile


@pytest.fixture(autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("ISOTEST_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    return BaselineStore(tmp_path / "baselines")


def of(suite: str, model: str) -> Profile:
    return profile(suite=suite, model=model)


def test_what_is_written_is_found_and_nothing_else(store: BaselineStore) -> None:
    assert store.find("vision/transformers", "vit") is None
    path = store.write(profile())
    assert path == store.root / "vision" / "transformers" / "vit.json"
    assert store.find("vision/transformers", "vit") == profile()
    assert store.find("vision/transformers", "vit-base") is None
    assert store.find("vision", "vit") is None


def test_nothing_but_baselines_appears_in_the_store(store: BaselineStore) -> None:
    store.write(profile())
    files = [path.relative_to(store.root).as_posix() for path in store.root.rglob("*")]
    assert sorted(files) == ["vision", "vision/transformers", "vision/transformers/vit.json"]


NAMES = [
    "vit",
    "ViT",
    "VIT",
    "vit base",
    "vit-base",
    "vit.base",
    "vit/base",
    "vit\\base",
    "..",
    ".",
    "...",
    ".git",
    "../../etc/passwd",
    "/etc/passwd",
    "C:\\x",
    "con",
    "CON",
    "con.txt",
    "nul",
    "lpt1.a.b",
    "größe",
    "gro\u0308ße",
    "模型",
    "模特",
    "-",
    "-rf",
    "a" * 80,
    "a" * 81,
    "a" * 5000,
    "vit.",
    "vit ",
    " vit",
    "vit\n",
    "vit\0",
    "~",
    "$HOME",
    "*",
    "x.json",
    "\ud800",
]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_has_a_file_of_its_own(name: str, store: BaselineStore) -> None:
    path = store.path_of("vision", name)
    assert path.parent == store.root / "vision"
    if "\ud800" not in name:
        assert store.write(of("vision", name)) == path
        assert store.find("vision", name) == of("vision", name)
    others = {store.path_of("vision", other) for other in NAMES if other != name}
    assert path not in others


@pytest.mark.parametrize(
    "suite", ["", "..", "../..", "/", "/etc", "a/../../b", "A/b", "a//b", "con/a"]
)
def test_any_suite_has_a_folder_below_the_root(suite: str, store: BaselineStore) -> None:
    path = store.path_of(suite, "vit")
    assert path.resolve().is_relative_to(store.root.resolve())
    assert ".." not in path.relative_to(store.root).parts
    store.write(of(suite, "vit"))
    assert store.find(suite, "vit") == of(suite, "vit")


@given(st.text(st.characters(), min_size=1))
def test_a_slug_suits_every_file_system(name: str) -> None:
    made = slug(name)
    assert made == made.lower() == made.strip(". ")
    assert made.isascii()
    assert set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
    assert 1 <= len(made) <= 100
    assert made.split(".")[0] not in {"con", "prn", "aux", "nul", "com1", "lpt1"}


@given(st.lists(st.text("aAbB .-é", min_size=1, max_size=4), min_size=2, max_size=2, unique=True))
def test_names_that_differ_in_anything_have_different_slugs(names: list[str]) -> None:
    assert slug(names[0]) != slug(names[1])


def test_a_name_that_is_its_own_slug_is_its_own_file() -> None:
    for name in ("vit-base-untrained", "resnet50.a1_in1k", "0"):
        assert slug(name) == name


def test_names_that_would_share_a_file_are_named(store: BaselineStore) -> None:
    entries = [("vision/a", name) for name in NAMES]
    assert store.collisions(entries) == []
    assert store.collisions([*entries, *entries]) == []
    forged = slug("ViT")
    (message,) = store.collisions([*entries, ("vision/a", forged)])
    assert f"model 'ViT' of suite 'vision/a' and model '{forged}'" in message
    assert f"{forged}.json" in message
    assert "rename one of them" in message


def test_a_file_where_a_folder_must_be_is_a_collision(store: BaselineStore) -> None:
    (message,) = store.collisions([("vision", "x"), ("vision/x.json", "y")])
    assert "model 'x' of suite 'vision'" in message
    assert "model 'y' of suite 'vision/x.json'" in message


@pytest.mark.parametrize(("suite", "model"), [("vision/transformers", "beit"), ("vision/x", "vit")])
def test_a_baseline_of_another_entry_is_refused(
    suite: str, model: str, store: BaselineStore
) -> None:
    path = store.path_of(suite, model)
    path.parent.mkdir(parents=True)
    shutil.copy(store.write(profile()), path)
    with pytest.raises(BaselineError) as error:
        store.find(suite, model)
    assert "belongs to model 'vit' of suite 'vision/transformers'" in str(error.value)
    assert f"expected the baseline of model {model!r} of suite {suite!r}" in str(error.value)
    assert str(path) in str(error.value)


def test_a_link_out_of_the_store_is_refused(store: BaselineStore, tmp_path: Path) -> None:
    outside = BaselineStore(tmp_path / "outside")
    victim = outside.write(profile())
    before = victim.read_bytes()
    path = store.path_of("vision/transformers", "vit")
    path.parent.mkdir(parents=True)
    path.symlink_to(victim)
    for use in (lambda: store.find("vision/transformers", "vit"), lambda: store.write(profile())):
        with pytest.raises(BaselineError, match="a symbolic link leads to"):
            use()
    path.unlink()
    path.parent.rmdir()
    path.parent.symlink_to(victim.parent, target_is_directory=True)
    for use in (lambda: store.find("vision/transformers", "vit"), lambda: store.write(profile())):
        with pytest.raises(BaselineError, match="a symbolic link leads to"):
            use()
    assert victim.read_bytes() == before


def test_a_link_to_nothing_is_not_a_missing_baseline(store: BaselineStore) -> None:
    path = store.path_of("vision", "vit")
    path.parent.mkdir(parents=True)
    path.symlink_to(store.root / "gone.json")
    with pytest.raises(BaselineError, match="No such file"):
        store.find("vision", "vit")


def test_a_link_in_a_circle_is_named(store: BaselineStore) -> None:
    path = store.path_of("vision", "vit")
    path.parent.mkdir(parents=True)
    path.symlink_to(path)
    with pytest.raises(BaselineError):
        store.find("vision", "vit")


def test_the_store_itself_may_be_a_link(store: BaselineStore, tmp_path: Path) -> None:
    store.write(profile())
    link = tmp_path / "link"
    link.symlink_to(store.root, target_is_directory=True)
    assert BaselineStore(link).find("vision/transformers", "vit") == profile()


def test_what_no_entry_claims_is_found_and_pruned(store: BaselineStore) -> None:
    kept = store.write(of("vision/a", "vit"))
    gone = store.write(of("vision/a", "beit"))
    removed_suite = store.write(of("speech/old/deep", "hubert"))
    note = store.root / "README.md"
    note.write_text("kept")
    assert store.unclaimed({kept}) == [removed_suite, gone]
    assert store.unclaimed({kept}, suite_ids={"vision/a"}) == [gone]
    assert store.unclaimed({kept}, suite_ids={"vision"}) == []
    assert store.unclaimed({kept}, suite_ids=set()) == []
    assert store.prune({kept}) == [removed_suite, gone]
    assert sorted(path.name for path in store.root.rglob("*")) == [
        "README.md",
        "a",
        "vision",
        "vit.json",
    ]
    assert store.prune({kept}) == []


def test_an_unreadable_baseline_of_nobody_is_unclaimed_too(store: BaselineStore) -> None:
    path = store.path_of("vision", "vit")
    path.parent.mkdir(parents=True)
    path.write_text("{")
    assert store.unclaimed(set()) == [path]


def test_the_same_file_under_another_spelling_is_claimed(store: BaselineStore) -> None:
    kept = store.write(of("vision/a", "vit"))
    # What a file system that ignores case shows for one file, a hard link shows on any.
    os.link(kept, kept.with_name("VIT.JSON"))
    assert store.unclaimed({kept}) == []


def test_pruning_never_leaves_the_store(store: BaselineStore, tmp_path: Path) -> None:
    victim = BaselineStore(tmp_path / "outside").write(profile())
    store.root.mkdir()
    (store.root / "link").symlink_to(victim.parent, target_is_directory=True)
    (store.root / "link.json").symlink_to(victim)
    assert store.prune(set()) == [store.root / "link.json"]
    assert victim.exists()


def test_an_empty_store_has_nothing_to_prune(store: BaselineStore) -> None:
    assert store.prune(set()) == []
    assert not store.root.exists()


def test_another_process_waits_for_the_lock(store: BaselineStore) -> None:
    script = """
import sys, isotest.baselines
from pathlib import Path
from isotest.errors import BaselineError
isotest.baselines._LOCK_SECONDS = 0.2
try:
    with isotest.baselines.BaselineStore(Path(sys.argv[1])).locked():
        print("got it")
except BaselineError as error:
    print(error)
"""
    command = [sys.executable, "-c", script, str(store.root)]
    with store.locked(), store.locked():
        waiting = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        store.write(profile())
    free = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "another isotest process has been changing these baselines" in waiting.stdout
    assert free.stdout == "got it\n"


def test_without_a_cache_folder_baselines_are_still_written(
    store: BaselineStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "a file"
    blocked.touch()
    monkeypatch.setenv("ISOTEST_CACHE_DIR", str(blocked))
    store.write(profile())
    assert store.find("vision/transformers", "vit") == profile()


def test_recording_anew_takes_the_place_of_a_damaged_file(store: BaselineStore) -> None:
    path = store.write(profile())
    path.write_text("{")
    store.write(replace(profile(), units=5))
    assert store.find("vision/transformers", "vit") == replace(profile(), units=5)
