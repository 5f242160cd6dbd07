"""ELMo's character network: from the characters of a word to its vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.activations import ACT2FN

from isotest.models.architectures.character_bert.words import CHARACTERS

if TYPE_CHECKING:
    from isotest.models.architectures.character_bert.configuration import CharacterBertConfig


class Highway(nn.Module):
    """Highway layers (Srivastava et al. 2015): each carries a part of its input through.

    With (a, b) the two halves of one linear map of x, and g = σ(b): y = g ⊙ x + (1 − g) ⊙ relu(a).
    """

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self._layers = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        """(…, width) to the same."""
        for layer in self._layers:
            transformed, gate = layer(x).chunk(2, dim=-1)
            x = torch.lerp(functional.relu(transformed), x, torch.sigmoid(gate))
        return x


class CharacterCnn(nn.Module):
    """ELMo's character network (Peters et al. 2018), which makes one vector of a word.

    Character embeddings, convolutions of several widths, the maximum over positions, activation,
    highway layers and a projection.
    """

    def __init__(self, config: CharacterBertConfig) -> None:
        super().__init__()
        self.word_length = config.max_word_length
        width = config.character_embeddings_dim
        self._char_embedding_weights = nn.Parameter(torch.empty(CHARACTERS, width))
        for k, (length, filters) in enumerate(config.cnn_filters):
            self.add_module(f"char_conv_{k}", nn.Conv1d(width, filters, length))
        self.activation = ACT2FN[config.cnn_activation]
        total = sum(filters for _, filters in config.cnn_filters)
        self._highways = Highway(total, config.num_highway_layers)
        self._projection = nn.Linear(total, config.hidden_size)

    def forward(self, input_ids: Tensor) -> Tensor:
        """Character ids (batch, length, characters) to words' vectors (batch, length, width).

        Raises:
            ValueError: ids of another shape.
        """
        if input_ids.dim() != 3 or input_ids.shape[-1] != self.word_length:
            raise ValueError(
                f"expected character ids of shape (batch, words, {self.word_length}), found "
                f"{tuple(input_ids.shape)}"
            )
        characters = functional.embedding(input_ids.flatten(0, 1), self._char_embedding_weights)
        signal = characters.transpose(1, 2)
        strongest = [
            convolution(signal).amax(dim=-1)
            for convolution in self.children()
            if isinstance(convolution, nn.Conv1d)
        ]
        features = self._highways(self.activation(torch.cat(strongest, dim=-1)))
        words: Tensor = self._projection(features).unflatten(0, input_ids.shape[:2])
        return words
