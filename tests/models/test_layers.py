"""Layers that are found, layers that are named, and modules that are no layer."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from PIL import Image
from torch import nn
from transformers import AutoConfig, AutoModel

from isotest.errors import SourceError
from isotest.measurement import measure
from isotest.models import load_model
from isotest.models.layers import observe
from isotest.models.loaded import Inputs
from tests.models.code import plain
from tests.models.tiny import VIT

CODE = "python:tests.models.code:"


def test_named_paths_become_numbered_layers() -> None:
    loaded = load_model("init:vit", config=VIT, layers=["embeddings", "layers.0.mlp", "layernorm"])
    assert [(layer.name, layer.path, layer.prefix) for layer in loaded.layers] == [
        ("0", "embeddings", 1),
        ("1", "layers.0.mlp", 1),
        ("2", "layernorm", 1),
    ]


class Chain(nn.Module):
    """A list of bare layers, which is no list of blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 8, 8)
        self.parts = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        x: torch.Tensor = self.stem(pixel_values).flatten(2).transpose(1, 2)
        for part in self.parts:
            x = part(x)
        return x


def test_the_layers_that_a_message_names_can_be_observed() -> None:
    images = [Image.new("RGB", (32, 32), (value, 0, 0)) for value in range(0, 200, 20)]
    with pytest.raises(SourceError) as caught:
        measure(Chain(), images, preprocess={"size": 32})
    advice = str(caught.value).partition("layers = ")[2]
    assert advice == "['stem', 'parts.0', 'parts.1']"
    profile = measure(
        Chain(), images, preprocess={"size": 32}, layers=json.loads(advice.replace("'", '"'))
    )
    assert [layer.module for layer in profile.layers] == ["stem", "parts.0", "parts.1"]


def test_names_may_be_given() -> None:
    loaded = load_model(
        f"{CODE}plain", layers={"stem": "stem", "middle": "body.1", "last": "body.2"}
    )
    assert [(layer.name, layer.kind) for layer in loaded.layers] == [
        ("stem", "map"),
        ("middle", "tokens"),
        ("last", "tokens"),
    ]


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (["body.0", "bodi.1"], "layer '1': Plain has no module 'bodi.1'; did you mean 'body.1'?"),
        (
            {"a": "zzzzz"},
            "layer 'a': Plain has no module 'zzzzz'; its parts are stem, tokens, body",
        ),
        ([""], "has no module ''"),
        ([], "layers names no module"),
        (["unused"], "(module unused): expected it to run once in a forward pass, it ran 0 times"),
        (["twice"], "(module twice): expected it to run once in a forward pass, it ran 2 times"),
        (["scalar"], "or vectors (batch, width), found (6272,)"),
        (["body"], "(module body): expected it to run once in a forward pass, it ran 0 times"),
    ],
)
def test_paths_that_are_no_layer(layers: Any, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        load_model(f"{CODE}plain", layers=layers)
    assert message in str(caught.value)


def test_hooks_of_the_search_are_gone() -> None:
    module = load_model(f"{CODE}plain").module
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())


def test_depth_one_is_a_list_of_one_and_its_input_is_the_stem() -> None:
    observation = observe(plain(depth=1), Inputs({"image": torch.zeros(1, 3, 16, 16)}), "here")
    assert [layer.name for layer in observation.layers] == ["0", "1", "final"]
    assert [layer.side for layer in observation.layers] == ["input", "output", "output"]


@pytest.mark.parametrize(
    ("model_type", "config", "stem", "final"),
    [
        ("bert", {"num_hidden_layers": 2, "intermediate_size": 16}, "embeddings", None),
        ("gpt2", {"n_layer": 2}, "drop", "ln_f"),
        ("llama", {"num_hidden_layers": 2, "intermediate_size": 16}, "embed_tokens", "norm"),
    ],
)
def test_language_models_need_no_entry(
    model_type: str, config: dict[str, Any], stem: str, final: str | None
) -> None:
    tiny = {"hidden_size": 8, "num_attention_heads": 2, "vocab_size": 11, **config}
    if model_type == "llama":
        tiny["num_key_value_heads"] = 2
    auto: Any = AutoModel
    module = auto.from_config(AutoConfig.for_model(model_type, **tiny)).eval()
    inputs = {"input_ids": torch.arange(6)[None]}
    layers = observe(module, Inputs(inputs), "here").layers
    names = ["0", "1", "2"] + (["final"] if final else [])
    assert [layer.name for layer in layers] == names
    assert layers[0].path == stem
    assert final is None or layers[-1].path == final

    outputs: dict[str, torch.Tensor] = {}
    for layer in layers:
        module.get_submodule(layer.path).register_forward_hook(
            lambda _m, _i, output, layer=layer: outputs.update({layer.name: layer.select(output)})
        )
    with torch.inference_mode():
        states = module(**inputs, output_hidden_states=True).hidden_states
    for k, state in enumerate(states[:-1] if final else states):
        torch.testing.assert_close(outputs[str(k)], state, rtol=0, atol=0)
    if final:
        torch.testing.assert_close(outputs["final"], states[-1], rtol=0, atol=0)


def test_parts_of_layers_are_not_taken_for_layers() -> None:
    """XLM keeps its layers in four lists side by side, the largest of feed-forward parts alone."""
    config = {"emb_dim": 8, "n_heads": 2, "n_layers": 3, "n_words": 11}
    auto: Any = AutoModel
    module = auto.from_config(AutoConfig.for_model("xlm", **config)).eval()
    with pytest.raises(SourceError, match=r"ffns\.0 … ffns\.2 of XLMModel .* does not enter"):
        observe(module, Inputs({"input_ids": torch.arange(6)[None]}), "here")
