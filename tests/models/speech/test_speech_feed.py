"""Which models are fed recordings, and how: the rest is refused, or brings its own way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import nn

import isotest
from isotest.errors import SourceError
from isotest.models import load_model
from isotest.models.load import borrow_module
from tests.models.speech.clips import CONVOLUTIONAL, loaded, noise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from isotest.data.dataset import Waveform

BERT = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "conv_depthwise_kernel_size": 3,
}


def test_models_that_hear_in_another_way_are_refused() -> None:
    with pytest.raises(SourceError, match=r"or Whisper, found Wav2Vec2BertModel; a python: source"):
        load_model("init:wav2vec2-bert", modality="speech", config=BERT)


def test_a_module_that_says_nothing_of_itself_is_refused() -> None:
    class Net(nn.Module):
        def forward(self, input_values: Tensor) -> Tensor:
            return input_values

    with (
        pytest.raises(SourceError, match="expected a model that hears waveforms"),
        borrow_module(Net(), modality="speech"),
    ):
        pass


def test_images_preprocessing_has_no_place() -> None:
    with pytest.raises(SourceError, match="'preprocess' is about images"):
        load_model(
            "init:wav2vec2", modality="speech", config=CONVOLUTIONAL, preprocess={"size": 224}
        )


class Energies:
    """A preprocessing of one's own: the energy of each tenth of a clip."""

    def __call__(self, waveforms: Sequence[Waveform]) -> Mapping[str, Tensor]:
        rows = [np.add.reduceat(w.samples**2, range(0, 1000, 100))[:10] for w in waveforms]
        return {"energies": torch.tensor(np.array(rows))[..., None]}

    def describe(self) -> Mapping[str, str | int | float]:
        return {"energies": 10}


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 8)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.linear(x)
        return out


class OwnWay(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(1, 8)
        self.blocks = nn.ModuleList([Block(8), Block(8)])

    def forward(self, energies: Tensor) -> Tensor:
        x: Tensor = self.stem(energies)
        for block in self.blocks:
            x = block(x)
        return x


def own_way() -> tuple[nn.Module, Energies]:
    torch.manual_seed(0)
    return OwnWay(), Energies()


def test_a_model_may_bring_its_own_way() -> None:
    clips = [(noise(1000, seed), 16_000) for seed in range(4)]
    profile = isotest.measure(f"python:{__name__}:own_way", clips, modality="speech")
    assert [layer.name for layer in profile.layers] == ["0", "1", "2"]
    assert {layer.representations for layer in profile.layers} == {40}


def test_a_model_in_training_is_measured_and_given_back() -> None:
    model: Any = loaded("wav2vec2").module.train()
    clips = [(noise(4000 + seed, seed), 16_000) for seed in range(3)]
    profile = isotest.measure(model, clips, modality="speech")
    assert model.training
    # ⌊(n − 400) / 320⌋ + 1 frames a clip.
    assert profile.layers[0].representations == 3 * 12
