"""Models of our own, and models without attention: who observes them, and a whole measurement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn

import isotest
from isotest.data.load import as_data
from isotest.models import load_model
from isotest.models.attention.registry import observer_of
from isotest.models.reading import Reading
from tests.feeding import arguments
from tests.models.attention.witness import probabilities, watched
from tests.models.tiny import TIMM, TRANSFORMERS

if TYPE_CHECKING:
    from torch import Tensor

    from isotest.profile import LayerProfile, Profile

CHARACTER_BERT: dict[str, Any] = {
    "cnn_filters": [[1, 4], [2, 4]],
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 64,
    "initializer_range": 0.3,
}
MANTA: dict[str, Any] = {
    "byte_embedding_dim": 16,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "frontier_predictor_num_attention_heads": 2,
    "frontier_predictor_attention_window": 4,
    "max_length_inputs": 96,
    "max_length_encoder_decoder": 24,
}
XLNET = {"d_model": 24, "n_layer": 3, "n_head": 3, "d_inner": 16, "vocab_size": 6000}
CANINE = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "local_transformer_stride": 16,
    "num_hash_buckets": 32,
    "max_position_embeddings": 64,
}
VAN = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1]}
TEXTS = ("one text, of some length", "another")
DOCUMENTS = Reading(packing="documents", length=24)


class Convolutions(nn.Module):
    """Neither queries nor keys."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.blocks = nn.Sequential(
            *(nn.Sequential(nn.Conv2d(3, 3, 3, padding=1), nn.ReLU()) for _ in range(2))
        )

    def forward(self, pixel_values: Tensor) -> Tensor:
        maps: Tensor = self.blocks(pixel_values)
        return maps


