"""The same identity promises the same model or data; a doubt is no identity."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from isotest.content import ContentDigests
from isotest.data.identity import data_identity
from isotest.models.identity import model_identity
from isotest.source import DATA_SCHEMES, MODEL_SCHEMES, parse_source

if TYPE_CHECKING:
    from collections.abc import Mapping

COMMIT = "3f49326eb077187dfe1c2a2bb15fbd74e6ab91e3"


def model(
    text: str,
    base: Path | None = None,
    config: Mapping[str, object] | None = None,
    download: bool = False,
    trust_remote_code: bool = False,
) -> str | None:
    return model_identity(
        parse_source(text, MODEL_SCHEMES),
        config=config,
        base=base,
        download=download,
        trust_remote_code=trust_remote_code,
    )


def data(text: str, base: Path | None = None) -> str | None:
    return data_identity(parse_source(text, DATA_SCHEMES), base=base)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "last"
    (made / "sub").mkdir(parents=True)
    (made / "config.json").write_text("{}")
    (made / "model.safetensors").write_bytes(b"1" * 100)
    (made / "sub" / "a.png").write_bytes(b"2")
    return made


def test_an_untrained_model_is_its_type_seed_and_configuration() -> None:
    identities = [
        model("init:vit?seed=0"),
        model("init:vit?seed=1"),
        model("init:beit?seed=0"),
        model("init:vit?seed=0", config={"hidden_size": 64}),
        model("timm:vit?pretrained=false"),
        model("timm:vit?pretrained=false&seed=0"),
    ]
    assert None not in identities
    assert len(set(identities)) == len(identities)
    assert model("init:vit?seed=0") == model("init:vit?seed=0", config={}) == identities[0]


def test_arbitrary_code_and_unnamed_weights_have_no_identity(folder: Path) -> None:
    assert model("python:mypkg:build") is None
    assert model("timm:vit") is None
    assert model("timm:vit?pretrained=true") is None
    assert model("path:last", folder.parent, trust_remote_code=True) is None
    assert model("timm:vit?pretrained=false", config={"checkpoint_path": "x.pth"}) is None
    assert data("python:mypkg:load") is None
    assert data("hub:ORG/NAME?split=test") is None


@pytest.mark.parametrize(
    "text", ["path:gone", "package:no-such-package/x", "sample:gone", "sample:../models", "hub:a/b"]
)
def test_what_is_not_here_has_no_identity(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert model(text, tmp_path) is None


@pytest.mark.parametrize("text", ["folder:gone", "file:gone.parquet", "sample:gone", "sample:.."])
def test_data_that_are_not_here_have_no_identity(text: str, tmp_path: Path) -> None:
    assert data(text, tmp_path) is None


CHANGES = ["content", "added", "removed", "renamed"]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", ["model", "data"])
def test_a_folder_is_its_content(kind: str, change: str, folder: Path) -> None:
    def identity() -> str | None:
        if kind == "model":
            return model("path:last", folder.parent)
        return data("folder:last", folder.parent)

    before = identity()
    assert before is not None
    assert identity() == before
    # The place is not part of it, nor are files that nobody reads.
    moved = folder.rename(folder.with_name("elsewhere"))
    moved.rename(folder)
    (folder / ".DS_Store").write_bytes(b"x")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.pyc").write_bytes(b"x")
    os.utime(folder / "config.json", (1, 1))
    assert identity() == before
    file = folder / "sub" / "a.png"
    if change == "content":
        file.write_bytes(b"3")
    elif change == "added":
        (folder / "sub" / "b.png").write_bytes(b"2")
    elif change == "removed":
        file.unlink()
    else:
        file.rename(file.with_name("c.png"))
    assert identity() not in (before, None)


def test_two_folders_of_the_same_content_are_the_same_model(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy with spaces ü")
    assert model("path:copy with spaces ü", tmp_path) == model("path:last", tmp_path)
    assert model(f"path:{folder}") == model("path:last", tmp_path)


def test_a_single_file_is_its_content_suffix_and_options(folder: Path) -> None:
    (folder / "w.bin").write_bytes(b"1" * 100)
    identities = [
        model("path:model.safetensors?architecture=vit", folder),
        model("path:model.safetensors?architecture=beit", folder),
        model("path:model.safetensors", folder),
        model("path:w.bin", folder),
    ]
    assert None not in identities
    assert len(set(identities)) == len(identities)


def test_content_may_not_wander_between_files(tmp_path: Path) -> None:
    for name, parts in (("one", ("ab", "c")), ("two", ("a", "bc"))):
        (tmp_path / name).mkdir()
        for file, content in zip("xy", parts, strict=True):
            (tmp_path / name / file).write_text(content)
    assert data("folder:one", tmp_path) != data("folder:two", tmp_path)


def test_a_folder_that_leads_elsewhere_has_no_identity(folder: Path) -> None:
    (folder / "link").symlink_to(folder.parent, target_is_directory=True)
    assert model("path:last", folder.parent) is None


def test_links_to_files_are_followed(folder: Path) -> None:
    real = folder.parent / "blob"
    (folder / "model.safetensors").rename(real)
    (folder / "model.safetensors").symlink_to(real)
    before = model("path:last", folder.parent)
    real.write_bytes(b"2" * 100)
    assert before is not None
    assert model("path:last", folder.parent) not in (before, None)


def test_what_is_no_file_has_no_identity(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    assert model("path:last", folder.parent) is None


def test_shipped_samples_have_an_identity() -> None:
    assert data("sample:photographs") is not None
    options = {data("sample:photographs"), data("sample:photographs?split=a")}
    assert len(options) == 2


def test_lines_that_name_images_are_the_images_too(folder: Path) -> None:
    (folder / "rows.jsonl").write_text('{"path": "sub/a.png"}\n\n{"path": "sub/a.png"}\n')
    before = data("file:rows.jsonl", folder)
    assert before is not None
    assert data("file:rows.jsonl?image=other", folder) is None
    (folder / "sub" / "a.png").write_bytes(b"3")
    assert data("file:rows.jsonl", folder) not in (before, None)
    (folder / "sub" / "a.png").unlink()
    assert data("file:rows.jsonl", folder) is None
    for bad in ("{", "[1]", '{"path": 3}', '{"path": ["a"]}', "[" * 100_000):
        (folder / "rows.jsonl").write_text(bad)
        assert data("file:rows.jsonl", folder) is None


@pytest.mark.parametrize(
    ("images", "held"),
    [
        ([b"1", b"2"], True),
        ([{"bytes": b"1", "path": None}, {"bytes": b"2", "path": "x"}], True),
        ([{"bytes": b"1", "path": None}, {"bytes": None, "path": "x"}], False),
        ([{"bytes": b"", "path": "x"}, {"bytes": b"2", "path": "x"}], False),
        ([{"path": "x"}, {"path": "y"}], False),
        (["x", "y"], False),
        ([1, 2], False),
    ],
)
def test_a_parquet_file_must_hold_its_images(
    images: list[object], held: bool, tmp_path: Path
) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"image": images}), tmp_path / "a.parquet")
    assert (data("file:a.parquet", tmp_path) is not None) == held
    assert data("file:a.parquet?image=other", tmp_path) is None
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    assert data("file:a.parquet", tmp_path) is None


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed distribution with weights in it."""
    site = tmp_path / "site"
    (site / "weights_pkg").mkdir(parents=True)
    (site / "weights_pkg" / "model.safetensors").write_bytes(b"1" * 100)
    record = site / "weights_pkg-1.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: weights-pkg\nVersion: 1.0\n")
    (record / "RECORD").write_text(
        "weights_pkg/model.safetensors,,\nweights_pkg-1.0.dist-info/METADATA,,\n"
        "weights_pkg/__pycache__/x.pyc,,\n"
    )
    monkeypatch.syspath_prepend(site)
    return site


