"""Attention that goes through transformers' attention interface.

Every attention module of these models asks ``AttentionInterface.get_interface`` for the function
of the implementation that its configuration names, in each call. While a model is observed, what
is handed out looks at the arguments first and then calls that same function: names of
implementations, configurations and masks stay as they are, so the model computes what it always
does, and ``eager`` is observed like ``sdpa``.
"""

from __future__ import annotations

import inspect
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from isotest.models.attention.call import AttentionCall, NotObservable
from isotest.models.attention.masks import bias_and_allowed, hides_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import nn

    from isotest.models.attention.call import HoldsModule, Receive

_OTHER_SEQUENCE = ("key_value_states", "encoder_hidden_states")
"""What attention modules call the sequence that their keys are of, where it is not their own."""


def observer(loaded: HoldsModule) -> InterfaceObserver | NotObservable | None:
    """The observer of a model of transformers, or of what holds one or a part of one.

    ``None``: nothing in it asks for transformers' interface.
    """
    if "transformers" not in sys.modules:
        return None  # nobody can have made a module of it
    from transformers import PreTrainedModel
    from transformers.modeling_utils import AttentionInterface

    if not isinstance(loaded.module, PreTrainedModel) and not any(
        _asks_for_interface(module) for module in loaded.module.modules()
    ):
        return None
    if not hasattr(AttentionInterface, "get_interface"):
        return NotObservable("this transformers has another attention interface; upgrade it")
    through = tuple(
        path for path, module in loaded.module.named_modules() if _asks_for_interface(module)
    )
    opaque = tuple(_opaque(loaded.module, through))
    if not through and not opaque:
        return NotObservable(f"{type(loaded.module).__name__} has no attention", absent=True)
    return InterfaceObserver(through, opaque)


class InterfaceObserver:
    """Sees the modules that ask transformers' interface for their attention function.

    Args:
        through: paths of these modules.
        opaque: paths of attention modules that compute it in a way of their own.
    """

    def __init__(self, through: tuple[str, ...], opaque: tuple[str, ...]) -> None:
        self._through = through
        self._opaque = opaque

    @contextmanager
    def observed(self, loaded: HoldsModule, receive: Receive, /) -> Iterator[None]:
        """See :meth:`isotest.models.attention.call.AttentionObserver.observed`."""
        from transformers.modeling_utils import AttentionInterface

        interface: Any = AttentionInterface
        watch = _Watch(receive)
        hand_out = interface.get_interface

        def get_interface(self: Any, name: Any, default: Any) -> Callable[..., Any]:
            return watch.watched(name, hand_out(self, name, default))

        with ExitStack() as stack:
            for path in self._through:
                watch.follow(path, loaded.module.get_submodule(path), stack)
            for path in self._opaque:
                module = loaded.module.get_submodule(path)
                reason = NotObservable(f"{type(module).__name__} computes it in its own way")
                handle = module.register_forward_pre_hook(
                    lambda _module, _args, path=path, reason=reason: receive(path, reason)
                )
                stack.callback(handle.remove)
            interface.get_interface = get_interface
            try:
                yield
            finally:
                interface.get_interface = hand_out


class _Watch:
    """Which of the followed modules runs, and whether it went through the interface."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._paths: dict[nn.Module, str] = {}
        self._signatures: dict[nn.Module, inspect.Signature] = {}
        self._cross: dict[nn.Module, bool] = {}
        """Of the modules that run now and have not computed their attention yet."""

    def follow(self, path: str, module: nn.Module, stack: ExitStack) -> None:
        """Watch a module until ``stack`` is left."""
        self._paths[module] = path
        self._signatures[module] = inspect.signature(module.forward)
        before = module.register_forward_pre_hook(self._before, with_kwargs=True)
        after = module.register_forward_hook(self._after)
        stack.callback(before.remove)
        stack.callback(after.remove)

    def watched(self, name: object, attend: Callable[..., Any]) -> Callable[..., Any]:
        """``attend``, looked at before it is called."""

        def looked_at(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            # Another model may run at the same time, or within this one.
            if module in self._paths:
                cross = self._cross.pop(module, False)
                self._receive(self._paths[module], _seen(name, module, cross, *args, **kwargs))
            return attend(module, *args, **kwargs)

        return looked_at

    def _before(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        given = self._signatures[module].bind_partial(*args, **kwargs).arguments
        given = {**given, **given.get("kwargs", {})}
        self._cross[module] = any(given.get(name) is not None for name in _OTHER_SEQUENCE)

    def _after(self, module: nn.Module, _args: Any, _output: Any) -> None:
        if self._cross.pop(module, None) is not None:
            reason = f"{type(module).__name__} did not use the attention interface this time"
            self._receive(self._paths[module], NotObservable(reason))


def _seen(
    name: object,
    module: nn.Module,
    cross: bool,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any = None,
    scaling: float | None = None,
    is_causal: bool | None = None,
    position_bias: Any = None,
    softcap: float | None = None,
    s_aux: Any = None,
    **others: Any,
) -> AttentionCall | NotObservable:
    """The arguments of an attention function, as what they mean."""
    del value
    unknown = [key for key, given in others.items() if _is_floating(given)]
    if unknown:
        return NotObservable(f"its function takes {unknown[0]!r}, which may change the scores")
    if name not in ("sdpa", "eager"):
        return NotObservable(f"of implementation {name!r}; use attn_implementation 'sdpa'")
    if s_aux is not None:
        return NotObservable("it has sinks, which take part in the softmax and are no keys")
    if name == "sdpa" and attention_mask is None:
        # As transformers' function of this name decides it.
        causal = is_causal if is_causal is not None else getattr(module, "is_causal", True)
        causal = causal and query.shape[2] > 1
    else:
        causal = False
    hidden = hides_from(module)
    bias, allowed = bias_and_allowed(
        attention_mask, position_bias, query, key, causal=causal, hidden=hidden
    )
    if allowed is not None and allowed.shape[1] > 1:
        # A head's own bias cannot hide a key, so a mask of each head is usually the same for all.
        if not bool((allowed == allowed[:, :1]).all()):
            return NotObservable("its heads have different masks")
        allowed = allowed[:, :1]
    return AttentionCall(
        query=query,
        key=key,
        scale=query.shape[-1] ** -0.5 if scaling is None else float(scaling),
        bias=bias,
        allowed=allowed,
        cross=cross,
        softcap=softcap,
    )


def _is_floating(value: object) -> bool:
    import torch

    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _asks_for_interface(module: nn.Module) -> bool:
    code = getattr(inspect.unwrap(type(module).forward), "__code__", None)
    return code is not None and "get_interface" in code.co_names


def _opaque(model: nn.Module, through: tuple[str, ...]) -> Iterator[str]:
    """Paths of modules that are called attention, and neither hold nor are in those in ``through``.

    Only the outermost of each nest, as attention is what they compute together.
    """
    found: list[str] = []
    for path, module in model.named_modules():
        if "attention" not in type(module).__name__.lower():
            continue
        known = (*through, *found)
        if any(_within(path, other) or _within(other, path) for other in known):
            continue
        found.append(path)
    yield from found


def _within(path: str, other: str) -> bool:
    return path == other or path.startswith(f"{other}.") or not other
