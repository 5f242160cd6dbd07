"""Waveform models: how many frames, which of them count, and that no clip sees its batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from isotest.data.dataset import Waveform
from isotest.errors import SourceError
from isotest.models import load_model
from isotest.models.batches import batches
from tests.models.speech.clips import CONVOLUTIONAL, LAYER_NORM, loaded, noise, pieces

if TYPE_CHECKING:
    from isotest.models import LoadedModel

FAMILIES = ["wav2vec2", "hubert"]
EIGHT = [Waveform(noise(4000 + 777 * k, seed=k), 16_000) for k in range(8)]


def last(model: LoadedModel, waveforms: list[Waveform]) -> tuple[torch.Tensor, torch.Tensor]:
    """Last hidden states and valid frames of one batch."""
    inputs = model.feed.batch(pieces(model, waveforms))
    module: Any = model.module
    with torch.inference_mode():
        return module(**inputs.arguments).last_hidden_state, inputs.positions["frames"].valid


@pytest.mark.parametrize("family", FAMILIES)
def test_frames_are_those_of_the_models_own_convolutions(family: str) -> None:
    model = loaded(family)
    for count in (400, 401, 719, 720, 721, 16_000, 33_408):
        states, valid = last(model, [Waveform(noise(count), 16_000)])
        assert valid.all()
        assert states.shape[1] == valid.shape[1]
    # 400 samples are one frame, every further 320 another one (Baevski et al. 2020).
    assert [last(model, [Waveform(noise(n), 16_000)])[1].sum() for n in (719, 720)] == [1, 2]


@pytest.mark.parametrize("family", FAMILIES)
def test_padded_clips_have_the_frames_that_the_library_masks(family: str) -> None:
    model = loaded(f"{family}, layer norm")
    inputs = model.feed.batch(pieces(model, EIGHT))
    module: Any = model.module
    mask = inputs.arguments["attention_mask"]
    frames = inputs.positions["frames"].valid
    expected = module._get_feature_vector_attention_mask(frames.shape[1], mask)
    assert torch.equal(frames, expected)
    assert not frames.all()
    assert not inputs.positions["frames"].special.any()


@pytest.mark.parametrize("family", FAMILIES)
def test_alone_and_in_a_padded_batch_of_eight(family: str) -> None:
    model = loaded(f"{family}, layer norm")
    first, *others = pieces(model, EIGHT)
    assert all(model.feed.together(first, other) for other in others)
    states, valid = last(model, EIGHT)
    for row, waveform in enumerate(EIGHT):
        (alone,), _ = last(model, [waveform])
        torch.testing.assert_close(states[row][valid[row]], alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_group_norm_models_are_never_padded(family: str) -> None:
    model = loaded(family)
    made = pieces(model, EIGHT)
    sizes = [len(batch) for batch in batches(made, 8, model.feed.together)]
    assert sizes == [1] * 8
    assert model.feed.describe()["padding"] == "none"


@pytest.mark.parametrize("family", FAMILIES)
def test_group_norm_would_see_the_padding(family: str) -> None:
    """Why: zeros behind a clip change its frames, and a mask does not help."""
    model = loaded(family)
    (short,) = pieces(model, EIGHT[:1])
    values = model.feed.batch([short]).arguments["input_values"]
    padded = torch.nn.functional.pad(values, (0, 4000))
    mask = torch.nn.functional.pad(torch.ones_like(values, dtype=torch.long), (0, 4000))
    module: Any = model.module
    with torch.inference_mode():
        alone = module(values).last_hidden_state
        beside = module(padded, attention_mask=mask).last_hidden_state[:, : alone.shape[1]]
    assert (alone - beside).abs().max() > 1e-2


@pytest.mark.parametrize("family", FAMILIES)
def test_group_norm_clips_of_one_length_share_a_batch(family: str) -> None:
    model = loaded(family)
    clips = [Waveform(noise(5000, seed=k), 16_000) for k in range(8)]
    made = pieces(model, clips)
    assert [len(batch) for batch in batches(made, 8, model.feed.together)] == [8]
    assert set(model.feed.batch(made).arguments) == {"input_values"}
    states, valid = last(model, clips)
    assert valid.all()
    for row, clip in enumerate(clips):
        (alone,), _ = last(model, [clip])
        torch.testing.assert_close(states[row], alone, rtol=1e-4, atol=1e-5)


def test_a_batch_norm_before_the_positions_would_move_the_padding() -> None:
    config = {**LAYER_NORM, "conv_pos_batch_norm": True}
    model = load_model("init:hubert", modality="speech", config=config)
    assert model.feed.describe()["padding"] == "none"


def test_every_clip_is_normalised_by_itself() -> None:
    for name in ("wav2vec2", "wav2vec2, layer norm"):
        model = loaded(name)
        loud = Waveform(100 * noise(9000, seed=3), 16_000)
        (piece,) = pieces(model, [loud])
        values = model.feed.batch([piece]).arguments["input_values"].double()
        assert abs(values.mean()) < 1e-5
        assert abs(values.std(unbiased=False) - 1) < 1e-4
    # By its own samples alone, whatever pads it.
    model = loaded("wav2vec2, layer norm")
    batch = model.feed.batch(pieces(model, [EIGHT[0], EIGHT[7]])).arguments
    own = batch["input_values"][0, : len(EIGHT[0].samples)].double()
    assert abs(own.std(unbiased=False) - 1) < 1e-4
    assert not batch["input_values"][0, len(EIGHT[0].samples) :].any()


@pytest.mark.parametrize("rate", [16_000, 48_000])
def test_a_clip_of_ten_milliseconds_is_refused(rate: int) -> None:
    model = loaded("wav2vec2")
    clip = Waveform(noise(rate // 100), rate)
    with pytest.raises(SourceError) as fault:
        pieces(model, [EIGHT[0], clip])
    assert str(fault.value) == (
        "recording clip-1.wav: is 10 ms long (160 samples at 16000 a second), and one frame of "
        "Wav2Vec2Model takes 400 samples; remove it, or join it to another"
    )
    pieces(model, [Waveform(noise(rate // 40), rate)])  # 25 ms are 400 samples: one frame


def test_the_shortest_clip_and_the_blank_run_whatever_the_convolutions() -> None:
    config = {**CONVOLUTIONAL, "conv_kernel": [4] * 7, "conv_stride": [4] * 7}
    model = load_model("init:wav2vec2", modality="speech", config=config)
    assert last(model, [Waveform(noise(4**7), 16_000)])[1].shape == (1, 1)
    with pytest.raises(SourceError, match="takes 16384 samples"):
        pieces(model, [Waveform(noise(4**7 - 1), 16_000)])


def test_what_is_described() -> None:
    assert dict(loaded("hubert, layer norm").feed.describe()) == {
        "rate": 16_000,
        "resampling": "sinc_interp_hann",
        "lowpass_filter_width": 6,
        "rolloff": 0.99,
        "input": "waveform",
        "normalisation": "zero mean, unit variance",
        "padding": "masked",
    }


def test_another_rate_is_resampled_before_it_is_counted() -> None:
    model = loaded("wav2vec2")
    (piece,) = pieces(model, [Waveform(noise(44_100), 44_100)])
    assert model.feed.batch([piece]).arguments["input_values"].shape == (1, 16_000)
    assert np.isfinite(piece.content.samples).all()
