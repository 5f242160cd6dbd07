"""``package:``: weights that an installed distribution lists among its files."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from safetensors.torch import save_file

from isotest.errors import MissingError, SourceError
from isotest.models import load_model
from tests.models.test_path import classifier
from tests.models.tiny import VIT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the import path with one distribution installed into it."""
    classifier().save_pretrained(tmp_path / "tiny_weights" / "model")
    save_file(classifier().state_dict(), tmp_path / "tiny_weights" / "bare.safetensors")
    info = tmp_path / "tiny_weights-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    listed = [f"{path.relative_to(tmp_path).as_posix()},," for path in files]
    (info / "RECORD").write_text("\n".join([*listed, "../outside/config.json,,"]))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return tmp_path


@pytest.mark.parametrize(
    "source",
    [
        "package:tiny-weights/model",
        "package:tiny-weights/tiny_weights/model",
        "package:tiny_weights/model/",
        "package:tiny-weights/bare.safetensors?architecture=vit",
    ],
)
def test_weights_in_a_package(site: Path, source: str) -> None:
    loaded = load_model(source, config=VIT)
    assert loaded.weights == load_model(f"path:{site / 'tiny_weights' / 'model'}").weights
    assert "1.0" in loaded.versions.values()


def test_weights_in_an_editable_package(site: Path) -> None:
    """Such a distribution lists no files; its package lies where Python would import it from."""
    info = site / "tiny_weights-1.0.dist-info"
    (info / "RECORD").write_text("__editable__.tiny_weights.pth,,\n")
    (info / "direct_url.json").write_text('{"url": "file:///x", "dir_info": {"editable": true}}')
    for path in ("model", "tiny_weights/model"):
        assert load_model(f"package:tiny-weights/{path}").layers
    with pytest.raises(SourceError, match="no model at dist-info"):
        load_model("package:tiny-weights/dist-info")


def test_a_package_that_is_not_installed_is_missing() -> None:
    with pytest.raises(MissingError) as caught:
        load_model("package:tiny-weights-zz/model")
    assert caught.value.remedy == "pip install tiny-weights-zz"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("package:tiny-weights", "expected package:DISTRIBUTION/PATH"),
        ("package:tiny-weights/", "expected package:DISTRIBUTION/PATH"),
        ("package:tiny-weights/../outside", "a path inside the distribution"),
        ("package:tiny-weights//etc", "a path inside the distribution"),
        ("package:tiny-weights/outside", "no model at outside"),
        ("package:tiny-weights/modle", "files in it: tiny_weights/bare.safetensors, tiny_weights/"),
        ("package:tiny-weights/bare.safetensors", "add ?architecture=MODEL_TYPE"),
        ("package:tiny-weights/model?architecture=vit", "is a folder"),
    ],
)
def test_bad_input_is_one_clear_message(site: Path, source: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        load_model(source)
    assert message in str(caught.value)
    assert source in str(caught.value)
