"""Recordings at the model's rate: against the sine itself, and against scipy's polyphase filter."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import resample_poly

from isotest.data.dataset import Waveform
from isotest.errors import SourceError
from isotest.models.speech.resampling import Resampling


def sine(hertz: float, rate: int, seconds: float = 1.0) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * np.arange(int(rate * seconds)) / rate).astype(np.float32)


@pytest.mark.parametrize("rate", [8000, 22050, 44100, 48000])
def test_a_sine_stays_that_sine(rate: int) -> None:
    found = Resampling(16_000)(Waveform(sine(440, rate), rate), "x")
    assert found.dtype == np.float32
    assert found.shape == (16_000,)
    # The ends, where the filter sees beyond the recording, are no sine.
    np.testing.assert_allclose(found[200:-200], sine(440, 16_000)[200:-200], atol=5e-3)


def test_what_the_new_rate_cannot_carry_is_gone() -> None:
    found = Resampling(16_000)(Waveform(sine(10_000, 48_000), 48_000), "x")
    assert np.abs(found[200:-200]).max() < 0.01
    # Dropping two samples of three would fold it down to 6 kHz at full strength.
    assert np.abs(sine(10_000, 48_000)[::3]).max() > 0.8


def test_another_filter_finds_nearly_the_same() -> None:
    speech_like = np.convolve(np.random.default_rng(0).normal(size=48_000), np.ones(24) / 24)
    recorded = speech_like.astype(np.float32)
    found = Resampling(16_000)(Waveform(recorded, 48_000), "x")
    peer = resample_poly(recorded, 1, 3)
    error = np.abs(found - peer)[200:-200].max() / np.abs(peer).max()
    assert error < 0.05


@pytest.mark.parametrize(("count", "rate", "expected"), [(3, 48_000, 1), (441, 44_100, 160)])
def test_lengths_are_rounded_up(count: int, rate: int, expected: int) -> None:
    waveform = Waveform(np.ones(count, np.float32), rate)
    assert len(Resampling(16_000)(waveform, "x")) == expected


def test_the_models_own_rate_changes_nothing() -> None:
    samples = sine(440, 16_000)
    assert Resampling(16_000)(Waveform(samples, 16_000), "x") is samples


def test_rates_without_a_simple_ratio_are_refused() -> None:
    waveform = Waveform(np.ones(100, np.float32), 44_099)
    with pytest.raises(SourceError, match=r"recording a\.wav: has 44099 samples a second.*correct"):
        Resampling(16_000)(waveform, "a.wav")
