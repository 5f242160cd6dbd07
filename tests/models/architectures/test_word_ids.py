"""The character ids of words, as the published tokenizer of CharacterBERT makes them."""

from __future__ import annotations

import numpy as np
import pytest

from isotest.models.architectures.character_bert import WORD_LENGTH, word_ids


@pytest.mark.parametrize(
    ("word", "ids"),
    [
        # Bytes are shifted by one; 259 begins a word, 260 ends it, 261 follows.
        ("a", [259, 98, 260]),
        ("", [259, 260]),
        ("né", [259, 111, 0xC3 + 1, 0xA9 + 1, 260]),
        ("\x00", [259, 1, 260]),
        ("[CLS]", [259, 257, 260]),
        ("[SEP]", [259, 258, 260]),
        ("[MASK]", [259, 262, 260]),
        ("[cls]", [259, 92, 100, 109, 116, 94, 260]),
        ("x" * 48, [259, *[121] * 48, 260]),
        ("x" * 49, [259, *[121] * 48, 260]),
        ("x" * 47 + "é", [259, *[121] * 47, 0xC3 + 1, 260]),
        ("a\ud800b", [259, 98, 99, 260]),
    ],
)
def test_words_are_the_ids_that_the_published_tokenizer_makes(word: str, ids: list[int]) -> None:
    assert word_ids([word]).tolist() == [ids + [261] * (50 - len(ids))]


def test_a_padding_word_is_all_zeros() -> None:
    ids = word_ids(["hi", "[PAD]"])
    assert ids.dtype == np.int64
    assert ids.shape == (2, 50)
    assert not ids[1].any()
    assert word_ids([]).shape == (0, WORD_LENGTH)
