"""The identity of texts and recordings, for the cache."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from isotest.data.identity import data_identity
from isotest.source import DATA_SCHEMES, parse_source
from tests.data.recordings import encoded, ramp, write_recordings
from tests.data.test_file import parquet

if TYPE_CHECKING:
    from pathlib import Path


def identity(text: str, base: Path, modality: str) -> str | None:
    return data_identity(parse_source(text, DATA_SCHEMES), base=base, modality=modality)


@pytest.mark.parametrize("modality", ["text", "characters"])
def test_a_file_of_texts_is_its_content(tmp_path: Path, modality: str) -> None:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "a.jsonl").write_text('{"text": "one", "other": "gone.txt"}')
    parquet(tmp_path / "a.parquet", {"text": ["one"]})
    for name in ("a.txt", "a.jsonl", "a.parquet"):
        before = identity(f"file:{name}", tmp_path, modality)
        assert before is not None
        assert identity(f"file:{name}?text=other", tmp_path, modality) not in (before, None)
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes() + b" ")
        assert identity(f"file:{name}", tmp_path, modality) not in (before, None)
    assert identity("file:a.txt", tmp_path, "speech") is None


def test_lines_that_name_recordings_are_the_recordings_too(tmp_path: Path) -> None:
    write_recordings(tmp_path, ["a.wav"])
    (tmp_path / "a.jsonl").write_text(json.dumps({"audio": "a.wav", "said": "x"}))
    before = identity("file:a.jsonl", tmp_path, "speech")
    assert before is not None
    assert identity("file:a.jsonl?transcript=said", tmp_path, "speech") not in (before, None)
    assert identity("file:a.jsonl", tmp_path, "vision") is None
    (tmp_path / "a.wav").write_bytes(encoded(ramp(7)))
    assert identity("file:a.jsonl", tmp_path, "speech") not in (before, None)


def test_a_parquet_file_must_hold_its_recordings(tmp_path: Path) -> None:
    held = [{"bytes": encoded(ramp(0)), "path": "x"}]
    parquet(tmp_path / "a.parquet", {"audio": held, "voice": ["x.wav"]})
    assert identity("file:a.parquet", tmp_path, "speech") is not None
    assert identity("file:a.parquet?audio=voice", tmp_path, "speech") is None


@pytest.mark.parametrize(("name", "modality"), [("passages", "text"), ("speech", "speech")])
def test_the_samples_have_an_identity(tmp_path: Path, name: str, modality: str) -> None:
    assert identity(f"sample:{name}", tmp_path, modality) is not None


def test_without_torch_or_decoders() -> None:

    code = (
        "import sys; from isotest.data.identity import data_identity; "
        "from isotest.source import DATA_SCHEMES, parse_source; "
        "[data_identity(parse_source(f'sample:{name}', DATA_SCHEMES), base=None, modality=modality)"
        " for name, modality in (('passages', 'text'), ('speech', 'speech'))]; "
        "unwanted = ('torch', 'numpy', 'PIL', 'soundfile', 'datasets'); "
        "print([name for name in unwanted if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
