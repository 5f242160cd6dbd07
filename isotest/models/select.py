"""From a module's raw output to its representation tensor, one function a layout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from torch import Tensor


def first(output: Any) -> Tensor:
    """The tensor itself, or the first of a tuple, list or mapping (an attention block's output)."""
    if isinstance(output, Mapping):
        output = next(iter(output.values()), None)
    if isinstance(output, tuple | list) and output:
        output = output[0]
    return cast("Tensor", output)


def second(output: Any) -> Tensor:
    """The second of a tuple: what a module yields beside its representations."""
    return cast("Tensor", output[1])


def channels_first(output: Any) -> Tensor:
    """A map with its channels last, as (batch, channels, height, width)."""
    return first(output).permute(0, 3, 1, 2)


def length_first(output: Any) -> Tensor:
    """Tokens with their length first, (length, batch, width), as (batch, length, width)."""
    return first(output).transpose(0, 1)


def one_token(output: Any) -> Tensor:
    """One vector per input, (batch, width), as one token: (batch, 1, width)."""
    return first(output).unsqueeze(1)
