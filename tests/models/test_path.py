"""``path:``: checkpoints as training writes them, whole or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoConfig,
    AutoModelForImageClassification,
    ViTConfig,
    ViTForImageClassification,
)

from isotest.errors import MissingError, SourceError
from isotest.models import load_model
from isotest.models.seeding import seeded
from tests.models.tiny import TRANSFORMERS, VIT


def classifier(seed: int = 7, **config: Any) -> ViTForImageClassification:
    with seeded(seed):
        return ViTForImageClassification(ViTConfig(**{**VIT, "num_labels": 10, **config}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "a folder, ünïcode.d"
    classifier().save_pretrained(path)
    return path


def error(source: str, **options: Any) -> str:
    with pytest.raises(SourceError) as caught:
        load_model(source, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def rewrite(folder: Path, change: Any) -> None:
    file = folder / "model.safetensors"
    state = load_file(file)
    change(state)
    save_file(state, file, metadata={"format": "pt"})


@pytest.mark.parametrize("model_type", ["vit", "deit", "beit", "segformer", "resnet", "convnext"])
def test_a_saved_classifier_is_comparable_with_the_untrained_model(
    model_type: str, tmp_path: Path
) -> None:
    config = TRANSFORMERS[model_type]
    with seeded(7):
        auto: Any = AutoModelForImageClassification
        model = auto.from_config(
            # DeiT has two classifiers; the configuration says which one it was.
            AutoConfig.for_model(
                model_type,
                **config,
                num_labels=7,
                architectures=["DeiTForImageClassification"] if model_type == "deit" else None,
            )
        )
    model.save_pretrained(tmp_path)
    untrained = load_model(f"init:{model_type}?seed=8", config=config)
    saved = load_model(f"path:{tmp_path}")
    assert saved.architecture == untrained.architecture
    assert saved.weights != untrained.weights
    assert saved.layers == untrained.layers
    assert saved.feed.describe() == untrained.feed.describe()


def test_saving_and_loading_keeps_the_weights(tmp_path: Path) -> None:
    untrained = load_model("init:vit?seed=3", config=VIT)
    module: Any = untrained.module
    module.save_pretrained(tmp_path)
    assert load_model(f"path:{tmp_path}").weights == untrained.weights


def test_relative_paths_start_at_base(folder: Path) -> None:
    assert load_model(f"path:{folder.name}", base=folder.parent).commit is None


def test_torch_files_of_plain_tensors_are_read(folder: Path) -> None:
    expected = load_model(f"path:{folder}").weights
    state = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(state, folder / "pytorch_model.bin")
    assert load_model(f"path:{folder}").weights == expected


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.write_text, (Path("unpickled"), "yes"))


def test_pickles_are_never_executed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (folder / "model.safetensors").unlink()
    torch.save({"vit.layernorm.weight": Evil()}, folder / "pytorch_model.bin")
    assert "cannot read the weights" in error(f"path:{folder}")
    assert not (tmp_path / "unpickled").exists()


def test_a_missing_backbone_weight_is_an_error_not_a_random_value(folder: Path) -> None:
    rewrite(folder, lambda state: state.pop("vit.layernorm.weight"))
    message = error(f"path:{folder}")
    assert "1 missing (layernorm.weight)" in message
    assert str(folder) in message


def test_surplus_backbone_weights_are_an_error(folder: Path) -> None:
    """Fewer layers configured than saved: a dropped layer would pass unseen."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 2}))
    message = error(f"path:{folder}")
    assert "16 not part of it (" in message
    assert ".2.attention" in message.partition("(")[2]


def test_weights_of_another_shape_are_an_error(folder: Path) -> None:
    rewrite(folder, lambda state: state.update({"vit.layernorm.weight": torch.ones(5)}))
    assert "layernorm.weight (5,) instead of (32,)" in error(f"path:{folder}")


def test_a_missing_pooler_and_a_missing_head_do_not_matter(folder: Path) -> None:
    expected = load_model(f"path:{folder}").weights
    rewrite(folder, lambda state: [state.pop(f"classifier.{k}") for k in ("weight", "bias")])
    assert load_model(f"path:{folder}").weights == expected


@pytest.mark.parametrize("keep", [0, 5, 1000, -1])
def test_truncated_weights(folder: Path, keep: int) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    assert "cannot read the weights" in error(f"path:{folder}")
    assert "cannot be read" in error(f"path:{file}?architecture=vit", config=VIT)


def test_nothing_there_is_missing(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"nothing at .*gone"):
        load_model("path:gone", base=tmp_path)
    with pytest.raises(MissingError, match="nothing at"):
        load_model("path:gone.safetensors?architecture=vit", base=tmp_path)


def test_a_folder_without_weights_is_missing(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(MissingError, match=r"no weights in .*model\.safetensors"):
        load_model(f"path:{folder}")


def test_a_folder_without_a_configuration(tmp_path: Path) -> None:
    assert "found no config.json" in error(f"path:{tmp_path}")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"model_type": "vitt"}', '{"model_type": 3}']
)
def test_an_unusable_configuration(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text)
    assert "config.json" in error(f"path:{folder}")


def test_configuration_overrides_apply_and_are_checked(folder: Path) -> None:
    loaded = load_model(f"path:{folder}", config={"layer_norm_eps": 0.5})
    module: Any = loaded.module
    assert module.layernorm.eps == 0.5
    assert loaded.architecture != load_model(f"path:{folder}").architecture
    assert "did you mean 'layer_norm_eps'" in error(
        f"path:{folder}", config={"layer_norm_epz": 0.5}
    )


