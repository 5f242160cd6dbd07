"""Paths once more, in NumPy and float64, one path, sequence and query at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.blocks.naive import naive_mlp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from isotest.blocks import BlockConfig
    from isotest.blocks.tasks.network import TaskNetwork

    Array = NDArray[np.float64]


def parameters_of(network: TaskNetwork) -> dict[str, Array]:
    """A copy of all weights."""
    return {
        name: value.detach().double().numpy().copy() for name, value in network.named_parameters()
    }


def naive_path(
    weights: Mapping[str, Array], config: BlockConfig, path: Sequence[int], x: Array
) -> Array:
    """One sequence (L, D), without padding, along one path."""
    for layer, way in enumerate(path):
        if way:
            front = f"stack.blocks.{layer}."
            own = {
                name.removeprefix(front): value
                for name, value in weights.items()
                if name.startswith(front)
            }
            x = naive_layer(own, config, way - 1, x)
    return x


def naive_layer(own: Mapping[str, Array], config: BlockConfig, head: int, x: Array) -> Array:
    if config.layer_norm == "post":
        y = plain_layer_norm(naive_head(own, config, head, x), config.layer_norm_eps)
        z = plain_layer_norm(y + naive_mlp(own, config, y), config.layer_norm_eps)
        return z * own["mlp_norm.weight"] + own["mlp_norm.bias"]
    entering = plain_rms_norm(x, config.layer_norm_eps) * own["attention_norm.weight"]
    y = naive_head(own, config, head, entering)
    normed = plain_rms_norm(y, config.layer_norm_eps) * own["mlp_norm.weight"]
    return y + naive_mlp(own, config, normed)


def naive_head(own: Mapping[str, Array], config: BlockConfig, head: int, x: Array) -> Array:
    """(L, D): one head through its own slice of the output map, and the output's bias."""
    size = config.width // config.heads
    mine = range(head * size, (head + 1) * size)

    def part(name: str, row: Array) -> Array:
        bias = own.get(f"attention.{name}.bias")
        return np.array(
            [
                own[f"attention.{name}.weight"][i] @ row + (0.0 if bias is None else bias[i])
                for i in mine
            ]
        )

    keys, values = [part("key", row) for row in x], [part("value", row) for row in x]
    out = np.zeros_like(x)
    for i, row in enumerate(x):
        scores = np.array([part("query", row) @ key for key in keys]) / size**0.5
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        attended = sum(share * value for share, value in zip(shares, values, strict=True))
        out[i] = own["attention.output.weight"][:, list(mine)] @ attended
        if config.bias:
            out[i] += own["attention.output.bias"]
    return out


def plain_layer_norm(x: Array, eps: float) -> Array:
    mean = x.mean(-1, keepdims=True)
    variance: Array = ((x - mean) ** 2).mean(-1, keepdims=True)
    result: Array = (x - mean) / np.sqrt(variance + eps)
    return result


def plain_rms_norm(x: Array, eps: float) -> Array:
    square: Array = (x**2).mean(-1, keepdims=True)
    result: Array = x / np.sqrt(square + eps)
    return result
