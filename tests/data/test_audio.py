"""From audio files to waveforms, and which waveforms are refused."""

from __future__ import annotations

import io
import os
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from isotest.data import Waveform
from isotest.data.audio import decode
from isotest.data.digest import waveform_digest
from isotest.data.waveform import checked, from_python
from isotest.errors import SourceError
from tests.data.recordings import RATE, encoded, ramp

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

LOSSY = [("OGG", "VORBIS"), ("OGG", "OPUS"), ("MP3", None)]
NOISE = (0.1 * np.random.default_rng(0).standard_normal(48_000)).astype(np.float32)


@pytest.mark.parametrize(
    ("kind", "subtype"),
    [("WAV", "PCM_16"), ("WAV", "PCM_24"), ("WAV", "FLOAT"), ("WAVEX", "PCM_16"), ("FLAC", None)],
)
def test_lossless_files_yield_their_samples(kind: str, subtype: str | None, tmp_path: Path) -> None:
    content = encoded(ramp(3), kind, subtype, rate=8000)
    (tmp_path / "a").write_bytes(content)
    for stored in (content, tmp_path / "a"):
        waveform = decode(stored, "a")
        assert waveform.rate == 8000
        assert waveform.samples.dtype == np.float32
        assert np.array_equal(waveform.samples, ramp(3))


@pytest.mark.parametrize(("kind", "subtype"), LOSSY)
def test_lossy_files_yield_nearly_their_samples(kind: str, subtype: str | None) -> None:
    time = np.arange(RATE) / RATE
    sine = (0.5 * np.sin(2 * np.pi * 440 * time)).astype(np.float32)
    waveform = decode(encoded(sine, kind, subtype), "a")
    assert (waveform.rate, len(waveform.samples)) == (RATE, RATE)
    middle = slice(2000, -2000)
    assert np.corrcoef(waveform.samples[middle], sine[middle])[0, 1] > 0.99


def test_several_channels_need_a_choice() -> None:
    stereo = np.stack([ramp(0), ramp(200)], axis=1)
    content = encoded(stereo)
    with pytest.raises(
        SourceError, match=r"call\.wav: has 2 channels, .*'channels=mean' or 'chann"
    ):
        decode(content, "call.wav")
    assert np.array_equal(decode(content, "call.wav", "first").samples, ramp(0))
    assert np.array_equal(decode(content, "call.wav", "mean").samples, stereo.mean(axis=1))
    assert np.array_equal(decode(encoded(ramp(0)), "a", "mean").samples, ramp(0))


@pytest.mark.parametrize(
    ("kind", "subtype"), [("WAV", None), ("WAV", "FLOAT"), ("FLAC", None), *LOSSY]
)
def test_every_truncation_is_one_message_that_names_the_file(
    kind: str, subtype: str | None
) -> None:
    content = encoded(NOISE, kind, subtype)
    for share in (0.0, 0.001, 0.3, 0.5, 0.9):
        with pytest.raises(SourceError, match=r"^recording torn: "):
            decode(content[: int(share * len(content))], "torn")


@pytest.mark.parametrize(("kind", "subtype"), [("FLAC", None), ("OGG", "VORBIS"), ("OGG", "OPUS")])
def test_damage_in_the_middle(kind: str, subtype: str | None) -> None:
    content = bytearray(encoded(NOISE, kind, subtype))
    middle = len(content) // 2
    content[middle : middle + 200] = b"\xff" * 200
    with pytest.raises(SourceError, match=r"^recording torn: "):
        decode(bytes(content), "torn")


def test_a_file_written_to_a_pipe_does_not_know_its_length() -> None:
    """ffmpeg writes 2³²−1 into both lengths of a WAV file, and no number of samples into FLAC."""
    content = bytearray(encoded(ramp(0)))
    data = content.index(b"data")
    content[4:8] = content[data + 4 : data + 8] = struct.pack("<I", 2**32 - 1)
    assert np.array_equal(decode(bytes(content), "piped").samples, ramp(0))

    content = bytearray(encoded(ramp(0), "FLAC"))
    content[21] &= 0xF0  # the number has 36 bits, the last of the first 18 bytes of STREAMINFO
    content[22:26] = bytes(4)
    with pytest.raises(SourceError, match=r"piped: does not say how long it is, .* write it to a"):
        decode(bytes(content), "piped")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a: the file is empty; replace or remove it"),
        (b"no sound", r"a: cannot be decoded \(Format not recognised\.\); replace or remove it"),
        (encoded(ramp(0), "AIFF"), "a: expected WAV, FLAC, Ogg or MP3, found AIFF; convert it"),
        (encoded(ramp(0), rate=500), "a: has 500 samples a second, expected 1000 to 192000"),
        (encoded(ramp(0), rate=2**30), "a: has 1073741824 samples a second"),
        (encoded(np.zeros((2, 65))), "a: has 65 channels, expected at most 64"),
    ],
    ids=["empty", "text", "aiff", "slow", "fast", "channels"],
)
def test_what_is_no_recording(content: bytes, message: str) -> None:
    with pytest.raises(SourceError, match=rf"^recording {message}"):
        decode(content, "a")