def test_a_package_is_the_content_of_its_files(distribution: Path) -> None:
    before = model("package:weights-pkg/model")
    assert before is not None
    assert data("package:weights-pkg/images") is not None
    assert data("package:no-such-package/images") is None
    assert model("package:weights-pkg/other") not in (before, None)
    (distribution / "weights_pkg" / "model.safetensors").write_bytes(b"2" * 100)
    assert model("package:weights-pkg/model") not in (before, None)
    (distribution / "weights_pkg" / "model.safetensors").unlink()
    assert model("package:weights-pkg/model") is None


@pytest.mark.parametrize("record", ['{"dir_info": {"editable": true}}', "[", '{"dir_info": []}'])
def test_an_editable_package_has_no_identity(record: str, distribution: Path) -> None:
    (distribution / "weights_pkg-1.0.dist-info" / "direct_url.json").write_text(record)
    assert model("package:weights-pkg/model") is None


HUB = """
import json, sys
from isotest.models.identity import model_identity
from isotest.source import MODEL_SCHEMES, parse_source
source = parse_source(sys.argv[1], MODEL_SCHEMES)
print(json.dumps(model_identity(source, config=None, base=None, download=len(sys.argv) > 2)))
"""


def hub(cache: Path, *arguments: str) -> str | None:
    # In another process, for huggingface_hub reads its environment once.
    out = subprocess.run(
        [sys.executable, "-c", HUB, *arguments],
        env={**os.environ, "HF_HUB_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    identity = json.loads(out.stdout)
    assert identity is None or isinstance(identity, str)
    return identity


def test_a_hub_model_is_the_commit_that_is_cached(tmp_path: Path) -> None:
    repository = tmp_path / "models--owner--name"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    snapshot = repository / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    before = hub(tmp_path, "hub:owner/name@main")
    assert before is not None
    assert hub(tmp_path, "hub:owner/name") == before
    assert hub(tmp_path, f"hub:owner/name@{COMMIT}") == before
    assert hub(tmp_path, "hub:owner/other") is None
    assert hub(tmp_path, "hub:owner/name@v2") is None
    # A branch may have moved when the network is asked; a commit can't.
    assert hub(tmp_path, "hub:owner/name@main", "download") is None
    assert hub(tmp_path, f"hub:owner/name@{COMMIT}", "download") == before
    # A file fetched later is read as well.
    (snapshot / "preprocessor_config.json").write_text("{}")
    assert hub(tmp_path, "hub:owner/name@main") not in (before, None)


def test_digests_of_large_files_are_remembered(tmp_path: Path) -> None:
    large, small = tmp_path / "large", tmp_path / "small"
    large.write_bytes(b"1" * 100_000)
    small.write_bytes(b"1")
    for file in (large, small):
        os.utime(file, (1_000_000_000, 1_000_000_000))
    memory = tmp_path / "memory"
    before = ContentDigests(memory).of(large)
    ContentDigests(memory).of(small)
    remembered = json.loads((memory / "digests.json").read_text())
    assert list(remembered) == [str(large.resolve())]
    # That it is really used shows when it is wrong.
    remembered[str(large.resolve())][-1] = "0" * 64
    (memory / "digests.json").write_text(json.dumps(remembered))
    assert ContentDigests(memory).of(large) not in (before, None)
    assert ContentDigests().of(large) == before


def test_a_changed_file_is_read_again_even_if_its_size_and_time_stay(tmp_path: Path) -> None:
    file = tmp_path / "large"
    memory = tmp_path / "memory"
    file.write_bytes(b"1" * 100_000)
    os.utime(file, (1_000_000_000, 1_000_000_000))
    before = ContentDigests(memory).of(file)
    file.write_bytes(b"2" * 100_000)
    os.utime(file, (1_000_000_000, 1_000_000_000))
    after = ContentDigests(memory).of(file)
    assert after not in (before, None)
    assert after == ContentDigests().of(file)


def test_a_file_that_may_still_change_is_not_remembered(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"1" * 100_000)
    ContentDigests(tmp_path / "memory").of(tmp_path / "large")
    assert not (tmp_path / "memory").exists()


@pytest.mark.parametrize("damage", ["", "[", "[]", '{"a": 1}', '{"a": [1, 2]}', "[" * 100_000])
def test_a_damaged_memory_is_forgotten(damage: str, tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(b"1" * 100_000)
    os.utime(file, (1, 1))
    (tmp_path / "digests.json").write_text(damage)
    assert ContentDigests(tmp_path).of(file) == ContentDigests().of(file)
    assert list(json.loads((tmp_path / "digests.json").read_text())) == [str(file.resolve())]


def test_a_memory_that_cannot_be_written_is_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(b"1" * 100_000)
    os.utime(file, (1, 1))
    assert ContentDigests(file).of(file) == ContentDigests().of(file)
