"""Models: where they come from, which layers are observed, how images are fed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isotest.models.load import load_model
    from isotest.models.loaded import LoadedModel, ObservedLayer, Preprocess

__all__ = ["LoadedModel", "ObservedLayer", "Preprocess", "load_model"]


def __getattr__(name: str) -> Any:
    """Load on first use: importing this package must stay cheap."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = "isotest.models.load" if name == "load_model" else "isotest.models.loaded"
    return getattr(import_module(module), name)