def test_half_an_hour_is_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is decoded of a longer one: two million seconds of silence are a small FLAC file."""

    def read(*_arguments: Any, **_options: Any) -> NDArray[np.float32]:
        raise AssertionError("decoded")

    long = encoded(np.zeros(1801 * 1000, np.float32), "FLAC", rate=1000)
    assert len(long) < 100_000
    assert len(decode(encoded(np.zeros(1800 * 1000), "FLAC", rate=1000), "a").samples) == 1_800_000
    monkeypatch.setattr(soundfile.SoundFile, "read", read)
    with pytest.raises(SourceError, match=r"^recording long: is longer than 30 minutes; cut it"):
        decode(long, "long")


def test_huge_files_are_not_even_read(tmp_path: Path) -> None:
    with (tmp_path / "a.wav").open("wb") as file:
        file.truncate(2**31)  # a hole, no blocks on the disk
    with pytest.raises(SourceError, match=r"a: has 2147483648 bytes, expected at most 1073741824"):
        decode(tmp_path / "a.wav", "a")


def test_only_ordinary_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.wav").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "b.wav")
    for name in ("a.wav", "b.wav"):
        with pytest.raises(SourceError, match=rf"{name}: expected a file, found something else"):
            decode(tmp_path / name, name)
    with pytest.raises(SourceError, match=r"^recording gone\.wav: cannot be decoded \(.*No such f"):
        decode(tmp_path / "gone.wav", "gone.wav")


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([], "has no samples"),
        ([0.5, 0.1, np.nan, np.inf], r"sample 2 of 4 \(counted from 0\) is nan"),
        ([0.5, -np.inf], r"sample 1 of 2 \(counted from 0\) is -inf"),
        ([0.0, 0.0], r"is silent \(every sample is 0\)"),
        ([0.25, 0.25], r"is silent \(every sample is 0\.25\)"),
        ([0.25], "is silent"),
    ],
)
def test_waveforms_on_which_nothing_can_be_measured(samples: list[float], message: str) -> None:
    waveform = Waveform(np.array(samples, np.float32), RATE)
    with pytest.raises(SourceError, match=rf"^recording a: {message}"):
        checked(waveform, "a")


def test_a_waveform_of_a_file_with_nan() -> None:
    content = encoded(np.array([0.5, np.nan]), "WAV", "FLOAT")
    with pytest.raises(SourceError, match="sample 1 of 2"):
        checked(decode(content, "a"), "a")


@pytest.mark.parametrize("rate", [0, -16_000, 10**9])
def test_rates_of_arrays_are_bounded_too(rate: int) -> None:
    with pytest.raises(SourceError, match=f"a: has {rate} samples a second"):
        checked(Waveform(ramp(0), rate), "a")


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ((np.zeros((2, 9)), RATE), r"expected one channel, .* found shape \(2, 9\)"),
        (
            (np.zeros(9, np.int16), RATE),
            "expected floating-point samples, full scale ±1, found int",
        ),
        ((np.zeros(9), "16000"), "expected a whole number of samples a second, found '16000'"),
        ((np.zeros(9), 16000.5), "expected a whole number of samples a second"),
        (Waveform(np.zeros((9, 1), np.float32), RATE), "expected one channel"),
    ],
)
def test_malformed_arrays(item: object, message: str) -> None:
    with pytest.raises(SourceError, match=rf"^recording a: {message}"):
        from_python(item, "a")


def test_doubles_beyond_single_precision_are_no_samples() -> None:
    waveform = from_python((np.array([0.0, 1e300]), RATE), "a")
    assert waveform is not None
    with pytest.raises(SourceError, match=r"sample 1 of 2 .* is inf"):
        checked(waveform, "a")


waveforms = st.builds(
    Waveform,
    hnp.arrays(np.float32, st.integers(0, 4), elements=st.sampled_from([0.0, 0.5, 1.0])),
    st.sampled_from([8000, 16000]),
    st.sampled_from([None, "", "a", "None"]),
)


@given(waveforms, waveforms)
def test_digests_differ_iff_samples_rate_or_transcript_do(one: Waveform, other: Waveform) -> None:
    same = (
        np.array_equal(one.samples, other.samples)
        and one.rate == other.rate
        and one.transcript == other.transcript
    )
    assert (waveform_digest(one) == waveform_digest(other)) == same


def test_the_digest_is_of_the_samples_not_of_the_file() -> None:
    digests = {
        waveform_digest(decode(encoded(ramp(1), kind, subtype), "a"))
        for kind, subtype in (("WAV", "PCM_16"), ("WAV", "FLOAT"), ("FLAC", None))
    }
    assert len(digests) == 1


def test_soundfile_reads_what_it_wrote() -> None:
    """The tests' own encoder, checked without our decoder."""
    samples, rate = soundfile.read(io.BytesIO(encoded(ramp(5))), dtype="float32")
    assert rate == RATE
    assert np.array_equal(samples, ramp(5))
