"""Watching a model run for what only attention does: a softmax, fused with its scores or not."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from isotest.models.attention.call import NotObservable
from isotest.models.feed import placed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isotest.models.loaded import LoadedModel

Fused = Callable[..., None]
"""Takes the arguments of one call of ``scaled_dot_product_attention``, before it runs."""

_WHOLE: frozenset[Any] = frozenset(
    {
        functional.softmax,
        functional.multi_head_attention_forward,
        torch.softmax,
        torch.Tensor.softmax,
        torch._native_multi_head_attention,
        torch._transformer_encoder_layer_fwd,
    }
)


class _Watch(TorchFunctionMode):
    def __init__(self, fused: Fused, unfused: Callable[[], None]) -> None:
        super().__init__()
        self._fused = fused
        self._unfused = unfused

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        del types
        named = kwargs or {}
        if function is functional.scaled_dot_product_attention:
            self._fused(*args, **named)
        elif function in _WHOLE:
            self._unfused()
        return function(*args, **named)


@contextmanager
def watched(fused: Fused, unfused: Callable[[], None]) -> Iterator[None]:
    """While the context is open, ``fused`` and ``unfused`` are called at every softmax.

    Torch offers a place in front of its functions for this; nothing is replaced, and what they
    compute stays the same. Only this thread is watched.

    Args:
        fused: takes the arguments of each ``scaled_dot_product_attention``.
        unfused: is called at each softmax of another kind.
    """
    with _Watch(fused, unfused):
        yield


def observer(loaded: LoadedModel) -> NotObservable | None:
    """That a model has no attention, where one forward pass of a blank input has no softmax.

    VAN, whose attention is a convolution, and convolutional networks have none.
    """
    seen: list[None] = []

    def note(*_args: Any, **_kwargs: Any) -> None:
        seen.append(None)

    inputs = placed(loaded.feed.batch([loaded.feed.blank()]), loaded.module)
    with torch.inference_mode(), watched(note, note):
        loaded.module(**inputs.arguments)
    if seen:
        return None
    name = type(loaded.module).__name__
    return NotObservable(f"{name} has no attention: it computes no softmax", absent=True)
