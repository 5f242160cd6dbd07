"""The attention of isotest's own transformer block."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from isotest.models.attention.call import AttentionCall, AttentionObserver
from isotest.models.attention.modules import ModuleObserver

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isotest.models.loaded import LoadedModel


def observer(loaded: LoadedModel) -> AttentionObserver | None:
    """The observer of a :class:`isotest.blocks.TransformerBlock`, or a stack of them."""
    return ModuleObserver("isotest.SelfAttention", _seen).of(loaded)


def _seen(module: Any, given: Mapping[str, Any]) -> AttentionCall:
    x = given["x"]
    return AttentionCall(
        query=module.split(module.query(x)),
        key=module.split(module.key(x)),
        scale=1 / math.sqrt(module.head_width),
        bias=None,
        allowed=module.allowed(x, given["valid"]),
        cross=False,
    )
