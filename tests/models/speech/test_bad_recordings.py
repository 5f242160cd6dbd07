"""Recordings that are no good, in suites: one message a check, with entry, clip and remedy."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import soundfile

from tests.models.speech.clips import CONVOLUTIONAL, WHISPER, noise

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

RATE = 16_000
QUICK = [f"-pno:{name}" for name in ("hypothesispytest", "xdoctest", "anyio", "cacheprovider")]

# What is wrong with the second of two clips, by the suite's name: its samples, rate, the message.
BAD: dict[str, tuple[Any, int, str]] = {
    "ten-milliseconds": (
        noise(160),
        RATE,
        (
            "recording {clip}: is 10 ms long (160 samples at 16000 a second), and one frame of "
            "Wav2Vec2Model takes 400 samples; remove it, or join it to another"
        ),
    ),
    "stereo-44100": (
        noise(2 * 44_100).reshape(-1, 2),
        44_100,
        (
            "recording {clip}: has 2 channels, expected one; add 'channels=mean' or "
            "'channels=first' to the source"
        ),
    ),
    "silent": (
        np.zeros(RATE, np.float32),
        RATE,
        "recording {clip}: is silent (every sample is 0); remove it",
    ),
    "nan": (
        np.where(np.arange(RATE) == 7, np.float32("nan"), noise(RATE)).astype(np.float32),
        RATE,
        "recording {clip}: sample 7 of 16000 (counted from 0) is nan; repair or remove it",
    ),
    "empty": (np.zeros(0, np.float32), RATE, "recording {clip}: has no samples; remove it"),
    "odd-rate": (
        noise(44_099),
        44_099,
        (
            "recording {clip}: has 44099 samples a second, expected a rate that stands in a simple "
            "ratio to the model's 16000"
        ),
    ),
    "too-long": (
        noise(4 * RATE),
        RATE,
        (
            "recording {clip}: is 4 s long, and WhisperModel hears at most 3 s; cut it into "
            "shorter clips"
        ),
    ),
    "long-for-frames": (
        np.tile(noise(RATE), 61),
        RATE,
        (
            "recording {clip}: is 61 s long, and a clip is fed whole to Wav2Vec2Model, which takes "
            "memory for all of it at once: expected at most 60 s; cut it into shorter clips"
        ),
    ),
    "unread": (
        noise(RATE),
        RATE,
        (
            "source 'init:whisper': the decoder reads transcripts, for which it needs a tokenizer, "
            "and the model brings none; use measure = { decoder = 'random' } in "
            "the suite entry"
        ),
    ),
}


def toml(config: dict[str, Any]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in config.items() if value is not None)


def write(folder: Path, name: str) -> None:
    samples, rate, _ = BAD[name]
    clips = folder / "clips" / name
    clips.mkdir(parents=True)
    soundfile.write(clips / "a.wav", noise(RATE), RATE, subtype="FLOAT")
    soundfile.write(clips / "b.wav", samples, rate, subtype="FLOAT")
    whisper = name in ("too-long", "unread")
    entry = "whisper" if whisper else "wav2vec2"
    measure = "measure = { decoder = 'random' }" if name == "too-long" else ""
    suite = folder / "suites" / f"{name}.toml"
    suite.parent.mkdir(exist_ok=True)
    suite.write_text(
        f"""
modality = "speech"
[data]
source = "folder:../clips/{name}"
[checks.anisotropy]
max = 0.999
[[models]]
name = "the-{entry}"
source = "init:{entry}"
baseline = false
{measure}
config = {{ {toml(WHISPER if whisper else CONVOLUTIONAL)} }}
"""
    )


def test_bad_recordings_have_one_message_each(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOTEST_CACHE_DIR", str(pytester.path / "cache"))
    for name in BAD:
        write(pytester.path, name)
    run = [sys.executable, "-m", "pytest", *QUICK, "--isotest", "suites", "-k", "anisotropy"]
    result = pytester.run(*run, timeout=120)
    assert result.ret == 1
    text = " ".join(result.stdout.str().split())
    assert "Traceback" not in text
    for name, (_, _, message) in BAD.items():
        entry = "the-whisper" if name in ("too-long", "unread") else "the-wav2vec2"
        assert f"suites/{name}.toml::{entry}::anisotropy" in text
        clip = f"{pytester.path}/suites/../clips/{name}/b.wav"
        assert message.replace("{clip}", clip) in text
