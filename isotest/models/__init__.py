"""Models: where they come from, which layers are observed, how images are fed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.lazy import lazily

if TYPE_CHECKING:
    from isotest.models.load import load_model
    from isotest.models.loaded import LoadedModel, ObservedLayer, Preprocess

_HOME = {
    "LoadedModel": "loaded",
    "ObservedLayer": "loaded",
    "Preprocess": "loaded",
    "load_model": "load",
}

__all__ = ["LoadedModel", "ObservedLayer", "Preprocess", "load_model"]

__getattr__ = lazily(__name__, _HOME)
