"""Transcripts in front of a decoder: a tokenizer's prompt, padding, and what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast, WhisperConfig, WhisperModel

from isotest.data.dataset import Waveform
from isotest.errors import SourceError
from isotest.models import load_model
from isotest.models.reading import Reading
from tests.models.speech.clips import WHISPER, noise, pieces

if TYPE_CHECKING:
    from pathlib import Path

    from isotest.models import LoadedModel

START, SILENT, END = 98, 99, 97


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny Whisper with a tokenizer of words that adds what Whisper's adds."""
    WhisperModel(WhisperConfig(**WHISPER)).save_pretrained(tmp_path)
    words = {word: k for k, word in enumerate(["?", "a", "b", "c"])}
    specials = {"<|startoftranscript|>": START, "<|notimestamps|>": SILENT, "<|endoftext|>": END}
    tokenizer = Tokenizer(models.WordLevel({**words, **specials}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|startoftranscript|> <|notimestamps|> $A <|endoftext|>",
        special_tokens=list(specials.items()),
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<|endoftext|>", unk_token="?"
    ).save_pretrained(tmp_path)
    return tmp_path


def load(folder: Path, reading: Reading | None = None) -> LoadedModel:
    return load_model(f"path:{folder}", modality="speech", reading=reading)


def said(transcript: str | None, seed: int = 0) -> Waveform:
    return Waveform(noise(16_000, seed), 16_000, transcript)


def test_the_decoder_reads_prompt_and_transcript_without_its_end(folder: Path) -> None:
    model = load(folder)
    inputs = model.feed.batch(pieces(model, [said("a b c b"), said("c")]))
    assert inputs.arguments["decoder_input_ids"].tolist() == [
        [START, SILENT, 1, 2, 3, 2],
        [START, SILENT, 3, END, END, END],
    ]
    assert inputs.positions["decoder"].valid.sum(dim=1).tolist() == [6, 3]
    assert inputs.positions["decoder"].special.tolist() == [[True, True] + [False] * 4] * 2
    described = model.feed.describe()
    assert (described["decoder"], described["tokenizer"]) == ("transcript", "own")


def test_a_padded_transcript_changes_nothing(folder: Path) -> None:
    model = load(folder)
    module: Any = model.module
    short, long = pieces(model, [said("c", 1), said("a b c a b c", 2)])
    with torch.inference_mode():
        both = module(**model.feed.batch([short, long]).arguments).last_hidden_state
        alone = module(**model.feed.batch([short]).arguments).last_hidden_state
    torch.testing.assert_close(both[0, :3], alone[0], rtol=1e-4, atol=1e-5)


def test_other_words_are_another_protocol(folder: Path) -> None:
    model = load(folder)
    ids = []
    for text in ("a b", "a c", "a b"):
        pieces(model, [said(text)])
        ids.append(model.feed.describe()["ids"])
    assert ids[0] == ids[2] != ids[1]


def test_a_named_tokenizer_gets_the_models_start(folder: Path) -> None:
    config = {**WHISPER, "vocab_size": 300, "decoder_start_token_id": 299}
    model = load_model(
        "init:whisper", modality="speech", reading=Reading(tokenizer="bytes"), config=config
    )
    ids = model.feed.batch(pieces(model, [said("hi")])).arguments["decoder_input_ids"]
    assert ids[0, 0] == 299
    assert ids.shape == (1, 3)


@pytest.mark.parametrize(
    ("transcript", "message"),
    [
        (None, "recording clip-0.wav: has no transcript, which the decoder is to read; .*random"),
        ("  ", "recording clip-0.wav: its transcript is empty"),
        (
            "a " * 39,
            "recording clip-0.wav: its transcript is 39 tokens long, .* at most 40, 2 spec",
        ),
    ],
)
def test_what_cannot_be_read(folder: Path, transcript: str | None, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        pieces(load(folder), [said(transcript)])


def test_an_untrained_model_has_no_tokenizer() -> None:
    with pytest.raises(SourceError, match=r"the model brings none; use measure = \{ decoder"):
        load_model("init:whisper", modality="speech", config=WHISPER)


def test_a_folder_without_a_tokenizer(tmp_path: Path) -> None:
    WhisperModel(WhisperConfig(**WHISPER)).save_pretrained(tmp_path)
    with pytest.raises(SourceError, match="there is none in"):
        load(tmp_path)
