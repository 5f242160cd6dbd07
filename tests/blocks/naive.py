"""The block once more, in NumPy and float64, one query at a time, after the papers' equations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy.special import erf, expit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray
    from torch import Tensor, nn

    from isotest.blocks import BlockConfig, TransformerBlock

    Array = NDArray[np.float64]

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": lambda x: x * (1 + erf(x / np.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x * expit(x),
}


def random_block(config: BlockConfig, seed: int = 0) -> TransformerBlock:
    """A block in float64 whose biases and norms are random as well, so that they matter."""
    from isotest.blocks import TransformerBlock

    block = TransformerBlock(config).double()
    randomise(block, seed)
    return block


def randomise(module: nn.Module, seed: int) -> None:
    """Draw all parameters of a float64 block or stack, those of norms about their default."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.copy_(0.3 * drawn + (1 if "norm.weight" in name else 0))


@dataclass
class Attended:
    """Of each sequence, head and query; ``scores`` and ``weights`` are NaN and 0 where masked."""

    scores: Array
    weights: Array
    heads: Array
    output: Array


def naive_block(block: TransformerBlock, x: Tensor, valid: Tensor | None = None) -> Array:
    config = block.config
    parameters = {name: value.detach().numpy() for name, value in block.named_parameters()}
    y: Array = x.numpy()
    if config.attention:
        y = _sublayer(
            lambda z: naive_attention(parameters, config, z, valid).output,
            y,
            parameters,
            "attention_norm",
            config,
            skip=config.attention_skip,
        )
    if config.mlp:
        y = _sublayer(
            lambda z: naive_mlp(parameters, config, z),
            y,
            parameters,
            "mlp_norm",
            config,
            skip=config.mlp_skip,
        )
    return y


def naive_mlp(parameters: Mapping[str, Array], config: BlockConfig, x: Array) -> Array:
    activation = ACTIVATIONS[config.activation]
    hidden = _linear(parameters, "mlp.hidden", x)
    if config.gated:
        hidden = activation(_linear(parameters, "mlp.gate", x)) * hidden
    else:
        hidden = activation(hidden)
    return _linear(parameters, "mlp.output", hidden)


def naive_rms_norm(x: Array, gain: Array, eps: float) -> Array:
    """Zhang & Sennrich 2019, equation 4, one number at a time; ε as their code adds it."""
    result = np.empty_like(x)
    for place in np.ndindex(x.shape[:-1]):
        total = 0.0
        for entry in x[place]:
            total += float(entry) ** 2
        root = (total / len(x[place]) + eps) ** 0.5
        for i, entry in enumerate(x[place]):
            result[(*place, i)] = float(entry) / root * float(gain[i])
    return result


def naive_attention(
    parameters: Mapping[str, Array], config: BlockConfig, x: Array, valid: Tensor | None
) -> Attended:
    sequences, length, _ = x.shape
    size = config.width // config.heads
    query, key, value = (
        _linear(parameters, f"attention.{name}", x) for name in ("query", "key", "value")
    )
    shape = (sequences, config.heads, length, length)
    scores, weights = np.full(shape, np.nan), np.zeros(shape)
    heads = np.zeros((sequences, config.heads, length, size))
    for b in range(sequences):
        for h in range(config.heads):
            own = slice(h * size, (h + 1) * size)
            for i in range(length):
                keys = [
                    j
                    for j in range(length)
                    if (valid is None or valid[b, j]) and (not config.causal or j <= i)
                ]
                if not keys:
                    continue
                score = np.array([query[b, i, own] @ key[b, j, own] for j in keys]) / size**0.5
                weight = np.exp(score - score.max())
                scores[b, h, i, keys] = score
                weights[b, h, i, keys] = weight / weight.sum()
                heads[b, h, i] = weights[b, h, i, keys] @ value[b, keys, own]
    together = np.concatenate([heads[:, h] for h in range(config.heads)], axis=-1)
    output = _linear(parameters, "attention.output", together)
    return Attended(scores, weights, heads, output)


def _sublayer(
    function: Callable[[Array], Array],
    x: Array,
    parameters: Mapping[str, Array],
    norm: str,
    config: BlockConfig,
    *,
    skip: bool,
) -> Array:
    def normalised(y: Array) -> Array:
        if config.normalisation == "rmsnorm":
            return naive_rms_norm(y, parameters[f"{norm}.weight"], config.layer_norm_eps)
        centred = y - y.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + config.layer_norm_eps)
        result: Array = scaled * parameters[f"{norm}.weight"] + parameters[f"{norm}.bias"]
        return result

    match config.layer_norm:
        case "post":
            return normalised(x * skip + function(x))
        case "pre":
            return x * skip + function(normalised(x))
        case "none":
            return x * skip + function(x)


def _linear(parameters: Mapping[str, Array], name: str, x: Array) -> Array:
    bias = parameters.get(f"{name}.bias", np.zeros(()))
    return x @ parameters[f"{name}.weight"].T + bias
