"""Whether a model runs code whose changes no version and no digest would show."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

_VERSIONED = ("isotest", "torch", "torchaudio", "torchvision", "transformers", "timm")
"""Packages whose versions, or whose source, are part of every key of the cache."""


def foreign_class(module: nn.Module) -> str | None:
    """The first class in a model that comes from elsewhere; ``None``: all are known.

    A folder of weights is identified by its files, but a class of the user's own, registered with
    transformers, may read them in a new way tomorrow.

    Args:
        module: the model.

    Returns:
        Module and name, such as ``"mypkg.models.Decoder"``.

    >>> from torch import nn
    >>> foreign_class(nn.Sequential(nn.Linear(2, 2))) is None
    True
    """
    for part in module.modules():
        cls = type(part)
        if cls.__module__.partition(".")[0] not in _VERSIONED:
            return f"{cls.__module__}.{cls.__qualname__}"
    return None
