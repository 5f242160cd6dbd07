"""Memorization: every token of 500 sentences has a label that was drawn by a coin."""

from __future__ import annotations

import json
import re
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

import isotest
from isotest.blocks.tasks.config import NetworkConfig, block_config
from isotest.blocks.tasks.drawing import generator
from isotest.blocks.tasks.examples import Examples
from isotest.blocks.tasks.identity import SENTENCES
from isotest.blocks.tasks.training import Settings
from isotest.errors import SourceError

if TYPE_CHECKING:
    from isotest.blocks.tasks.config import Design

SHORTEST, LONGEST = 3, 128

_PASSAGES = Path(isotest.__file__).parent / "samples" / "passages" / "passages.jsonl"
_SENTENCE_END = re.compile(r"(?<=[.?!])\s+")
_WORD = re.compile(r"\w+|[^\w\s]")


class Memorization:
    """500 sentences of the passages that come with isotest, and a random label of every token.

    The sentences and labels are fixed: there are no others, a network is judged by what it has
    learnt, and the seed of its training is that of its weights alone.

    **A ceiling.** Without positions, equal tokens of one sentence have equal representations in
    every layer, so their labels come out the same. What can be learnt at most is the commoner label
    of each (:meth:`ceiling`).

    >>> Memorization().test(None, seed=0, repeat=0).labels.shape
    torch.Size([500, 127])
    """

    name = "memorization"
    classes = 2
    whole = True

    def train(self, *, seed: int) -> Examples:
        """All there is, whatever the seed."""
        del seed
        tokens, _ = _tokens()
        lengths = np.array([len(sentence) for sentence in tokens])
        valid = np.arange(lengths.max()) < lengths[:, None]
        inputs = np.zeros(valid.shape, np.int64)
        inputs[valid] = np.concatenate(tokens)
        labels = np.zeros(valid.shape, np.int64)
        labels[valid] = generator("train", 1).integers(0, self.classes, lengths.sum())
        return Examples.of(inputs, labels, valid)

    def test(self, count: int | None, *, seed: int, repeat: int) -> Examples:
        """What it has learnt, or some of it, drawn anew for every seed and repeat.

        Raises:
            SourceError: more are asked for than there are, or none.
        """
        examples = self.train(seed=seed)
        if count is None:
            return examples
        if not 1 <= count <= SENTENCES:
            raise SourceError(
                f"task:{self.name}: expected samples to be from 1 to {SENTENCES}, the sentences "
                f'that a network has learnt, or "all", found {count}'
            )
        chosen = generator("test", seed, repeat).choice(SENTENCES, count, replace=False)
        return examples[torch.from_numpy(np.sort(chosen))]

    def ceiling(self) -> float:
        """The accuracy that no network without positions can exceed.

        The share of tokens with the commoner label of all equal tokens in their sentence.
        """
        examples = self.train(seed=0)
        right = 0
        for inputs, labels, valid in zip(
            examples.inputs, examples.labels, examples.valid, strict=True
        ):
            counts = np.zeros((int(inputs.max()) + 1, self.classes), np.int64)
            np.add.at(counts, (inputs[valid].numpy(), labels[valid].numpy()), 1)
            right += int(counts.max(axis=1).sum())
        return right / int(examples.valid.sum())

    def network_config(self, design: Design) -> NetworkConfig:
        """Narrower than the authors', who have a width of 250, so that the weights stay small."""
        block = block_config(design, width=96, heads=2, depth=6)
        return NetworkConfig(block, self.classes, vocabulary=len(_tokens()[1]))

    def settings(self, design: Design) -> Settings:
        """How it is trained."""
        del design
        return Settings(learning_rate=1e-3, batch_size=8, epochs=25, dropout=0.1)


def sentences() -> list[str]:
    """500 whole sentences of 3 to 128 words and punctuation marks, in the order of the passages."""
    found = []
    with _PASSAGES.open(encoding="utf-8") as lines:
        for line in lines:
            # A passage is cut off after so many words: its last sentence is not whole.
            *whole, _ = _SENTENCE_END.split(json.loads(line)["text"])
            found += [each for each in whole if SHORTEST <= len(words(each)) <= LONGEST]
    chosen = generator("train", 0).choice(len(found), SENTENCES, replace=False)
    return [found[index] for index in sorted(chosen)]


def words(sentence: str) -> list[str]:
    """Words in lower case, and every punctuation mark by itself.

    >>> words("In the beginning, God…")
    ['in', 'the', 'beginning', ',', 'god', '…']
    """
    return _WORD.findall(sentence.lower())


@cache
def _tokens() -> tuple[list[list[int]], dict[str, int]]:
    """Every sentence as numbers of words, and the number of each word that occurs."""
    split = [words(sentence) for sentence in sentences()]
    vocabulary = {word: number for number, word in enumerate(sorted({*chain(*split)}))}
    return [[vocabulary[word] for word in sentence] for sentence in split], vocabulary
