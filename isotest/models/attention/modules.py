"""Attention that is computed inside a module from its own projections: seen from what enters it."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from torch import nn

    from isotest.models.attention.call import AttentionCall, NotObservable, Receive
    from isotest.models.loaded import LoadedModel


@dataclass(frozen=True)
class ModuleObserver:
    """Sees every attention module of one class, by a hook in front of it.

    Queries and keys are computed a second time from what enters the module, with its own weights:
    a fraction of what the module costs, and the module itself is left alone.

    Attributes:
        kind: the class, as :func:`is_a` takes it.
        seen: from a module and the arguments of its ``forward``, by name, to what it computes.
    """

    kind: str
    seen: Callable[[Any, Mapping[str, Any]], AttentionCall | NotObservable]

    @contextmanager
    def observed(self, loaded: LoadedModel, receive: Receive, /) -> Iterator[None]:
        """As in :class:`isotest.models.attention.call.AttentionObserver`."""
        with ExitStack() as hooks:
            for path, module in loaded.module.named_modules():
                if is_a(module, self.kind):
                    handle = module.register_forward_pre_hook(
                        self._hook(path, receive), with_kwargs=True
                    )
                    hooks.callback(handle.remove)
            yield

    def _hook(self, path: str, receive: Receive) -> Callable[[Any, Any, Any], None]:
        def hook(module: Any, args: Any, kwargs: Any) -> None:
            given = signature(module.forward).bind(*args, **kwargs)
            given.apply_defaults()
            receive(path, self.seen(module, given.arguments))

        return hook

    def of(self, loaded: LoadedModel) -> ModuleObserver | None:
        """This observer, for a model that has such modules."""
        return self if any(is_a(module, self.kind) for module in loaded.module.modules()) else None


def is_a(module: nn.Module, kind: str) -> bool:
    """Whether a module is of a class, given as library and name, or of a class made from it.

    By name, since to import the class can cost seconds.

    >>> from torch import nn
    >>> is_a(nn.Linear(1, 1), "torch.Linear"), is_a(nn.Linear(1, 1), "timm.Linear")
    (True, False)
    """
    return kind in {
        f"{cls.__module__.partition('.')[0]}.{cls.__name__}" for cls in type(module).__mro__
    }
