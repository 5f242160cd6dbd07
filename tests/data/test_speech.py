"""Recordings from files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from isotest.data import fingerprint, open_data
from isotest.errors import SourceError
from tests.data.recordings import RATE, encoded, number_of, ramp, write_recordings
from tests.data.test_file import parquet

if TYPE_CHECKING:
    from pathlib import Path

    from isotest.data import Dataset


def speech(source: str, base: Path) -> Dataset:
    return open_data(source, base=base, modality="speech")


def numbers(source: str, base: Path) -> list[int]:
    return [number_of(sample.content.samples) for sample in speech(source, base)]


def write_lines(path: Path, *rows: object) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_the_sample_recordings() -> None:
    data = open_data("sample:speech", modality="speech")
    samples = list(data)
    assert len(data) == len(samples) == 48
    assert {sample.content.rate for sample in samples} == {16_000}
    seconds = [len(sample.content.samples) / sample.content.rate for sample in samples]
    assert 2 <= min(seconds) <= max(seconds) <= 4.1
    assert [sample.unit for sample in samples] == list(range(48))
    assert len({sample.digest for sample in samples}) == 48


def test_folder(tmp_path: Path) -> None:
    write_recordings(tmp_path, ["b.wav", "a/x.flac", "c.WAV"])
    (tmp_path / "notes.txt").write_text("x")
    assert numbers("folder:.", tmp_path) == [1, 0, 2]
    assert numbers("folder:.?pattern=*.wav", tmp_path) == [0]


def test_folder_with_groups_and_transcripts(tmp_path: Path) -> None:
    write_recordings(tmp_path, ["a.wav", "b.wav", "c.wav"])
    write_lines(
        tmp_path / "metadata.jsonl",
        {"file_name": "a.wav", "group": "x", "said": "good morning"},
        {"file_name": "b.wav", "group": "y", "said": None},
        {"file_name": "c.wav", "group": "x", "said": "good night"},
    )
    data = speech("folder:.?transcript=said", tmp_path)
    assert [(sample.unit, sample.content.transcript) for sample in data] == [
        (0, "good morning"),
        (1, None),
        (0, "good night"),
    ]
    without = speech("folder:.", tmp_path)
    assert {sample.content.transcript for sample in without} == {None}
    prints = [fingerprint([sample.digest for sample in kind]) for kind in (data, without)]
    assert prints[0] != prints[1]
    with pytest.raises(
        SourceError, match=r"metadata\.jsonl:1: no column 'sad'; did you mean 'said'"
    ):
        speech("folder:.?transcript=sad", tmp_path)
    (tmp_path / "metadata.jsonl").unlink()
    with pytest.raises(SourceError, match=r"transcript=said expects a metadata\.jsonl"):
        speech("folder:.?transcript=said", tmp_path)


def test_json_lines(tmp_path: Path) -> None:
    write_recordings(tmp_path, ["x/a.wav", "x/b.flac"])
    write_lines(
        tmp_path / "a.jsonl",
        {"audio": "x/b.flac", "speaker": 7, "sentence": "two"},
        {"audio": "x/a.wav", "speaker": 7, "sentence": "one"},
    )
    assert numbers("file:a.jsonl", tmp_path) == [1, 0]
    data = speech("file:a.jsonl?group=speaker&transcript=sentence", tmp_path)
    assert [(s.unit, s.content.transcript) for s in data] == [(0, "two"), (0, "one")]
    assert data.describe()["source"] == "file:a.jsonl?group=speaker&transcript=sentence"


@pytest.mark.parametrize("form", ["bytes", "struct", "path"])
def test_parquet(tmp_path: Path, form: str) -> None:
    write_recordings(tmp_path, ["0.wav", "1.wav"])
    contents = [encoded(ramp(number)) for number in range(2)]
    columns: dict[str, list[Any]] = {
        "bytes": contents,
        "struct": [{"bytes": content, "path": "x.wav"} for content in contents],
        "path": ["0.wav", "1.wav"],
    }
    parquet(tmp_path / "a.parquet", {"audio": columns[form], "text": ["zero", "one"]})
    assert numbers("file:a.parquet", tmp_path) == [0, 1]
    data = speech("file:a.parquet?transcript=text", tmp_path)
    assert [sample.content.transcript for sample in data] == ["zero", "one"]


def test_channels(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(encoded(np.stack([ramp(0), ramp(100)], axis=1), rate=44_100))
    with pytest.raises(SourceError, match=r"a\.wav: has 2 channels, expected one; add 'channels=m"):
        list(speech("folder:.", tmp_path))
    (first,) = speech("folder:.?channels=first", tmp_path)
    assert first.content.rate == 44_100
    assert np.array_equal(first.content.samples, ramp(0))
    assert numbers("folder:.?channels=mean", tmp_path) == [50]
    with pytest.raises(
        SourceError, match="expected 'channels=mean' or 'channels=first', found 'ch"
    ):
        speech("folder:.?channels=left", tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"no sound", "cannot be decoded"),
        (encoded(ramp(0))[:200], "is truncated or damaged"),
        (encoded(np.zeros(0)), "has no samples"),
        (encoded(np.zeros(100)), "is silent"),
        (encoded(np.array([0.0, np.nan]), "WAV", "FLOAT"), "sample 1 of 2 .* is nan"),
    ],
    ids=["empty", "text", "truncated", "no samples", "silent", "nan"],
)
@pytest.mark.parametrize("source", ["folder:.", "file:a.jsonl", "file:a.parquet"])
def test_bad_recordings_name_the_file(
    tmp_path: Path, source: str, content: bytes, message: str
) -> None:
    (tmp_path / "a.wav").write_bytes(content)
    write_lines(tmp_path / "a.jsonl", {"audio": "a.wav"})
    parquet(tmp_path / "a.parquet", {"audio": ["a.wav"]})
    with pytest.raises(
        SourceError, match=rf"^recording .*a\.(wav|jsonl:1|parquet, row 0).*: {message}"
    ):
        list(speech(source, tmp_path))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("file:a.jsonl", "no column 'audio'; .*its columns: path, said"),
        ("file:a.jsonl?audio=path&transcript=text", "no column 'text'"),
        ("file:a.jsonl?audio=path&transcript=said", "expected a transcript that is text, found 3"),
        ("file:a.jsonl?image=path", "unknown option 'image'"),
        ("file:a.parquet", "column 'audio' holds int, expected recordings or their paths"),
        ("folder:b", r"expected recordings \(\.flac \.mp3 \.oga \.ogg \.opus \.wav\), found no fi"),
    ],
)
def test_bad_sources(tmp_path: Path, source: str, message: str) -> None:
    write_recordings(tmp_path, ["a.wav"])
    (tmp_path / "b").mkdir()
    write_lines(tmp_path / "a.jsonl", {"path": "a.wav", "said": 3})
    parquet(tmp_path / "a.parquet", {"audio": [3]})
    with pytest.raises(SourceError, match=message):
        list(speech(source, tmp_path))


def test_ten_milliseconds_are_a_recording(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(encoded(ramp(0, RATE // 100)))
    (sample,) = speech("folder:.", tmp_path)
    assert len(sample.content.samples) == 160
