"""Special tokens are told by what a tokenizer added, never by where they stand or which id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch

from isotest.data.load import as_data
from isotest.measurement import measure_loaded
from tests.models.text import vocabularies
from tests.models.text.families import loaded, observed, pieces

if TYPE_CHECKING:
    from torch import Tensor

    from isotest.models.loaded import LoadedModel

CODE = "python:tests.models.text.vocabularies:"
LENGTH = 24

# One that is cut off; one whose text spells the special tokens, which then are not added ones.
TEXTS = [
    "the cat",
    "a",
    "of all the letters that were ever written down and then of some that were not",
    "[CLS] the [SEP] of [PAD] and",
    "zwölf?",
]


def naive(model: LoadedModel, tokenizer: Any, special_tokens: str) -> list[list[Tensor]]:
    """Of each text and each layer of BERT's kind, what counts, by transformers' own masks."""
    tokenizer = getattr(vocabularies, tokenizer)()
    found = []
    for text in TEXTS:
        encoded = tokenizer(
            text, truncation=True, max_length=LENGTH, return_special_tokens_mask=True
        )
        with torch.inference_mode():
            states = model.module(
                input_ids=torch.tensor([encoded["input_ids"]]), output_hidden_states=True
            ).hidden_states
        kept = torch.tensor(encoded["special_tokens_mask"]) == 0
        if special_tokens == "include":
            kept[:] = True
        found.append([state[0, kept] for state in states])
    return found


@pytest.mark.parametrize("special_tokens", ["exclude", "include"])
@pytest.mark.parametrize(
    ("name", "tokenizer"),
    [
        ("bert", "around"),
        ("bert", "around_left"),
        ("albert", "twice"),
        ("xlnet", "twice"),
        ("xlnet", "after"),
        ("roberta", "before_left"),
        ("gpt2", "bare_right"),
        ("llama", "before_left"),
        ("gpt2", "after"),
    ],
)
def test_what_counts_is_what_the_tokenizer_did_not_add(
    name: str, tokenizer: str, special_tokens: Any
) -> None:
    model = loaded(name, tokenizer=f"{CODE}{tokenizer}", length=LENGTH)
    found = observed(model, pieces(model, TEXTS), special_tokens=special_tokens)
    expected = naive(model, tokenizer, special_tokens)
    # hidden_states ends in the final norm's output where there is one, as the layers do; of the
    # last block there is no entry then.
    layers = [layer for layer in found if not (layer == "3" and "final" in found)]
    for number, text in enumerate(expected):
        for layer, rows in zip(layers, text, strict=True):
            torch.testing.assert_close(found[layer].rows[number], rows, rtol=1e-9, atol=1e-9)

    profile = measure_loaded(
        model,
        as_data(TEXTS, "text"),
        source="",
        model=name,
        modality="text",
        special_tokens=special_tokens,
    )
    count = sum(len(text[0]) for text in expected)
    assert {layer.representations for layer in profile.layers} == {count}
    assert profile.sequences == len(TEXTS)


def test_special_tokens_that_a_text_spells_are_its_own() -> None:
    """Transformers reads them as such, and no one has added them."""
    model = loaded("bert", tokenizer=f"{CODE}around", length=LENGTH)
    (piece,) = pieces(model, ["[CLS] the [SEP] of [PAD] and"])
    assert piece.content.tolist()[:4] == [
        vocabularies.CLS,
        vocabularies.CLS,
        vocabularies.VOCABULARY["the"],
        vocabularies.SEP,
    ]
    positions = model.feed.batch([piece]).positions["tokens"]
    assert positions.special.tolist() == [[True, *[False] * 6, True]]
    assert positions.valid.all()


@pytest.mark.parametrize(
    ("tokenizer", "added"),
    [("around", 2), ("before_left", 1), ("twice", 2), ("after", 1), ("bare_right", 0)],
)
def test_including_counts_what_was_added_to_each_text(tokenizer: str, added: int) -> None:
    model = loaded("bert", tokenizer=f"{CODE}{tokenizer}", length=LENGTH)
    counts = [
        measure_loaded(
            model,
            as_data(TEXTS, "text"),
            source="",
            model="bert",
            modality="text",
            special_tokens=special,
        )
        .layers[0]
        .representations
        for special in ("include", "exclude")
    ]
    # The text that is cut off has as many in all, whatever is added.
    assert counts[0] - counts[1] == added * len(TEXTS)


def test_the_decoder_reads_the_text_behind_its_start() -> None:
    """Its start token is special; the end of a sequence is not read, and nothing else is lost."""
    model = loaded("t5", tokenizer=f"{CODE}after", length=LENGTH)
    sequences = pieces(model, TEXTS)
    inputs = model.feed.batch(sequences)
    decoder = inputs.positions["decoder"]
    for row, sequence in enumerate(sequences):
        length = len(sequence.content)
        read = inputs.arguments["decoder_input_ids"][row]
        assert read[0] == 0
        assert read[1:length].tolist() == sequence.content[:-1].tolist()
        assert decoder.valid[row].tolist() == [k < length for k in range(len(read))]
        assert decoder.special[row].tolist() == [k == 0 for k in range(len(read))]
    mask = inputs.arguments["decoder_attention_mask"]
    assert mask.bool().equal(decoder.valid)

    found = observed(model, sequences, special_tokens="exclude")
    for layer, recorder in found.items():
        own = [len(sequence.content) - 1 for sequence in sequences]
        assert [len(rows) for rows in recorder.rows] == own, layer


@pytest.mark.parametrize("characters", [3, 4, 5, 6, 7, 18, 44, 90])
def test_molecules_count_where_they_hold_characters_of_the_text(characters: int) -> None:
    """Naively: molecule i is made of characters 4(i − 1) … 4i − 1, CLS the first of them.

    The model attends to molecule i where one of characters 4i … 4i + 3 is no padding.
    """
    length = 48
    model = loaded("canine", length=length)
    (piece,) = pieces(model, ["x" * characters])
    found = observed(model, [piece], special_tokens="exclude")
    own = [False] + [True] * min(characters, length - 2) + [False]
    own += [False] * (length - len(own))
    read = [k < min(characters + 2, length) for k in range(length)]
    kept = [
        i > 0 and any(own[4 * (i - 1) : 4 * i]) and any(read[4 * i : 4 * i + 4])
        for i in range(length // 4)
    ]
    for layer, recorder in found.items():
        expected = kept if layer.startswith("molecules") else own
        assert recorder.masks[0].tolist() == expected
    assert sum(kept) >= 1


@pytest.mark.parametrize("position", range(12))
def test_a_molecule_is_made_of_the_characters_said(position: int) -> None:
    """Changing one character changes, in the strided convolution, only the molecule it is in."""
    model = loaded("canine", length=48)
    convolution = model.module.get_submodule("chars_to_molecules")
    generator = torch.Generator().manual_seed(0)
    characters = torch.randn(1, 48, 32, generator=generator)
    changed = characters.clone()
    changed[0, position] += 1
    with torch.inference_mode():
        difference = (convolution(characters) - convolution(changed))[0].abs().amax(1)
    touched = {int(k) for k in difference.nonzero()}
    # Molecule 0 is the CLS character itself, beside the part that it has in molecule 1.
    assert touched == {position // 4 + 1} | ({0} if position == 0 else set())
