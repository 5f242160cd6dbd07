"""Inputs of a loaded model, as a measurement would make them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isotest.models.loaded import Piece

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torch import Tensor

    from isotest.models.loaded import LoadedModel


def arguments(loaded: LoadedModel, contents: Iterable[Any]) -> Mapping[str, Tensor]:
    """Keyword arguments of one batch of contents, one piece each."""
    return loaded.feed.batch([Piece(0, "", content) for content in contents]).arguments
