"""What an observer sees of one forward pass, and the softmax written out, to hold against it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

from isotest.models.attention.call import AttentionCall, NotObservable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor, nn


@dataclass
class Seen:
    """Calls by the path of their module, in order; what was not observable, by path."""

    output: Any = None
    calls: dict[str, list[AttentionCall]] = field(default_factory=dict)
    unseen: dict[str, str] = field(default_factory=dict)

    def receive(self, path: str, seen: AttentionCall | NotObservable) -> None:
        if isinstance(seen, NotObservable):
            self.unseen[path] = seen.reason
        else:
            self.calls.setdefault(path, []).append(seen)


def loaded(module: nn.Module) -> Any:
    """As much of a loaded model as observers look at."""
    return SimpleNamespace(module=module.eval())


def watched(
    module: nn.Module, inputs: Mapping[str, Tensor], choose: Callable[[Any], Any], **asked: Any
) -> Seen:
    """One forward pass with the observer that ``choose`` gives; ``asked``: further arguments.

    With the observer the model computes the same, bit for bit, and afterwards it has no more hooks.
    """
    model = loaded(module)
    observer = choose(model)
    seen = Seen()
    with torch.inference_mode():
        without = module(**inputs, **asked)
        before = hooks(module)  # transformers adds some of its own the first time
        with observer.observed(model, seen.receive):
            seen.output = module(**inputs, **asked)
    for a, b in zip(tensors(without), tensors(seen.output), strict=True):
        assert torch.equal(a, b)
    assert hooks(module) == before
    return seen


def hooks(module: nn.Module) -> int:
    return sum(
        len(child._forward_hooks) + len(child._forward_pre_hooks) for child in module.modules()
    )


def tensors(value: Any) -> list[Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    parts = value.values() if hasattr(value, "values") else value or ()
    return [tensor for part in parts for tensor in tensors(part)]


def probabilities(call: AttentionCall) -> Tensor:
    """(B, H, Lq, Lk): the softmax of ``scale · q·kᵀ + bias`` over the allowed keys.

    Rows without an allowed key are zero.
    """
    groups = call.query.shape[1] // call.key.shape[1]
    scores = call.scale * call.query @ call.key.repeat_interleave(groups, 1).mT
    if call.bias is not None:
        scores = scores + call.bias
    if call.allowed is not None:
        scores = scores.masked_fill(~call.allowed, -torch.inf)
    return scores.softmax(-1).nan_to_num(0.0)
