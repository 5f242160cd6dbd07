"""A pull request may bring a suite, a folder of weights and images; none of them run or reach out.

Code runs for ``python:`` only, and for weights that bring their own after
``--isotest-trust-remote-code``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from isotest.errors import SourceError
from isotest.models import load_model
from tests.models.test_hub import no_network
from tests.models.test_path import Evil, classifier
from tests.models.tiny import VIT

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["no_network"]


@pytest.fixture(autouse=True)
def nothing_happened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_network: list[Any]) -> Any:
    """Whatever a test loads: no packet left, and no file of its working directory was run."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    torch.save({"state_dict": Evil()}, "evil.bin")
    yield
    assert no_network == []
    assert not Path("unpickled").exists()
    assert "ran_from_a_folder" not in sys.modules


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    classifier().save_pretrained(path)
    return path


def error(source: str, config: Mapping[str, object] | None = None, **options: Any) -> str:
    with pytest.raises(SourceError) as caught:
        load_model(source, config=config, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def configure(folder: Path, changes: Mapping[str, object], name: str = "config.json") -> None:
    file = folder / name
    before = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**before, **changes}))


def test_unpickling_would_be_noticed() -> None:
    """The witness of these tests works: an ordinary torch.load runs what is in the file."""
    torch.load("evil.bin", weights_only=False)
    witness = Path("unpickled")
    assert witness.read_text() == "yes"
    witness.unlink()


# timm takes weights from anywhere, through arguments that look like those of an architecture.


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("checkpoint_path", "evil.bin"),
        ("pretrained", True),
        ("pretrained_cfg", {"file": "evil.bin"}),
        ("pretrained_cfg_overlay", {"url": "http://127.0.0.1/evil.bin"}),
        ("cache_dir", "elsewhere"),
    ],
)
def test_timms_own_ways_to_weights_are_refused(key: str, value: object) -> None:
    wrapped = {"architecture": "test_vit", "model_args": {key: value}}
    refused = f"{key!r} would bring weights from elsewhere"
    assert refused in error("timm:test_vit?pretrained=false", {key: value})
    assert refused in error("init:timm_wrapper", wrapped)
    assert not Path("elsewhere").exists()


def test_a_folder_cannot_name_weights_for_timm_either(tmp_path: Path) -> None:
    folder = tmp_path / "wrapped"
    folder.mkdir()
    configure(
        folder,
        {
            "model_type": "timm_wrapper",
            "architecture": "test_vit",
            "model_args": {"checkpoint_path": "evil.bin"},
        },
    )
    (folder / "model.safetensors").touch()
    assert "'checkpoint_path' would bring weights from elsewhere" in error(f"path:{folder}")


@pytest.mark.parametrize("prefix", ["hf-hub:", "hf_hub:", "local-dir:"])
@pytest.mark.parametrize("download", [False, True])
def test_a_timm_architecture_is_a_name_not_a_place(prefix: str, download: bool) -> None:
    for source, key in (("init:timm_wrapper", "architecture"), ("init:timm_backbone", "backbone")):
        message = error(source, {key: f"{prefix}owner/evil"}, download=download)
        assert f"expected {key!r} to be the name of an architecture" in message


# transformers: code from the hub, quantisers, adapters.


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("attn_implementation", "kernels-community/flash-attn"),
        ("_attn_implementation", "owner/evil"),
        ("_attn_implementation_internal", "owner/evil"),
        ("attn_implementation", {"": "owner/evil"}),
        ("experts_implementation", "owner/evil"),
        ("quantization_config", {"quant_method": "finegrained_fp8"}),
        ("quantization_config", {"quant_method": "no such"}),
        ("transformers_weights", "../elsewhere/model.safetensors"),
    ],
)
def test_a_configuration_cannot_bring_code_or_other_weights(
    folder: Path, key: str, value: object
) -> None:
    assert "no configuration key" in error("init:vit", {**VIT, key: value})
    configure(folder, {key: value})
    assert f"{key!r}" in error(f"path:{folder}")
    assert f"{key!r}" in error(f"path:{folder}", trust_remote_code=True)
    # The same inside of a part's configuration.
    configure(folder, {key: None, "vision_config": {key: value}})
    assert f"'vision_config.{key}'" in error(f"path:{folder}")