class Encoder(nn.Module):
    """Attention of torch's own, which runs without a softmax that Python sees."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.stem = nn.Conv2d(3, 16, 16, 16)
        self.blocks = nn.Sequential(
            *(nn.TransformerEncoderLayer(16, 2, 16, batch_first=True) for _ in range(2))
        )

    def forward(self, pixel_values: Tensor) -> Tensor:
        tokens: Tensor = self.blocks(self.stem(pixel_values).flatten(2).mT)
        return tokens


def test_character_berts_encoder_is_berts() -> None:
    loaded = load_model(
        "init:character_bert", modality="characters", reading=DOCUMENTS, config=CHARACTER_BERT
    )
    module: Any = loaded.module
    module.set_attn_implementation("eager")
    inputs = texts(loaded)
    seen = watched(module, inputs, observer_of, output_attentions=True)
    assert len(seen.calls) == 3
    valid = inputs["attention_mask"].bool()
    assert not valid.all()
    for calls, expected in zip(seen.calls.values(), seen.output.attentions, strict=True):
        rows = valid[:, None].expand(expected.shape[:3])
        torch.testing.assert_close(probabilities(calls[0])[rows], expected[rows], rtol=0, atol=1e-5)


def test_manta_lms_stacks_are_t5s() -> None:
    loaded = load_model("init:manta", modality="characters", reading=DOCUMENTS, config=MANTA)
    module: Any = loaded.module
    for stack in (module.encoder, module.decoder):
        stack.set_attn_implementation("eager")
    seen = watched(module, texts(loaded), observer_of, output_attentions=True)
    stacks = {
        "encoder.block.{}.layer.0.SelfAttention": seen.output.encoder_attentions,
        "decoder.block.{}.layer.0.SelfAttention": seen.output.decoder_attentions,
        "decoder.block.{}.layer.1.EncDecAttention": seen.output.cross_attentions,
    }
    assert len(seen.calls) == 6
    for path, attentions in stacks.items():
        for number, expected in enumerate(attentions):
            (call,) = seen.calls[path.format(number)]
            assert call.cross is ("EncDec" in path)
            found = probabilities(call)
            counted = found.sum(-1) > 0  # the others see nothing: padding
            torch.testing.assert_close(found[counted], expected[counted], rtol=0, atol=1e-5)
    # What looks for frontiers between bytes lies in front of the layers.
    assert all(path.startswith("frontier_predictor.") for path in seen.unseen)


WITHOUT: dict[str, tuple[Any, dict[str, Any]]] = {
    "van": ("init:van", VAN),
    "resnet": ("init:resnet", TRANSFORMERS["resnet"]),
    "convnext": ("init:convnext", TRANSFORMERS["convnext"]),
    "efficientnet": ("init:efficientnet", TRANSFORMERS["efficientnet"]),
    "timm's resnet": ("timm:resnet10t?pretrained=false", {}),
    "timm's convnext": ("timm:convnext_atto?pretrained=false", TIMM["convnext_atto"]),
    "a module": (Convolutions(), {}),
}


@pytest.mark.parametrize("kind", WITHOUT)
def test_convolutions_have_no_attention(kind: str) -> None:
    source, config = WITHOUT[kind]
    profile = measured(source, "sample:photographs", config=config)
    for layer in profile.layers:
        found = layer.estimates["attention_entropy"]
        assert found.value is None
        assert found.vacuous
        assert found.undefined == "no attention at this layer"


def test_what_torch_computes_in_one_is_not_observable_and_not_absent() -> None:
    profile = measured(Encoder(), "sample:photographs")
    for layer in profile.layers:
        found = layer.estimates["attention_entropy"]
        assert found.value is None
        assert not found.vacuous
        assert "not observable: nothing is known of how Encoder" in str(found.undefined)


def test_what_is_unknown_in_a_layer_stands_at_that_layer() -> None:
    profile = measured("timm:xcit_nano_12_p16_224?pretrained=false", "sample:photographs")
    reasons = [str(layer.estimates["attention_entropy"].undefined) for layer in profile.layers]
    assert reasons[0] == "no attention at this layer"
    assert all("timm.models.xcit.XCA" in reason for reason in reasons[1:])


TEXT = {"data": "sample:passages", "length": 24}
IMAGES = {"data": "sample:photographs"}
TOKENS = TEXT | {"modality": "text", "tokenizer": "sample:tokenizer"}
CHARACTERS = TEXT | {"modality": "characters"}
TOLD: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "xlnet": ("init:xlnet", TOKENS | {"config": XLNET}, ["1", "2", "3"]),
    "xlnet, padded": (
        "init:xlnet",
        TOKENS | {"config": XLNET, "packing": "documents"},
        ["1", "2", "3"],
    ),
    "canine": (
        "init:canine",
        CHARACTERS | {"config": CANINE, "packing": "documents"},
        ["characters.1", "molecules.1", "molecules.2", "upsampled.1"],
    ),
    "character bert": (
        "init:character_bert",
        CHARACTERS | {"config": CHARACTER_BERT},
        ["1", "2", "3"],
    ),
    "manta": (
        "init:manta",
        CHARACTERS | {"config": MANTA},
        ["encoder.1", "encoder.2", "decoder.1", "decoder.2"],
    ),
    "cvt": ("init:cvt", IMAGES | {"config": TRANSFORMERS["cvt"]}, ["1", "2", "3"]),
    **{
        name: (f"timm:{name}?pretrained=false", IMAGES | {"config": TIMM[name]}, layers)
        for name, layers in {
            "vit_tiny_patch16_224": ["1", "2", "3"],
            "deit_tiny_distilled_patch16_224": ["1", "2"],
            "beit_base_patch16_224": ["1", "2"],
            "swin_tiny_patch4_window7_224": ["1", "2", "3", "4"],
        }.items()
    },
}


@pytest.mark.parametrize("kind", TOLD)
def test_no_layer_with_attention_is_silent(kind: str) -> None:
    source, arguments, expected = TOLD[kind]
    profile = measured(source, **arguments)
    assert [layer.name for layer in profile.layers if entropy(layer) is not None] == expected
    for layer in profile.layers:
        value = entropy(layer)
        if value is not None:
            assert 0 < value <= 1
        else:
            assert layer.estimates["attention_entropy"].undefined == "no attention at this layer"
    assert not any(
        "not observable" in str(estimate.undefined)
        for layer in profile.layers
        for estimate in layer.estimates.values()
    )


def texts(loaded: Any) -> dict[str, Tensor]:
    pieces = loaded.feed.pieces(as_data(TEXTS, "text"), grouped=False)
    return dict(arguments(loaded, [piece.content for piece in pieces]))


def measured(source: Any, data: str, **arguments: Any) -> Profile:
    return isotest.measure(
        source,
        data,
        samples=6,
        metrics=["attention_entropy", "attention_query_norm", "cross_attention_entropy"],
        **arguments,
    )


def entropy(layer: LayerProfile) -> float | None:
    return layer.estimates["attention_entropy"].value
