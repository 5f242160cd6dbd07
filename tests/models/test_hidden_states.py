"""What is observed is what the libraries themselves return, for every family of the suites."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from PIL import Image

from isotest.models import LoadedModel, load_model
from tests.feeding import arguments
from tests.models.tiny import TIMM, TRANSFORMERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor


def images(count: int = 2) -> list[Image.Image]:
    noise = torch.randint(256, (count, 80, 96, 3), generator=torch.Generator().manual_seed(1))
    return [Image.fromarray(pixels.to(torch.uint8).numpy()) for pixels in noise]


def observed(loaded: LoadedModel, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Each layer's output, taken by hooks exactly as the measurement does it."""
    outputs: dict[str, Tensor] = {}

    def hook_of(name: str, select: Any) -> Any:
        def hook(_module: Any, _inputs: Any, output: Any) -> None:
            assert name not in outputs
            outputs[name] = select(output).clone()

        return hook

    handles = [
        loaded.module.get_submodule(layer.path).register_forward_hook(
            hook_of(layer.name, layer.select)
        )
        for layer in loaded.layers
    ]
    with torch.inference_mode():
        loaded.module(**inputs)
    for handle in handles:
        handle.remove()
    return outputs


# Of each model type: which entry of hidden_states is which layer; whether last_hidden_state is
# the layer "final"; what has no entry and is checked by itself below.
FIRST_ENTRY = {"segformer": 1, "cvt": 1}
FINAL = {"vit", "deit", "efficientnet"}
COUNT = {"vit": 4, "deit": 4, "beit": 4, "segformer": 4, "resnet": 5, "cvt": 3, "convnext": 5}
KIND = {"vit": "tokens", "deit": "tokens", "beit": "tokens"}
PREFIX = {"vit": 1, "deit": 2, "beit": 1}


@pytest.mark.parametrize("model_type", sorted(TRANSFORMERS))
def test_layers_equal_output_hidden_states(model_type: str) -> None:
    loaded = load_model(f"init:{model_type}?seed=3", config=TRANSFORMERS[model_type])
    inputs = arguments(loaded, images())
    found = observed(loaded, inputs)
    with torch.inference_mode():
        output = loaded.module(**inputs, output_hidden_states=True)
    states = output.hidden_states
    assert len(states) == COUNT.get(model_type, len(states))
    offset = FIRST_ENTRY.get(model_type, 0)
    for k, state in enumerate(states, start=offset):
        torch.testing.assert_close(found.pop(str(k)), state, rtol=0, atol=0)
    if model_type in FINAL:
        torch.testing.assert_close(found.pop("final"), output.last_hidden_state, rtol=0, atol=0)
    assert set(found) == ({"0"} if offset else set())


@pytest.mark.parametrize("model_type", sorted(TRANSFORMERS))
def test_kinds_prefixes_and_representation(model_type: str) -> None:
    loaded = load_model(f"init:{model_type}", config=TRANSFORMERS[model_type])
    blocks = [layer for layer in loaded.layers if layer.name.isdigit() and layer.name != "0"]
    assert {layer.kind for layer in blocks} == {KIND.get(model_type, "map")}
    assert {layer.prefix for layer in loaded.layers} == {PREFIX.get(model_type, 0)}
    positions = model_type in {*KIND, "segformer"}
    assert loaded.default_representation == ("positions" if positions else "flattened")


def test_vit_final_is_the_norm_of_the_last_block() -> None:
    loaded = load_model("init:vit", config=TRANSFORMERS["vit"])
    found = observed(loaded, arguments(loaded, images()))
    last = found[str(TRANSFORMERS["vit"]["num_hidden_layers"])]
    with torch.inference_mode():
        normed = loaded.module.get_submodule("layernorm")(last)
    torch.testing.assert_close(found["final"], normed)
    assert not torch.allclose(found["final"], last)


@pytest.mark.parametrize(("model_type", "stage"), [("segformer", "stages.0"), ("cvt", "embedding")])
def test_stems_without_an_entry_are_what_enters_the_first_block(
    model_type: str, stage: str
) -> None:
    loaded = load_model(f"init:{model_type}", config=TRANSFORMERS[model_type])
    inputs = arguments(loaded, images())
    entering: list[Tensor] = []
    first = "stages.0.blocks.0" if model_type == "segformer" else "encoder.stages.0.layers.0"
    handle = loaded.module.get_submodule(first).register_forward_pre_hook(
        lambda _module, args: entering.append(args[0])
    )
    stem = observed(loaded, inputs)["0"]
    handle.remove()
    tokens = stem if stem.dim() == 3 else stem.flatten(2).transpose(1, 2)
    torch.testing.assert_close(tokens, entering[0], rtol=0, atol=0)


def test_segformer_without_its_last_reshape_has_tokens_there() -> None:
    config = {**TRANSFORMERS["segformer"], "reshape_last_stage": False}
    loaded = load_model("init:segformer", config=config)
    assert [layer.kind for layer in loaded.layers] == ["tokens", "map", "map", "map", "tokens"]


@pytest.mark.parametrize("name", sorted(TIMM))
def test_layers_equal_timms_forward_intermediates(name: str) -> None:
    loaded = load_model(f"timm:{name}?pretrained=false&seed=3", config=TIMM[name])
    (x,) = arguments(loaded, images()).values()
    found = observed(loaded, arguments(loaded, images()))
    module: Any = loaded.module
    tokens = "patch" in name and "swin" not in name
    extra: dict[str, Any] = {"extra_blocks": True} if name.startswith("efficientnet") else {}
    with torch.inference_mode():
        if tokens:
            final, features = module.forward_intermediates(
                x, output_fmt="NLC", return_prefix_tokens=True
            )
            features = [torch.cat([prefix, patches], 1) for patches, prefix in features]
        else:
            final, features = module.forward_intermediates(x, **extra)
    first = 0 if name.startswith(("resnet", "efficientnet")) else 1
    for k, feature in enumerate(features, start=first):
        torch.testing.assert_close(found.pop(str(k)), feature, rtol=0, atol=0)
    if "final" in found:
        last = found.pop("final")
        last = last if tokens or last.shape == final.shape else last.permute(0, 2, 3, 1)
        torch.testing.assert_close(last, final, rtol=0, atol=0)
    assert set(found) <= {"0"}
    prefixes = {"deit_tiny_distilled_patch16_224": 2, "vit_tiny_patch16_224": 1}
    assert {layer.prefix for layer in loaded.layers} == {prefixes.get(name, int(tokens))}


@pytest.mark.parametrize("name", ["vit_tiny_patch16_224", "beit_base_patch16_224"])
def test_timm_embedding_is_what_enters_the_first_block(name: str) -> None:
    loaded = load_model(f"timm:{name}?pretrained=false", config=TIMM[name])
    entering: list[Tensor] = []
    loaded.module.get_submodule("blocks.0").register_forward_pre_hook(
        lambda _module, args: entering.append(args[0])
    )
    stem = observed(loaded, arguments(loaded, images()))["0"]
    torch.testing.assert_close(stem, entering[0], rtol=0, atol=0)
    assert stem.shape[1] == 1 + 16


def test_half_precision_and_double_run() -> None:
    for dtype in ("float64", "bfloat16"):
        loaded = load_model("init:vit", config=TRANSFORMERS["vit"], dtype=dtype)
        inputs = {
            key: value.to(getattr(torch, dtype))
            for key, value in arguments(loaded, images()).items()
        }
        assert observed(loaded, inputs)["1"].dtype == getattr(torch, dtype)
