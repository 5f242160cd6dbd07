"""``python:`` and contents in memory: texts and waveforms."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from isotest.data import Waveform, open_data
from isotest.data.load import as_data
from isotest.errors import SourceError
from tests.data.images import plain
from tests.data.recordings import RATE, number_of, ramp

if TYPE_CHECKING:
    from pathlib import Path

MODULE = """
import numpy as np
from isotest.data import Waveform

def wave(number): return (np.arange(400) % 512 + number) / 1024

def texts(): return ["one", "two", "one"]
def grouped_texts(): return (pair for pair in [("one", "a"), ("two", "b"), ("three", "a")])
def pairs(): return [(wave(0), 16000), (wave(1), 8000)]
def grouped_pairs(): return [((wave(0), 16000), 5), ((wave(1), 16000), 5)]
def waveforms(): return [Waveform(wave(0).astype(np.float32), 16000, "hello")]
def grouped_waveforms(): return [(Waveform(wave(0), 16000), "x")]
def one_text(): return "one"
def one_pair(): return (wave(0), 16000)
def arrays(): return [wave(0)]
def mixed(): return ["one", ("two", "x")]
def with_empty(): return ["one", "", "two"]
def numbers(): return [1]
"""


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_contents.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_contents", raising=False)


def test_texts_of_a_function() -> None:
    data = open_data("python:my_contents:texts", modality="text")
    assert [(s.content, s.unit) for s in data] == [("one", 0), ("two", 1), ("one", 2)]
    data = open_data("python:my_contents:grouped_texts", modality="characters")
    assert [(s.content, s.unit) for s in data] == [("one", 0), ("two", 1), ("three", 0)]
    data = open_data("python:my_contents:with_empty?empty=skip", modality="text")
    assert [sample.content for sample in data] == ["one", "two"]


def test_an_array_and_its_rate_are_no_item_and_group() -> None:
    data = open_data("python:my_contents:pairs", modality="speech")
    found = [(number_of(s.content.samples), s.content.rate, s.unit) for s in data]
    assert found == [(0, 16_000, 0), (1, 8_000, 1)]
    assert not data.grouped
    data = open_data("python:my_contents:grouped_pairs", modality="speech")
    assert [(s.content.rate, s.unit) for s in data] == [(16_000, 0), (16_000, 0)]
    assert data.grouped


def test_waveforms_of_a_function() -> None:
    (sample,) = open_data("python:my_contents:waveforms", modality="speech")
    assert sample.content.transcript == "hello"
    (sample,) = open_data("python:my_contents:grouped_waveforms", modality="speech")
    assert sample.content.samples.dtype == np.float32


@pytest.mark.parametrize(
    ("function", "modality", "message"),
    [
        ("one_text", "text", "returned str, expected an iterable of strings, or pairs"),
        ("one_pair", "speech", "item 0: found ndarray, expected isotest.data.Waveform objects or"),
        ("arrays", "speech", "item 0: found ndarray"),
        ("mixed", "text", "item 1: expected all items with a group or none"),
        ("with_empty", "text", "item 1: is empty; remove it, or add 'empty=skip'"),
        ("numbers", "text", "item 0: found int, expected strings"),
        ("texts", "vision", "item 0: found str, expected PIL images"),
        ("texts?channels=mean", "speech", "unknown option 'channels'; python: takes none"),
    ],
)
def test_bad_functions(function: str, modality: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        list(open_data(f"python:my_contents:{function}", modality=modality))


def test_contents_in_memory() -> None:
    assert [sample.unit for sample in as_data([(plain(0), "a"), (plain(1), "a")])] == [0, 0]
    assert as_data([plain(0)]).describe() == {"source": "images", "selection": "all", "samples": 1}
    texts = as_data(["one", "two"], modality="characters")
    assert [sample.content for sample in texts] == ["one", "two"]
    recordings = as_data([Waveform(ramp(0), RATE), (ramp(1), RATE)], modality="speech")
    assert [number_of(sample.content.samples) for sample in recordings] == [0, 1]
    with pytest.raises(SourceError, match="texts: returned nothing, expected strings"):
        as_data([], modality="text")
    with pytest.raises(SourceError, match="unknown modality 'texts'; did you mean 'text'"):
        as_data(["one"], modality="texts")
