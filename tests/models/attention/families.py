"""Tiny models whose attention goes through transformers' interface, each with a batch of inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from isotest.data.dataset import Waveform
from isotest.data.load import as_data
from isotest.models import load_model
from tests.models.speech import clips
from tests.models.test_hidden_states import images
from tests.models.text import families as text
from tests.models.tiny import TRANSFORMERS

if TYPE_CHECKING:
    from isotest.models.loaded import LoadedModel, Piece

SWIN: dict[str, Any] = {
    "image_size": 32,
    "patch_size": 2,
    "embed_dim": 16,
    "depths": [2, 2],
    "num_heads": [2, 4],
    "window_size": 4,
}
TEXT = ("bert", "roberta", "gpt2", "albert", "t5", "bart", "llama", "gpt_neox", "character_bert")
VISION = ("vit", "deit", "beit", "segformer", "swin")
SPEECH = ("wav2vec2", "wav2vec2, layer norm", "hubert", "hubert, layer norm", "whisper")
NAMES = (*TEXT, *VISION, *SPEECH)


def loaded(name: str) -> LoadedModel:
    """A family's model, its weights so large that attention is far from uniform."""
    if name in TEXT:
        model = text.loaded(name)
    elif name in SPEECH:
        model = clips.loaded(name)
    else:
        config = SWIN if name == "swin" else TRANSFORMERS[name]
        model = load_model(f"init:{name}?seed=3", config=config)
    if name not in TEXT:
        generator = torch.Generator().manual_seed(4)
        for key, parameter in model.module.named_parameters():
            if key.endswith(("q_proj.weight", "k_proj.weight", "relative_position_bias_table")):
                noise = torch.randn(parameter.shape, generator=generator)
                with torch.inference_mode(False), torch.no_grad():
                    parameter.copy_(noise * 0.3)
    return model


def pieces(name: str, model: LoadedModel) -> list[Piece]:
    """Sequences that may share a batch; padded where the family knows padding."""
    if name in TEXT:
        return text.pieces(model, text.texts(text.FAMILIES[name]))
    if name in SPEECH:
        waves = [Waveform(clips.noise(3000 + 2500 * k, seed=k), 16_000) for k in range(4)]
        waves += [Waveform(clips.noise(3000, seed=9), 16_000)]
        first, *others = clips.pieces(model, waves)
        return [first, *(piece for piece in others if model.feed.together(first, piece))]
    return list(model.feed.pieces(as_data(images(3), "vision"), grouped=False))
