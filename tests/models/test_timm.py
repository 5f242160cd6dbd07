"""``timm:``: untrained by seed, pretrained from the hub's cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import huggingface_hub.constants
import pytest
import timm
import torch
from safetensors.torch import save_file

from isotest.errors import MissingError, SourceError
from isotest.models import load_model
from tests.models.test_hub import COMMIT, no_network

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["no_network"]

NAME = "test_vit"


def cached(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A hub cache that holds weights for NAME; returns the model they are from."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(folder))
    module = timm.create_model(NAME, pretrained=False)
    described: Any = module.pretrained_cfg
    repository = folder / ("models--" + described["hf_hub_id"].replace("/", "--"))
    (repository / "snapshots" / COMMIT).mkdir(parents=True)
    save_file(module.state_dict(), repository / "snapshots" / COMMIT / "model.safetensors")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    return module


def test_seeds_repeat_and_differ_and_leave_the_generator_alone() -> None:
    before = torch.get_rng_state()
    first, again, other = (
        load_model(f"timm:{NAME}?pretrained=false&seed={seed}") for seed in (1, 1, 2)
    )
    assert first.weights == again.weights != other.weights
    assert first.architecture == other.architecture
    assert torch.equal(before, torch.get_rng_state())
    assert "timm" in first.versions


def test_pretrained_weights_come_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_network: list[Any]
) -> None:
    expected = cached(tmp_path, monkeypatch)
    loaded = load_model(f"timm:{NAME}")
    assert loaded.commit == COMMIT
    torch.testing.assert_close(loaded.module.get_parameter("norm.weight"), expected.norm.weight)
    torch.testing.assert_close(
        loaded.module.get_parameter("blocks.0.mlp.fc1.weight"), expected.blocks[0].mlp.fc1.weight
    )
    assert no_network == []


def test_weights_that_are_not_cached_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_network: list[Any]
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(MissingError) as caught:
        load_model(f"timm:{NAME}")
    assert "timm/test_vit" in caught.value.what
    assert "--isotest-download" in caught.value.remedy
    assert no_network == []


def test_preprocessing_is_timms_own() -> None:
    described = load_model("timm:resnet18?pretrained=false").feed.describe()
    assert described == {
        "size": "224x224",
        "resize": "shorter edge to 235",
        "interpolation": "bicubic",
        "mean": "0.485 0.456 0.406",
        "std": "0.229 0.224 0.225",
        "channels": 3,
    }


def test_a_state_dict_with_its_classifier_stands_in(tmp_path: Path) -> None:
    trained = timm.create_model(NAME, pretrained=False, num_classes=10)
    save_file(trained.state_dict(), tmp_path / "x.safetensors")
    like = f"timm:{NAME}?pretrained=false"
    loaded = load_model("path:x.safetensors", base=tmp_path, like=like)
    assert loaded.architecture == load_model(like).architecture
    torch.testing.assert_close(loaded.module.get_parameter("cls_token"), trained.cls_token)

    state = trained.state_dict()
    state["norm.weight"] = torch.ones(3)
    del state["norm.bias"]
    save_file({**state, "extra": torch.ones(1)}, tmp_path / "x.safetensors")
    with pytest.raises(SourceError) as caught:
        load_model("path:x.safetensors", base=tmp_path, like=like)
    for part in ("1 missing (norm.bias)", "not part of it (extra)", "norm.weight (3,) instead"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("source", "config", "message"),
    [
        ("timm:vit_tiny_patch16_225?pretrained=false", {}, "did you mean 'vit_tiny_patch16_224'?"),
        ("timm:hf-hub:timm/test_vit", {}, "timm has no model"),
        ("timm:test_vit?pretrained=maybe", {}, "true or false, found 'maybe'"),
        ("timm:test_vit?seed=1", {}, "seed is for untrained weights"),
        ("timm:test_vit?pretrained=false&seed=x", {}, "whole number"),
        ("timm:test_vit?pretraind=false", {}, "did you mean 'pretrained'?"),
        ("timm:test_vit?pretrained=false", {"depht": 3}, "depht"),
        ("timm:test_vit.zzz", {}, "Invalid pretrained tag (zzz) for test_vit"),
    ],
)
def test_bad_input_is_one_clear_message(
    source: str, config: dict[str, object], message: str
) -> None:
    with pytest.raises(SourceError) as caught:
        load_model(source, config=config)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