def test_remote_code_needs_the_option(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        json.dumps({"model_type": "custom", "auto_map": {"AutoConfig": "custom.CustomConfig"}})
    )
    (tmp_path / "custom.py").write_text("raise RuntimeError('ran')")
    assert "--isotest-trust-remote-code" in error(f"path:{tmp_path}")
    assert "ran" in error(f"path:{tmp_path}", trust_remote_code=True)


def test_state_dicts_in_a_named_architecture(folder: Path, tmp_path: Path) -> None:
    expected = load_model(f"path:{folder}")
    head = classifier()
    base = head.vit
    for name, state in {
        "head, names of this release": head.state_dict(),
        "head, names of save_pretrained": load_file(folder / "model.safetensors"),
        "base": base.state_dict(),
        "base with a pooler": {**base.state_dict(), "pooler.dense.weight": torch.zeros(32, 32)},
    }.items():
        save_file(state, tmp_path / f"{name}.safetensors")
        loaded = load_model(f"path:{name}.safetensors?architecture=vit", base=tmp_path, config=VIT)
        assert loaded.weights == expected.weights, name
        assert loaded.architecture == expected.architecture, name


def test_state_dicts_that_do_not_fit(tmp_path: Path) -> None:
    def message(change: dict[str, torch.Tensor | None]) -> str:
        state = {**classifier().vit.state_dict(), **change}
        kept = {name: tensor for name, tensor in state.items() if tensor is not None}
        save_file(kept, tmp_path / "x.safetensors")
        return error("path:x.safetensors?architecture=vit", base=tmp_path, config=VIT)

    assert "1 missing (layernorm.bias)" in message({"layernorm.bias": None})
    assert "1 not part of it (extra)" in message({"extra": torch.ones(1)})
    assert "(2,) instead of (32,)" in message({"layernorm.bias": torch.ones(2)})


def test_files_that_are_no_state_dict(tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_text("not one")
    (tmp_path / "x.bin").write_bytes(b"")
    (tmp_path / "empty.safetensors").write_bytes(b"")
    assert "cannot be read" in error("path:x.safetensors?architecture=vit", base=tmp_path)
    assert "cannot be read" in error("path:empty.safetensors?architecture=vit", base=tmp_path)
    assert "pickled checkpoints (.bin, .pt, .ckpt) are not read" in error(
        "path:x.bin?architecture=vit", base=tmp_path
    )
    assert "add ?architecture=MODEL_TYPE" in error("path:x.safetensors", base=tmp_path)
    assert "unknown option 'architectur'; did you mean 'architecture'?" in error(
        "path:x.safetensors?architectur=vit", base=tmp_path
    )


def test_architecture_is_not_for_folders(folder: Path) -> None:
    assert "architecture= is for a safetensors file" in error(f"path:{folder}?architecture=vit")


# Standing in: --isotest-model NAME=FILE


@pytest.mark.parametrize("like", ["init:vit?seed=1", "path:entry", "python:tests.models.code:vit"])
def test_a_state_dict_takes_the_architecture_of_the_entry(tmp_path: Path, like: str) -> None:
    suite, checkpoints = tmp_path / "suite", tmp_path / "checkpoints"
    classifier(seed=1).save_pretrained(suite / "entry")
    checkpoints.mkdir()
    save_file(classifier(seed=2).state_dict(), checkpoints / "x.safetensors")
    entry = load_model(like, base=suite, config=VIT if like.startswith("init") else None)
    stand_in = load_model(
        "path:x.safetensors",
        base=checkpoints,
        like=like,
        like_base=suite,
        config=VIT if like.startswith("init") else None,
    )
    assert stand_in.architecture == entry.architecture
    assert stand_in.layers == entry.layers
    assert stand_in.weights != entry.weights
    assert stand_in.feed.describe() == entry.feed.describe()


def test_a_state_dict_of_another_model_is_refused(tmp_path: Path) -> None:
    save_file(classifier(num_hidden_layers=2).state_dict(), tmp_path / "x.safetensors")
    assert "16 missing (layers.2." in error(
        "path:x.safetensors", base=tmp_path, like="init:vit", config=VIT
    )


def test_a_folder_standing_in_ignores_the_entrys_configuration(folder: Path) -> None:
    stand_in = load_model(f"path:{folder}", like="init:vit", config={"hidden_size": 48})
    assert stand_in.architecture == load_model(f"path:{folder}").architecture


def test_a_stand_in_is_fed_what_the_entry_is_fed(folder: Path, tmp_path: Path) -> None:
    from transformers import ViTImageProcessor

    entry = tmp_path / "entry"
    classifier().save_pretrained(entry)
    for path, mean in ((entry, 0.25), (folder, 0.75)):
        ViTImageProcessor(size={"height": 32, "width": 32}, image_mean=[mean] * 3).save_pretrained(
            path
        )
    for like, expected in (("path:entry", "0.25"), ("init:vit", "0.5")):
        loaded = load_model(f"path:{folder}", like=like, like_base=tmp_path)
        assert loaded.feed.describe()["mean"] == " ".join([expected] * 3)
    alone = load_model(f"path:{folder}").feed.describe()
    assert alone["mean"] == "0.75 0.75 0.75"