@pytest.mark.parametrize("value", ["eager", "sdpa", None])
def test_the_attention_of_torch_may_be_chosen(folder: Path, value: object) -> None:
    configure(folder, {"attn_implementation": value})
    assert load_model(f"path:{folder}").layers


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("auto_map", {"AutoModel": "evil.Evil"}),
        ("_name_or_path", "owner/evil"),
        ("torch_dtype", "float16"),
        ("dtype", "float16"),
        ("transformers_version", "4.0.0"),
    ],
)
def test_what_says_nothing_of_an_architecture_is_no_configuration(key: str, value: object) -> None:
    assert f"no configuration key {key!r}" in error("init:vit", {**VIT, key: value})


def test_code_beside_a_known_model_is_not_run(folder: Path) -> None:
    code = "import sys; sys.modules['ran_from_a_folder'] = sys"
    for name in ("evil.py", "modeling_vit.py", "__init__.py"):
        (folder / name).write_text(code)
    expected = load_model(f"path:{folder}")
    configure(folder, {"auto_map": {"AutoConfig": "evil.Evil", "AutoModel": "evil.Evil"}})
    assert load_model(f"path:{folder}").weights == expected.weights


def test_code_of_an_image_processor_is_not_run(folder: Path) -> None:
    (folder / "evil.py").write_text("import sys; sys.modules['ran_from_a_folder'] = sys")
    configure(
        folder,
        {"image_processor_type": "Evil", "auto_map": {"AutoImageProcessor": "evil.Evil"}},
        "preprocessor_config.json",
    )
    assert "preprocessor_config.json" in error(f"path:{folder}")


def test_adapters_are_not_loaded(folder: Path) -> None:
    """With peft installed they'd be read from, and on top of, whatever the file names."""
    configure(folder, {"base_model_name_or_path": "owner/evil"}, "adapter_config.json")
    message = error(f"path:{folder}")
    assert "adapter_config.json" in message
    assert "merge" in message


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize("shard", ["../../out/evil.bin", "/evil.bin", "sub/../../out/evil.bin"])
def test_shards_lie_in_the_folder(folder: Path, name: str, shard: str) -> None:
    (folder / "model.safetensors").unlink()
    index = {"metadata": {}, "weight_map": {"vit.layernorm.weight": shard}}
    (folder / f"{name}.index.json").write_text(json.dumps(index))
    assert f"{shard!r} leads out of the folder" in error(f"path:{folder}")


def test_sharded_pickles_are_not_executed_either(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({"vit.layernorm.weight": Evil()}, folder / "shard.bin")
    index = {"metadata": {}, "weight_map": {"vit.layernorm.weight": "shard.bin"}}
    for name in ("pytorch_model.bin", "model.safetensors"):
        (folder / f"{name}.index.json").write_text(json.dumps(index))
        assert "cannot read the weights" in error(f"path:{folder}")


# Sizes.


def test_nested_without_end(folder: Path) -> None:
    (folder / "config.json").write_text('{"a":' * 100_000)
    assert "config.json" in error(f"path:{folder}")


@pytest.mark.parametrize(
    "preprocess", [{"size": 10**6}, {"size": [1, 10**9]}, {"size": 32, "resize": 10**6}]
)
def test_images_are_not_blown_up(preprocess: dict[str, object]) -> None:
    assert "89478485 pixels" in error("init:vit", dict(VIT), preprocess=preprocess)


def test_images_are_not_blown_up_by_a_configuration_either(folder: Path) -> None:
    assert "89478485 pixels" in error("init:convnext", {"image_size": 10**6})
    for key, sides in (
        ("size", {"height": 10**6, "width": 10**6}),
        ("size", {"shortest_edge": 10**6}),
        ("crop_size", {"height": 1, "width": 10**9}),
    ):
        settings = {"image_processor_type": "ViTImageProcessor", "do_center_crop": True, key: sides}
        (folder / "preprocessor_config.json").write_text(json.dumps(settings))
        assert "89478485 pixels" in error(f"path:{folder}")


# Places.


@pytest.mark.parametrize(
    "source",
    [
        "sample:../models",
        "sample:..",
        "sample:/etc",
        "sample:%2e%2e/models",
        "package:isotest/../tests",
        "package:isotest//etc",
        "package:isotest/samples/%2e%2e/%2e%2e",
        "package:../isotest/samples",
        "hub:../../etc/passwd",
        "hub:./model",
        "timm:local-dir:model",
    ],
)
def test_sources_do_not_lead_elsewhere(source: str) -> None:
    error(source)
