"""BERT, GPT-2 and ViT of transformers as a sum over paths.

Such a model is taken apart in one forward pass: what enters its LayerNorms and leaves its MLPs is
read by hooks, its attention maps are computed from the queries, keys and masks that its attention
function is given. Held fixed, they make it a :class:`isotest.blocks.paths.network.FixedNetwork`.
What the MLPs added is a fixed addend: an MLP is no element of a path.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from isotest.blocks.paths.network import FixedLayer, FixedNetwork, FixedNorm, Step, require_same
from isotest.errors import BlockError
from isotest.models.attention.call import AttentionCall, NotObservable
from isotest.models.attention.interface import InterfaceObserver, observer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor

    _Maps = tuple[Tensor, Tensor | None, Tensor, Tensor | None]
    """Value weights (H, D, d) and biases (H, d), output weights (H, d, D) and bias (D,)."""


@dataclass(frozen=True)
class Family:
    """Where the parts of a kind of transformer are.

    Attributes:
        layers: path of the list of layers, below the model.
        attention: path of the module that asks for the attention function, below a layer.
        maps: a layer's value and output weights.
        enter: path of the LayerNorm in front of the attention (pre-norm).
        after: path of the LayerNorm behind the attention and its skip (post-norm).
        mlp: path of the module whose output the MLP adds.
        mlp_after: path of the LayerNorm behind the MLP and its skip (post-norm).
        final: path of the LayerNorm behind the last layer, below the model.
    """

    layers: str
    attention: str
    maps: Callable[[Any], _Maps]
    enter: str | None
    after: str | None
    mlp: str
    mlp_after: str | None
    final: str | None


def _bert(layer: Any) -> _Maps:
    own = layer.attention.self
    return _maps(
        own.num_attention_heads,
        own.value.weight.T,
        own.value.bias,
        layer.attention.output.dense.weight.T,
        layer.attention.output.dense.bias,
    )


def _gpt2(layer: Any) -> _Maps:
    # Its Conv1D multiplies from the right: queries, keys and values side by side.
    weight, bias = layer.attn.c_attn.weight.chunk(3, 1)[2], layer.attn.c_attn.bias.chunk(3)[2]
    return _maps(
        layer.attn.num_heads, weight, bias, layer.attn.c_proj.weight, layer.attn.c_proj.bias
    )


def _vit(layer: Any) -> _Maps:
    own = layer.attention
    return _maps(
        own.num_attention_heads,
        own.v_proj.weight.T,
        own.v_proj.bias,
        own.o_proj.weight.T,
        own.o_proj.bias,
    )


def _maps(
    heads: int, value: Tensor, value_bias: Tensor | None, output: Tensor, bias: Tensor | None
) -> _Maps:
    """Cut into heads: value (D, H·d), value_bias (H·d,), output (H·d, D), bias (D,)."""
    return (
        value.detach().unflatten(1, (heads, -1)).transpose(0, 1),
        None if value_bias is None else value_bias.detach().unflatten(0, (heads, -1)),
        output.detach().unflatten(0, (heads, -1)),
        None if bias is None else bias.detach(),
    )


FAMILIES: Mapping[str, Family] = {
    "BertModel": Family(
        layers="encoder.layer",
        attention="attention.self",
        maps=_bert,
        enter=None,
        after="attention.output.LayerNorm",
        mlp="output.dense",
        mlp_after="output.LayerNorm",
        final=None,
    ),
    "GPT2Model": Family("h", "attn", _gpt2, "ln_1", None, "mlp", None, "ln_f"),
    "ViTModel": Family(
        "layers", "attention", _vit, "layernorm_before", None, "mlp", None, "layernorm"
    ),
}
"""By the name of transformers' class."""


@torch.no_grad()
def fixed_model(model: nn.Module, inputs: Mapping[str, Tensor]) -> FixedNetwork:
    """A model with its attention maps, LayerNorm statistics and MLPs held fixed, at one batch.

    Args:
        model: transformers' ``BertModel``, ``GPT2Model`` or ``ViTModel``, or a model that holds
            one, in eval mode, in float32 or float64. It is run once and left as it was.
        inputs: keyword arguments of its forward pass; positions that a (B, T) ``attention_mask``
            hides do not count.

    Returns:
        The network. Its output is that of the last layer, or of the LayerNorm behind it, and was
        compared with the model's.

    Raises:
        BlockError: it is no such model or not in eval mode, or has a part that is not known here:
            the sum over all paths is then another than the model's output.
    """
    base, family = _recognised(model)
    layers: Any = base.get_submodule(family.layers)
    seen = _Seen(base)
    watch = observer(_Base(base))
    if not isinstance(watch, InterfaceObserver):
        reason = "it asks for no attention function" if watch is None else watch.reason
        raise BlockError(f"paths: {type(base).__name__}'s attention is not observable: {reason}")
    with ExitStack() as stack:
        stack.enter_context(watch.observed(_Base(base), seen.attention))
        seen.enters(f"{family.layers}.0", stack)
        for number in range(len(layers)):
            for path in (family.enter, family.after, family.mlp_after):
                if path is not None:
                    seen.enters(f"{family.layers}.{number}.{path}", stack)
            seen.leaves(f"{family.layers}.{number}.{family.mlp}", stack)
        if family.final is not None:
            seen.enters(family.final, stack)
        last = family.final or f"{family.layers}.{len(layers) - 1}"
        seen.leaves(last, stack)
        model(**inputs)
    start = seen.at(f"{family.layers}.0", "entered")
    network = FixedNetwork(
        start,
        tuple(
            _fixed(layer, family, seen, f"{family.layers}.{number}")
            for number, layer in enumerate(layers)
        ),
        None if family.final is None else seen.norm(family.final),
        _valid(inputs.get("attention_mask"), start),
    )
    require_same(network, seen.at(last, "left"), type(base).__name__)
    return network


