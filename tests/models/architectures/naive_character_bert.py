"""ELMo's character network in numpy, one word and one window of characters at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    from isotest.models.architectures.character_bert.configuration import CharacterBertConfig

    Array = NDArray[np.float64]


def sigmoid(x: Array) -> Array:
    result: Array = 1 / (1 + np.exp(-x))
    return result


def naive_highway(x: Array, weight: Array, bias: Array) -> Array:
    """Srivastava et al. 2015 with the carry gate of ELMo: y = g ⊙ x + (1 − g) ⊙ relu(W x + b)."""
    width = len(x)
    transformed = np.maximum(weight[:width] @ x + bias[:width], 0)
    carry = sigmoid(weight[width:] @ x + bias[width:])
    result: Array = carry * x + (1 - carry) * transformed
    return result


def naive_word(ids: list[int], state: dict[str, Array], config: CharacterBertConfig) -> Array:
    """ELMo's character network on one word, a window of characters at a time."""
    characters = state["_char_embedding_weights"][ids]
    features: list[float] = []
    for k, (width, filters) in enumerate(config.cnn_filters):
        weight, bias = state[f"char_conv_{k}.weight"], state[f"char_conv_{k}.bias"]
        for filter_ in range(filters):
            responses = [
                (characters[at : at + width].T * weight[filter_]).sum() + bias[filter_]
                for at in range(len(ids) - width + 1)
            ]
            features.append(max(0.0, *responses))
    x = np.array(features)
    for k in range(config.num_highway_layers):
        x = naive_highway(
            x, state[f"_highways._layers.{k}.weight"], state[f"_highways._layers.{k}.bias"]
        )
    result: Array = state["_projection.weight"] @ x + state["_projection.bias"]
    return result


def arrays(module: torch.nn.Module) -> dict[str, Array]:
    return {name: tensor.double().numpy() for name, tensor in module.state_dict().items()}
