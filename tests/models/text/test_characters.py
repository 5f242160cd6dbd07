"""Bytes, code points and words as the tokenizers of the published models make them."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import ByT5Tokenizer, CanineTokenizer
from transformers.models.bert.tokenization_bert_legacy import BasicTokenizer

from isotest.models.text.characters import by_bytes, by_code_points, by_words, utf8

SPOKEN = [
    "plain",
    "Zwölf Boxkämpfer",
    "漢字とかな",
    "🙂👩‍👧",
    "tab\tand\nline",
    "  two  spaces ",
    "",
]


@cache
def byt5() -> Any:
    return ByT5Tokenizer()


@cache
def canine() -> Any:
    return CanineTokenizer()


# "<" begins what ByT5's tokenizer reads as special; half of a surrogate pair has no bytes.
@given(st.one_of(st.sampled_from(SPOKEN), st.text(st.characters(exclude_categories=["Cs"]))))
def test_bytes_are_byt5s(text: str) -> None:
    text = text.replace("<", "")
    encoder = by_bytes()
    assert encoder.sequence(encoder.encode(text)).tolist() == byt5()(text)["input_ids"]


@pytest.mark.parametrize("text", ["</s> and <pad> and <extra_id_0>", "<unk>"])
def test_bytes_of_what_looks_like_a_token_are_bytes(text: str) -> None:
    """A text that spells a special token is a text, and all of its bytes count."""
    assert by_bytes().encode(text).tolist() == [byte + 3 for byte in text.encode()]


def test_half_of_a_surrogate_pair_becomes_a_question_mark() -> None:
    assert utf8("a\ud800b").tolist() == [ord("a") + 3, ord("?") + 3, ord("b") + 3]


# CANINE's special code points are private ones.
@given(st.one_of(st.sampled_from(SPOKEN), st.text(st.characters(exclude_categories=["Cs", "Co"]))))
def test_code_points_are_canines(text: str) -> None:
    encoder = by_code_points()
    assert encoder.sequence(encoder.encode(text)).tolist() == canine()(text)["input_ids"]


def test_padding_and_special_ids_are_the_published_ones() -> None:
    assert by_bytes().padding == byt5().pad_token_id
    assert by_code_points().padding == canine().pad_token_id
    assert by_bytes().size <= len(byt5())
    assert [by_bytes().added, by_code_points().added, by_words().added] == [1, 2, 2]


def spelt(word: str) -> list[int]:
    """Naively: begin, bytes, end, padding; fifty in all, everything one up."""
    inside = list(word.encode())[:48]
    return [k + 1 for k in [258, *inside, 259] + [260] * (48 - len(inside))]


@given(
    st.one_of(
        st.sampled_from([*SPOKEN, "it's e.g. snake_case, naïve café", "x" * 60, "[CLS] [PAD]"]),
        st.text(st.sampled_from("aAbZ09 éÜñ漢字かя.,_-'\"()[]$\t\n\x00\u200b\ufffd\u00a0")),
    )
)
def test_words_are_those_of_berts_basic_tokenizer(text: str) -> None:
    words = BasicTokenizer(do_lower_case=True).tokenize(text)
    found = by_words().encode(text)
    assert found.tolist() == [spelt(word) for word in words]
    assert found.shape == (len(words), 50)


def test_sentences_of_words_begin_and_end_as_elmos() -> None:
    encoder = by_words()
    sequence = encoder.sequence(encoder.encode("hi"))
    # CLS and SEP are words of one character each: the begin and the end of a sentence.
    begin, end = ([259, inside, 260, *[261] * 47] for inside in (257, 258))
    assert sequence.tolist() == [begin, spelt("hi"), end]
    assert encoder.padding is not None
    assert list(encoder.padding) == [0] * 50  # type: ignore[arg-type]
