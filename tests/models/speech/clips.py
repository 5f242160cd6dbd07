"""Recordings to feed, and speech models small enough to run in milliseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isotest.data.dataset import Sample, Waveform
from isotest.models import load_model
from isotest.models.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy import float32
    from numpy.typing import NDArray

    from isotest.models import LoadedModel
    from isotest.models.loaded import Piece

CONVOLUTIONAL: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "conv_dim": [16] * 7,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
}
LAYER_NORM: dict[str, Any] = {
    **CONVOLUTIONAL,
    "feat_extract_norm": "layer",
    "conv_bias": True,
    "do_stable_layer_norm": True,
}
# Three seconds instead of thirty.
WHISPER: dict[str, Any] = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "vocab_size": 100,
    "decoder_start_token_id": 98,
    "bos_token_id": 97,
    "eos_token_id": 97,
    "pad_token_id": 97,
    "max_source_positions": 150,
    "max_target_positions": 40,
    "begin_suppress_tokens": None,
}

RANDOM = Reading(decoder="random")

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "wav2vec2": ("init:wav2vec2?seed=1", CONVOLUTIONAL),
    "wav2vec2, layer norm": ("init:wav2vec2?seed=1", LAYER_NORM),
    "hubert": ("init:hubert?seed=1", CONVOLUTIONAL),
    "hubert, layer norm": ("init:hubert?seed=1", LAYER_NORM),
    "whisper": ("init:whisper?seed=1", WHISPER),
}


def loaded(name: str) -> LoadedModel:
    """One of ``MODELS``."""
    source, config = MODELS[name]
    return load_model(source, modality="speech", reading=RANDOM, config=config)


def noise(count: int, seed: int = 0) -> NDArray[float32]:
    """White noise, off centre and quiet, so that normalisation shows."""
    return np.random.default_rng(seed).normal(0.05, 0.1, count).astype(np.float32)


def sample(waveform: Waveform, index: int = 0) -> Sample:
    """A recording as a data set yields it."""
    return Sample(index, index, f"clip-{index}.wav", waveform, b"")


def pieces(model: LoadedModel, waveforms: Iterable[Waveform]) -> list[Piece]:
    """What a measurement makes of these recordings."""
    samples = [sample(waveform, index) for index, waveform in enumerate(waveforms)]
    return list(model.feed.pieces(samples, grouped=False))
