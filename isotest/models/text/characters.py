"""Encoders that need no vocabulary: bytes, code points, the characters of words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotest.models.text.encoder import TextEncoder, ids

if TYPE_CHECKING:
    from isotest.models.text.encoder import Ids

BYTE_OFFSET = 3
"""Of ByT5 (Xue et al., 2022): 0 is padding, 1 the end of a sequence, 2 unknown."""


def utf8(text: str) -> Ids:
    """The UTF-8 bytes of a text, as ByT5 and MANTa-LM number them.

    >>> utf8("é").tolist()
    [198, 172]
    """
    # A lone surrogate has no bytes: what a JSON file smuggles in becomes a replacement character.
    encoded = text.encode("utf-8", errors="replace")
    return np.frombuffer(encoded, np.uint8).astype(np.int64) + BYTE_OFFSET


def code_points(text: str) -> Ids:
    """The Unicode code points of a text, as CANINE (Clark et al., 2022) reads them.

    >>> code_points("aé").tolist()
    [97, 233]
    """
    return np.array([ord(character) for character in text], np.int64)


def by_bytes() -> TextEncoder:
    """ByT5's and MANTa-LM's: an end of sequence after the bytes."""
    # 256 bytes and three special ids; published models have some more that no text contains.
    return TextEncoder(utf8, BYTE_OFFSET + 256, "bytes", suffix=ids(1), padding=0)


def by_code_points() -> TextEncoder:
    """CANINE's: CLS and SEP are code points of Unicode's private use area."""
    return TextEncoder(
        code_points, 0x110000, "characters", prefix=ids(0xE000), suffix=ids(0xE001), padding=0
    )


def by_words() -> TextEncoder:
    """CharacterBERT's: words and punctuation marks, each as the ids of its characters.

    Words are split as BERT's uncased models split them, in lower case and without accents.
    """
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    from isotest.models.architectures.character_bert.words import (
        CHARACTERS,
        PADDING_WORD,
        word_ids,
    )

    normalizer, splitter = BertNormalizer(lowercase=True), BertPreTokenizer()

    def encode(text: str) -> Ids:
        words = splitter.pre_tokenize_str(normalizer.normalize_str(text))
        return word_ids([word for word, _ in words])

    return TextEncoder(
        encode,
        CHARACTERS,
        "words",
        prefix=word_ids(["[CLS]"]),
        suffix=word_ids(["[SEP]"]),
        padding=word_ids([PADDING_WORD])[0],
    )