@dataclass(frozen=True)
class _Base:
    module: nn.Module


class _Seen:
    """What entered and left modules in one forward pass, by their paths below the model."""

    def __init__(self, base: nn.Module) -> None:
        self._base = base
        self._tensors: dict[tuple[str, str], Tensor] = {}
        self._maps: dict[str, Tensor] = {}

    def enters(self, path: str, stack: ExitStack) -> None:
        """Keep what enters a module until ``stack`` is left."""

        def keep(_module: Any, args: Any, kwargs: Any) -> None:
            self._keep(path, "entered", args[0] if args else kwargs.get("hidden_states"))

        module = self._base.get_submodule(path)
        stack.callback(module.register_forward_pre_hook(keep, with_kwargs=True).remove)

    def leaves(self, path: str, stack: ExitStack) -> None:
        """Keep what leaves a module until ``stack`` is left."""

        def keep(_module: Any, _args: Any, output: Any) -> None:
            self._keep(path, "left", output)

        stack.callback(self._base.get_submodule(path).register_forward_hook(keep).remove)

    def attention(self, path: str, call: AttentionCall | NotObservable) -> None:
        """Keep the attention map of a call."""
        if isinstance(call, NotObservable):
            raise BlockError(f"paths: the attention of {path} is not observable: {call.reason}")
        if path in self._maps:
            raise BlockError(f"paths: {path} ran more than once in one forward pass")
        self._maps[path] = _map(call)

    def at(self, path: str, side: str) -> Tensor:
        """(B, T, D) as it entered or left a module."""
        if (path, side) not in self._tensors:
            raise BlockError(f"paths: {path} did not run in the forward pass")
        return self._tensors[path, side]

    def map(self, path: str) -> Tensor:
        """(B, H, T, T)."""
        if path not in self._maps:
            raise BlockError(f"paths: the attention of {path} was not seen in the forward pass")
        return self._maps[path]

    def norm(self, path: str) -> FixedNorm | None:
        """A LayerNorm as it is for what entered it."""
        return FixedNorm.of(self._base.get_submodule(path), self.at(path, "entered"), path)

    def _keep(self, path: str, side: str, tensor: Any) -> None:
        if not isinstance(tensor, torch.Tensor) or tensor.dim() != 3:
            raise BlockError(f"paths: expected what {side} {path} to be (batch, length, width)")
        if (path, side) in self._tensors:
            raise BlockError(f"paths: {path} ran more than once in one forward pass")
        self._tensors[path, side] = tensor.detach()


def _fixed(layer: Any, family: Family, seen: _Seen, path: str) -> FixedLayer:
    value, value_bias, output, bias = family.maps(layer)
    added = seen.at(f"{path}.{family.mlp}", "left")

    def norm(name: str | None) -> FixedNorm | None:
        return None if name is None else seen.norm(f"{path}.{name}")

    return FixedLayer(
        weights=seen.map(f"{path}.{family.attention}"),
        enter=norm(family.enter),
        value=value,
        value_bias=value_bias,
        output=output,
        leave=(Step(bias, norm(family.after)), Step(added, norm(family.mlp_after))),
    )


def _map(call: AttentionCall) -> Tensor:
    """(B, H, T, T), the softmax that a call computes; a query without keys attends to none."""
    key = call.key.repeat_interleave(call.query.shape[1] // call.key.shape[1], dim=1)
    scores = call.scale * call.query @ key.transpose(-1, -2)
    if call.bias is not None:
        scores = scores + call.bias
    if call.softcap is not None:
        scores = call.softcap * (scores / call.softcap).tanh()
    if call.allowed is None:
        return scores.softmax(-1)
    scores = scores.masked_fill(~call.allowed, -torch.inf)
    return scores.softmax(-1).masked_fill(~call.allowed, 0.0)


def _recognised(model: nn.Module) -> tuple[nn.Module, Family]:
    for module in model.modules():
        for kind in type(module).__mro__:
            if kind.__name__ in FAMILIES and kind.__module__.startswith("transformers."):
                family = FAMILIES[kind.__name__]
                _require_parts(module, family)
                if model.training:
                    raise BlockError("paths: the model is in training mode; call model.eval()")
                return module, family
    raise BlockError(
        f"paths: expected one of transformers' {', '.join(FAMILIES)} or a model that holds one, "
        f"found {type(model).__name__}"
    )


def _require_parts(base: nn.Module, family: Family) -> None:
    """That this release of transformers keeps the parts where they are looked for."""
    within = f"{family.layers}.0."
    own = (family.attention, family.enter, family.after, family.mlp, family.mlp_after)
    for path in (*(f"{within}{name}" for name in own if name), family.final):
        if path is None:
            continue
        try:
            base.get_submodule(path)
        except AttributeError:
            raise BlockError(
                f"paths: {type(base).__name__} of this release of transformers has no {path}"
            ) from None


def _valid(mask: Tensor | None, start: Tensor) -> Tensor:
    if mask is None:
        return torch.ones(start.shape[:2], dtype=torch.bool, device=start.device)
    if mask.shape != start.shape[:2]:
        raise BlockError(
            f"paths: expected an attention_mask of shape {tuple(start.shape[:2])}, found "
            f"{tuple(mask.shape)}"
        )
    return mask.bool()
