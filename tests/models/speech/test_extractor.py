"""Feature extractors: a folder's own settings, the library's default, and what is no good."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from transformers import (
    HubertConfig,
    HubertModel,
    Wav2Vec2FeatureExtractor,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperModel,
)

from isotest.data.dataset import Waveform
from isotest.errors import SourceError
from isotest.models import load_model
from tests.models.speech.clips import CONVOLUTIONAL, RANDOM, WHISPER, noise, pieces

if TYPE_CHECKING:
    from pathlib import Path

    from isotest.models import LoadedModel


@pytest.fixture
def hubert(tmp_path: Path) -> Path:
    HubertModel(HubertConfig(**CONVOLUTIONAL)).save_pretrained(tmp_path)
    return tmp_path


@pytest.fixture
def whisper(tmp_path: Path) -> Path:
    WhisperModel(WhisperConfig(**WHISPER)).save_pretrained(tmp_path)
    return tmp_path


def load(folder: Path) -> LoadedModel:
    return load_model(f"path:{folder}", modality="speech", reading=RANDOM)


def test_a_folder_without_settings_has_the_architectures_default(hubert: Path) -> None:
    untrained = load_model("init:hubert", modality="speech", config=CONVOLUTIONAL)
    assert load(hubert).feed.describe() == untrained.feed.describe()


def test_a_folder_that_save_pretrained_wrote_with_the_default_settings_is_the_same(
    hubert: Path,
) -> None:
    default = load(hubert).feed.describe()
    Wav2Vec2FeatureExtractor(do_normalize=True).save_pretrained(hubert)
    assert load(hubert).feed.describe() == default


def test_the_folders_own_rate_and_normalisation_are_used(hubert: Path) -> None:
    Wav2Vec2FeatureExtractor(sampling_rate=8000, do_normalize=False).save_pretrained(hubert)
    model = load(hubert)
    described = model.feed.describe()
    assert (described["rate"], described["normalisation"]) == (8000, "none")
    (piece,) = pieces(model, [Waveform(noise(4000), 8000)])
    values = model.feed.batch([piece]).arguments["input_values"]
    assert values[0].tolist() == noise(4000).tolist()


def test_whispers_own_settings_are_used(whisper: Path) -> None:
    default = load(whisper).feed.describe()
    WhisperFeatureExtractor(chunk_length=3).save_pretrained(whisper)
    stored = json.loads((whisper / "preprocessor_config.json").read_text())
    assert load(whisper).feed.describe() == default
    # Within the settings of a whole processor, as transformers 5 writes them.
    (whisper / "preprocessor_config.json").unlink()
    (whisper / "processor_config.json").write_text(
        json.dumps({"feature_extractor": {**stored, "n_fft": 512}})
    )
    assert load(whisper).feed.describe()["n_fft"] == 512


def test_a_window_that_is_not_the_models_is_refused(whisper: Path) -> None:
    WhisperFeatureExtractor(chunk_length=30).save_pretrained(whisper)
    with pytest.raises(SourceError, match=r"length 300, but found 3000"):
        load(whisper)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"feature_extractor_type": "SpeechT5FeatureExtractor"},
            "found 'SpeechT5FeatureExtractor'",
        ),
        ({"sampling_rate": 10**9}, "'sampling_rate' to be a whole number from 1 to 192000"),
        ({"sampling_rate": 16000.5}, "found 16000.5"),
        ({"sampling_rate": True}, "found True"),
        ({"feature_size": 2}, "'feature_size' to be a whole number from 1 to 1, found 2"),
        ({"do_normalize": "yes"}, "'do_normalize' true or false, found 'yes'"),
        ({"dither": 0.1}, "expected 'dither' to be 0, found 0.1"),
        (["sampling_rate"], "the settings of a feature extractor in"),
    ],
)
def test_settings_that_are_no_good(hubert: Path, settings: Any, message: str) -> None:
    (hubert / "preprocessor_config.json").write_text(json.dumps(settings))
    with pytest.raises(SourceError) as fault:
        load(hubert)
    assert message in str(fault.value)
    assert str(hubert) in str(fault.value)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\xff"])
def test_settings_that_are_damaged(hubert: Path, text: str) -> None:
    (hubert / "preprocessor_config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(SourceError, match=r"cannot be read .*; save the processor there again"):
        load(hubert)


def test_tables_of_any_size_are_not_made(whisper: Path) -> None:
    for key in ("n_fft", "feature_size", "chunk_length"):
        (whisper / "preprocessor_config.json").write_text(json.dumps({key: 10**9}))
        with pytest.raises(SourceError, match=f"{key!r} to be a whole number from 1 to"):
            load(whisper)
