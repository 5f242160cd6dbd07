"""Words as the character ids that CharacterBERT reads, which are ELMo's.

A character is a byte of UTF-8. Ids 0 … 255 stand for bytes and 256 … 261 for what no byte stands
for; all are shifted by one, which leaves 0 for words that are padding. 263 ids in all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

WORD_LENGTH = 50
"""Ids of a word: its begin, at most 48 bytes, its end, and padding."""

CHARACTERS = 263
"""How many ids there are, 0 included."""

_SENTENCE_BEGIN, _SENTENCE_END, _WORD_BEGIN, _WORD_END, _PADDING, _MASK = range(256, 262)

CHARACTER_PADDING = _PADDING + 1
"""The id that follows the end of a word."""

PADDING_WORD = "[PAD]"
"""The word whose ids are all 0."""

_SPECIAL = {"[CLS]": _SENTENCE_BEGIN, "[SEP]": _SENTENCE_END, "[MASK]": _MASK}


def word_ids(words: Sequence[str]) -> NDArray[np.int64]:
    """The character ids of words, one row each.

    ``[CLS]``, ``[SEP]`` and ``[MASK]`` are one character of their own between the begin and the end
    of a word, and ``[PAD]`` is all zeros, as the published tokenizer has it (El Boukkouri et al.
    2020). A word of more than 48 bytes is cut there, be it within a character of several bytes.

    Args:
        words: as they are to be read; the published models were trained on lower case.

    Returns:
        (number of words, 50), int64.

    >>> word_ids(["hi", "[CLS]", "[PAD]"])[:, :5].tolist()
    [[259, 105, 106, 260, 261], [259, 257, 260, 261, 261], [0, 0, 0, 0, 0]]
    """
    ids = np.full((len(words), WORD_LENGTH), CHARACTER_PADDING, dtype=np.int64)
    for row, word in zip(ids, words, strict=True):
        if word == PADDING_WORD:
            row[:] = 0
            continue
        if word in _SPECIAL:
            inside = [_SPECIAL[word]]
        else:
            inside = list(word.encode("utf-8", "ignore")[: WORD_LENGTH - 2])
        spelt = [_WORD_BEGIN, *inside, _WORD_END]
        row[: len(spelt)] = np.add(spelt, 1)
    return ids
