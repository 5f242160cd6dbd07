"""Whisper: the spectrogram, which positions the recording reaches, what the decoder reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from transformers import WhisperFeatureExtractor

from isotest.data.dataset import Waveform
from isotest.errors import SourceError
from isotest.models import load_model
from isotest.models.reading import Reading
from tests.models.speech.clips import RANDOM, WHISPER, loaded, noise, pieces, sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isotest.models import LoadedModel

EIGHT = [Waveform(noise(4000 + 5555 * k, seed=k), 16_000) for k in range(8)]


def inputs_of(model: LoadedModel, waveforms: list[Waveform]) -> Any:
    return model.feed.batch(pieces(model, waveforms))


def by_definition(samples: NDArray[np.float32]) -> NDArray[np.float64]:
    """Whisper's log-mel of 3 s by Radford et al. (2022), section 2.2, frame by frame.

    Windows of 25 ms (Hann) every 10 ms, power, 80 mel bands; log10, clamped to 8 below the
    maximum, then scaled to about -1 to 1.
    """
    padded = np.zeros(48_000)
    padded[: len(samples)] = samples
    padded = np.pad(padded, 200, mode="reflect")
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    frames = np.stack([padded[160 * t : 160 * t + 400] * window for t in range(300)], axis=1)
    power = np.abs(np.fft.rfft(frames, axis=0)) ** 2
    log = np.log10(np.maximum(np.asarray(WhisperFeatureExtractor().mel_filters).T @ power, 1e-10))
    scaled: NDArray[np.float64] = (np.maximum(log, log.max() - 8) + 4) / 4
    return scaled


def test_features_are_whispers() -> None:
    model = loaded("whisper")
    found = inputs_of(model, EIGHT).arguments["input_features"]
    assert found.shape == (8, 80, 300)
    for row, waveform in enumerate(EIGHT):
        np.testing.assert_allclose(found[row], by_definition(waveform.samples), atol=2e-4)


def test_thirty_seconds_are_the_librarys_own_numbers() -> None:
    model = load_model(
        "init:whisper",
        modality="speech",
        reading=RANDOM,
        config={**WHISPER, "max_source_positions": 1500},
    )
    inputs = inputs_of(model, EIGHT[:2])
    library = WhisperFeatureExtractor()
    expected = library(
        [waveform.samples for waveform in EIGHT[:2]], sampling_rate=16_000, return_tensors="pt"
    )["input_features"]
    assert torch.equal(inputs.arguments["input_features"], expected)
    assert inputs.positions["encoder"].valid.shape == (2, 1500)


@pytest.mark.parametrize(
    ("samples", "positions"),
    [(1, 1), (160, 1), (320, 1), (321, 2), (16_000, 50), (47_681, 150), (48_000, 150)],
)
def test_positions_that_the_recording_reaches(samples: int, positions: int) -> None:
    # 50 positions a second; the last one is begun by the last sample.
    heard = inputs_of(loaded("whisper"), [Waveform(noise(samples), 16_000)]).positions["encoder"]
    assert heard.valid.sum() == positions
    assert heard.valid[0, :positions].all()
    assert not heard.special.any()


def test_where_only_silence_is_the_features_are_at_their_floor() -> None:
    """The mask and the features agree on where the recording ends, to one frame."""
    inputs = inputs_of(loaded("whisper"), [Waveform(noise(16_000), 16_000)])
    features = inputs.arguments["input_features"][0]
    heard = int(inputs.positions["encoder"].valid.sum())
    silent = features.max(dim=0).values == features.min()
    assert not silent[: 2 * heard].any()
    assert silent[2 * heard + 2 :].all()


def test_alone_and_in_a_batch_of_eight() -> None:
    model = loaded("whisper")
    module: Any = model.module
    first, *others = made = pieces(model, EIGHT)
    assert all(model.feed.together(first, other) for other in others)
    with torch.inference_mode():
        batch = module(**model.feed.batch(made).arguments)
        for row, piece in enumerate(made):
            alone = module(**model.feed.batch([piece]).arguments)
            for name in ("encoder_last_hidden_state", "last_hidden_state"):
                torch.testing.assert_close(batch[name][row], alone[name][0], rtol=1e-4, atol=1e-5)


def test_the_recording_is_heard_beside_its_silence_only() -> None:
    """The valid positions see the padding, as Whisper is made; other clips they do not."""
    model = loaded("whisper")
    module: Any = model.module
    inputs = inputs_of(model, EIGHT[:1])
    features = inputs.arguments["input_features"].clone()
    heard = inputs.positions["encoder"].valid
    with torch.inference_mode():
        before = module.encoder(features).last_hidden_state[heard]
        features[..., -1] += 1
        after = module.encoder(features).last_hidden_state[heard]
    assert (before - after).abs().max() > 1e-7


def test_longer_than_the_window_is_refused() -> None:
    model = loaded("whisper")
    with pytest.raises(SourceError) as fault:
        pieces(model, [EIGHT[0], Waveform(noise(48_001), 16_000)])
    assert str(fault.value) == (
        "recording clip-1.wav: is 3.00006 s long, and WhisperModel hears at most 3 s; cut it into "
        "shorter clips"
    )
    pieces(model, [Waveform(noise(3 * 44_100), 44_100)])  # exactly three seconds


def test_random_ids_are_drawn_by_the_number_of_the_clip() -> None:
    model = loaded("whisper")
    inputs = inputs_of(model, EIGHT[:3])
    ids = inputs.arguments["decoder_input_ids"]
    assert ids.shape == (3, 33)
    assert (ids[:, 0] == 98).all()
    # All but start, padding, end.
    assert not torch.isin(ids[:, 1:], torch.tensor([97, 98])).any()
    assert ids.max() < 100
    drawn = np.random.default_rng(2).integers(98, size=32)
    assert ids[2, 1:].tolist() == [k if k < 97 else 99 for k in drawn]
    assert inputs.positions["decoder"].special.sum(dim=0).tolist() == [3] + [0] * 32
    # Whatever is heard, and whoever is beside it.
    again = list(model.feed.pieces([sample(EIGHT[7], 2)], grouped=False))
    assert model.feed.batch(again).arguments["decoder_input_ids"].tolist() == [ids[2].tolist()]


def test_never_more_ids_than_the_decoder_has_positions() -> None:
    config = {**WHISPER, "max_target_positions": 10}
    model = load_model("init:whisper", modality="speech", reading=RANDOM, config=config)
    assert inputs_of(model, EIGHT[:1]).arguments["decoder_input_ids"].shape == (1, 10)


def test_what_is_described() -> None:
    model = loaded("whisper")
    assert "ids" not in model.feed.describe()
    pieces(model, EIGHT[:2])
    described = dict(model.feed.describe())
    first = described.pop("ids")
    assert described == {
        "rate": 16_000,
        "resampling": "sinc_interp_hann",
        "lowpass_filter_width": 6,
        "rolloff": 0.99,
        "input": "log-mel",
        "bins": 80,
        "n_fft": 400,
        "hop_length": 160,
        "seconds": 3,
        "decoder": "random",
    }
    pieces(model, EIGHT[:2])
    assert model.feed.describe()["ids"] == first
    pieces(model, EIGHT[:3])
    assert model.feed.describe()["ids"] != first


def test_the_text_itself_is_nothing_to_read() -> None:
    with pytest.raises(SourceError, match="decoder = 'input' is for text models"):
        load_model(
            "init:whisper", modality="speech", reading=Reading(decoder="input"), config=WHISPER
        )
