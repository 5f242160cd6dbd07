"""Which observer sees a model's attention, or why none does."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from isotest.models.attention.call import AttentionObserver, NotObservable

if TYPE_CHECKING:
    from collections.abc import Callable

    from isotest.models.loaded import LoadedModel

    Choice = Callable[[LoadedModel], AttentionObserver | NotObservable | None]

# Each row is a function from a loaded model to its observer, to why there is none, or to ``None``
# where the model is not of its kind. The first that answers is taken.
_ROWS = (
    "isotest.models.attention.xlnet:observer",
    "isotest.models.attention.canine:observer",
    "isotest.models.attention.cvt:observer",
    "isotest.models.attention.van:observer",
    "isotest.models.attention.block:observer",
    "isotest.models.attention.interface:observer",
    "isotest.models.attention.softmax:observer",
    "isotest.models.attention.timm:observer",
)


def observer_of(loaded: LoadedModel) -> AttentionObserver | NotObservable:
    """The observer of a model's attention, or why it cannot be observed."""
    for row in _ROWS:
        module, _, name = row.partition(":")
        choose = cast("Choice", getattr(import_module(module), name))
        found = choose(loaded)
        if found is not None:
            return found
    return NotObservable(
        f"nothing is known of how {type(loaded.module).__name__} computes attention"
    )
