"""Sorting: position i is labelled with the i-th smallest symbol of the sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotest.blocks.tasks.config import NetworkConfig, block_config
from isotest.blocks.tasks.drawing import generator, require_drawn
from isotest.blocks.tasks.examples import Examples
from isotest.blocks.tasks.training import Settings

if TYPE_CHECKING:
    from isotest.blocks.tasks.config import Design

LENGTH, SYMBOLS, TRAINING = 8, 10, 1_000


class Sorting:
    """Eight of ten symbols, each drawn by itself, so that some repeat.

    Where a symbol goes depends on all others, and its place has to be known: this is the one of
    the tasks with embeddings of positions.

    >>> examples = Sorting().test(1, seed=0, repeat=0)
    >>> sorted(examples.inputs[0].tolist()) == examples.labels[0].tolist()
    True
    """

    name = "sorting"
    classes = SYMBOLS
    whole = False

    def train(self, *, seed: int) -> Examples:
        """1,000 sequences, as the authors have."""
        return self._drawn(generator("train", seed), TRAINING)

    def test(self, count: int | None, *, seed: int, repeat: int) -> Examples:
        """As of :meth:`isotest.blocks.tasks.task.Task.test`."""
        return self._drawn(generator("test", seed, repeat), require_drawn(self.name, count))

    def network_config(self, design: Design) -> NetworkConfig:
        """The authors' sizes."""
        block = block_config(design, width=48, heads=2, depth=6)
        return NetworkConfig(block, SYMBOLS, vocabulary=SYMBOLS, positions=LENGTH)

    def settings(self, design: Design) -> Settings:
        """How it is trained."""
        del design
        return Settings(learning_rate=1e-3, batch_size=30, epochs=40, dropout=0.1)

    @staticmethod
    def _drawn(draw: np.random.Generator, count: int) -> Examples:
        symbols = draw.integers(0, SYMBOLS, (count, LENGTH))
        return Examples.of(symbols, np.sort(symbols, axis=1))
