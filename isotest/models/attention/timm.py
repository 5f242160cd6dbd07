"""Attention of timm's models: seen where it enters torch's fused attention.

Most of timm's attention modules end in ``scaled_dot_product_attention``, which is given what its
softmax is computed from: queries and keys behind their norms and rotations, and biases. A module
that is set not to use it runs up to there once more.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from isotest.models.attention.call import AttentionCall, AttentionObserver, NotObservable
from isotest.models.attention.masks import bias_and_allowed
from isotest.models.attention.softmax import watched
from isotest.models.attention.timm_windows import cosine_windows, mask_units, shifted_windows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from torch import Tensor, nn

    from isotest.models.attention.call import Receive
    from isotest.models.loaded import LoadedModel


@dataclass(frozen=True)
class Running:
    """A module that is running, and what it was given."""

    path: str
    module: Any
    args: Sequence[Any]
    kwargs: Mapping[str, Any]


def _whole(_running: Sequence[Running], call: AttentionCall) -> AttentionCall:
    """All positions of an image see each other."""
    return call


_FUSED: Mapping[str, Callable[[Sequence[Running], AttentionCall], AttentionCall]] = {
    "timm.layers.attention.Attention": _whole,
    "timm.layers.attention.AttentionRope": _whole,
    "timm.models.beit.Attention": _whole,
    "timm.models.eva.EvaAttention": _whole,
    "timm.models.fastvit.Attention": _whole,
    "timm.models.metaformer.Attention": _whole,
    "timm.models.pvt_v2.Attention": _whole,
    "timm.models.vision_transformer.ParallelScalingBlock": _whole,
    "timm.models.vision_transformer_relpos.RelPosAttention": _whole,
    # Windows that fill the map are rows of the batch, those of an image next to each other.
    "timm.models.maxxvit.Attention2d": _whole,
    "timm.models.maxxvit.AttentionCl": _whole,
    "timm.models.swin_transformer.WindowAttention": shifted_windows,
    "timm.models.hiera.MaskUnitAttention": mask_units,
}
"""From what is running, the attention module last, and the arguments of the fused attention."""

_UNFUSED: Mapping[str, Callable[[Sequence[Running]], AttentionCall]] = {
    "timm.models.swin_transformer_v2.WindowAttention": cosine_windows,
}
"""Modules without a fused attention, from what is running."""


class _Enough(Exception):  # noqa: N818 - no error
    """A module that ran once more has come to its attention."""


class TimmObserver:
    """Sees the attention modules of timm that are known, and names those that are not."""

    @contextmanager
    def observed(self, loaded: LoadedModel, receive: Receive, /) -> Iterator[None]:
        """As in :class:`isotest.models.attention.call.AttentionObserver`."""
        running: list[Running] = []
        again: list[Running] = []

        def enter(path: str, module: nn.Module, args: Any, kwargs: Any) -> None:
            running.append(Running(path, module, args, kwargs))
            name = _name(module)
            if name in _UNFUSED:
                receive(path, _UNFUSED[name](running))
            elif name in _FUSED and not getattr(module, "fused_attn", True):
                again.append(running[-1])
                _run_fused(running[-1])
                again.pop()

        def fused(*args: Any, **kwargs: Any) -> None:
            read = _FUSED.get(_name(running[-1].module))
            if read is None:
                unfused()
                return
            seen = _arguments(*args, **kwargs)
            if isinstance(seen, AttentionCall):
                seen = read(running, seen)
            receive(running[-1].path, seen)
            if again:
                raise _Enough

        def unfused() -> None:
            name = _name(running[-1].module)
            if name not in _FUSED and name not in _UNFUSED:
                reason = f"isotest does not know what {name} computes its softmax from"
                receive(running[-1].path, NotObservable(reason))

        with ExitStack() as stack:
            for path, module in loaded.module.named_modules():
                if type(module).__module__.startswith("torch."):
                    continue
                for handle in _hooked(module, path, enter, running):
                    stack.callback(handle.remove)
            stack.enter_context(watched(fused, unfused))
            yield


def observer(loaded: LoadedModel) -> AttentionObserver | None:
    """The observer of a model of timm, or of what holds one or a part of one."""
    libraries = {
        cls.__module__.partition(".")[0]
        for module in loaded.module.modules()
        for cls in type(module).__mro__
    }
    return TimmObserver() if "timm" in libraries else None


def _name(module: object) -> str:
    return f"{type(module).__module__}.{type(module).__qualname__}"


def _hooked(
    module: nn.Module,
    path: str,
    enter: Callable[[str, nn.Module, Any, Any], None],
    running: list[Running],
) -> tuple[Any, Any]:
    def before(module: nn.Module, args: Any, kwargs: Any) -> None:
        enter(path, module, args, kwargs)

    def after(_module: nn.Module, _args: Any, _output: Any) -> None:
        running.pop()

    # Also when it fails: whoever catches that goes on with what is around it.
    return (
        module.register_forward_pre_hook(before, with_kwargs=True),
        module.register_forward_hook(after, always_call=True),
    )


def _run_fused(running: Running) -> None:
    """Let a module that does without compute what it would hand to the fused attention."""
    module = running.module
    module.fused_attn = True
    try:
        module.forward(*running.args, **running.kwargs)
    except _Enough:
        pass
    finally:
        module.fused_attn = False


def _arguments(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> AttentionCall | NotObservable:
    """The arguments of ``scaled_dot_product_attention``, as torch documents them."""
    del value, dropout_p, enable_gqa
    bias, allowed = bias_and_allowed(attn_mask, None, query, key, causal=is_causal)
    if allowed is not None and allowed.dim() > 2:
        everywhere = allowed.all(-3, keepdim=True)
        if not torch.equal(everywhere, allowed.any(-3, keepdim=True)):
            return NotObservable("its heads see different keys")
        allowed = everywhere
    return AttentionCall(
        query,
        key,
        query.shape[-1] ** -0.5 if scale is None else scale,
        bias=bias,
        allowed=allowed,
        cross=False,
    )
