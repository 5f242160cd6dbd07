"""``init:``: seeded weights that repeat, and every way to misspell one."""

from __future__ import annotations

import pytest
import torch

from isotest.errors import SourceError
from isotest.models import load_model
from tests.models.tiny import TRANSFORMERS, VIT


def test_a_seed_repeats_and_another_differs() -> None:
    first, again, other = (
        load_model(f"init:vit?seed={seed}", config=VIT).weights for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_no_seed_is_seed_0() -> None:
    assert (
        load_model("init:vit", config=VIT).weights
        == load_model("init:vit?seed=0", config=VIT).weights
    )


@pytest.mark.parametrize("model_type", sorted(TRANSFORMERS))
def test_torchs_generator_is_left_as_it_was(model_type: str) -> None:
    before = torch.get_rng_state()
    load_model(f"init:{model_type}?seed=5", config=TRANSFORMERS[model_type])
    assert torch.equal(before, torch.get_rng_state())


def test_weights_do_not_depend_on_torchs_generator_or_the_dtype() -> None:
    torch.manual_seed(1)
    first = load_model("init:vit", config=VIT)
    torch.manual_seed(2)
    second = load_model("init:vit", config=VIT, dtype="bfloat16")
    assert first.weights == second.weights
    assert next(second.module.parameters()).dtype is torch.bfloat16


def test_the_model_is_in_eval_mode_without_gradients() -> None:
    module = load_model("init:efficientnet", config=TRANSFORMERS["efficientnet"]).module
    assert not any(part.training for part in module.modules())
    assert not any(parameter.requires_grad for parameter in module.parameters())


def test_the_default_configuration_has_its_real_size() -> None:
    loaded = load_model("init:vit")
    assert [layer.name for layer in loaded.layers] == [str(k) for k in range(13)] + ["final"]
    # ViT-B/16 without pooler and head: 86M minus the head's 0.77M (Dosovitskiy et al. 2021).
    assert sum(p.numel() for p in loaded.module.parameters()) == 85_798_656
    assert loaded.feed.describe()["size"] == "224x224"
    assert loaded.commit is None
    assert {"torch", "transformers"} <= set(loaded.versions)


@pytest.mark.parametrize(
    ("source", "config", "message"),
    [
        ("init:vitt", {}, "unknown model type 'vitt'; did you mean 'vit'?"),
        ("init:0", {}, "unknown model type '0'; expected a transformers model type such as"),
        ("init:vit?sed=1", {}, "unknown option 'sed'; did you mean 'seed'?"),
        ("init:vit?seed=-1", {}, "expected seed to be a whole number from 0, found '-1'"),
        ("init:vit?seed=1.5", {}, "found '1.5'"),
        ("init:vit?seed=", {}, "found ''"),
        (f"init:vit?seed={2**64}", {}, "whole number"),
        ("init:vit", {"hidden_sise": 3}, "no configuration key 'hidden_sise'; did you mean"),
        ("init:vit", {"hidden_size": "x"}, "configuration refuses the values"),
        ("init:vit", {**VIT, "patch_size": 0}, "cannot build the model"),
        ("init:vit", {**VIT, "num_channels": 5}, "1 or 3 channels, found num_channels = 5"),
        (
            "init:bert",
            {"num_hidden_layers": 1},
            "BertModel takes texts, and the modality is 'vision'",
        ),
        ("init:clip_text_model_zzz", {}, "unknown model type"),
        ("initt:vit", {}, "unknown scheme 'initt'; did you mean 'init'?"),
    ],
)
def test_bad_input_is_one_clear_message(
    source: str, config: dict[str, object], message: str
) -> None:
    with pytest.raises(SourceError) as caught:
        load_model(source, config=config)
    assert message in str(caught.value)
    assert source in str(caught.value)
    assert "\n" not in str(caught.value)
