"""How a model is fed, by modality: one entry each."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, cast

from isotest.errors import SourceError
from isotest.models.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from torch import nn

    from isotest.models.loaded import Feed, Preprocess

FEEDS: dict[str, str] = {
    "vision": "isotest.models.preprocess:image_feed",
    "text": "isotest.models.text.feed:text_feed",
    "characters": "isotest.models.text.feed:text_feed",
    "speech": "isotest.models.speech.feed:speech_feed",
    "embeddings": "isotest.models.vectors:vectors_feed",
}
"""Modality to ``module:function``, a function from :class:`FeedRequest` to a feed."""

_TAKES = {
    "pixel_values": "images",
    "input_ids": "texts",
    "input_values": "recordings",
    "input_features": "recordings",
}
_GIVES = {
    "vision": "images",
    "text": "texts",
    "characters": "texts",
    "speech": "recordings",
    "embeddings": "vectors",
}


@dataclass(frozen=True)
class FeedRequest:
    """What a feed is made for.

    Attributes:
        module: the base model, in eval mode.
        what: the model source as text, for messages.
        folder: where the model's own preprocessing and tokenizer may be.
        brought: preprocessing that the source brought itself.
        overrides: the suite's ``preprocess`` table.
        reading: the suite's choices for texts and recordings.
        base: what relative paths start from.
        download: whether the hub may be reached.
    """

    module: nn.Module
    what: str
    modality: str = "vision"
    folder: Path | None = None
    brought: Preprocess | None = None
    overrides: Mapping[str, object] | None = None
    reading: Reading = field(default_factory=Reading)
    base: Path | None = None
    download: bool = False


def feed_of(request: FeedRequest) -> Feed:
    """The feed that the modality is registered with.

    Raises:
        SourceError: the model takes something else, or something the suite says of its input is
            at fault.
        MissingError: a tokenizer is not here.
    """
    takes = _TAKES.get(input_name(request.module))
    gives = _GIVES[request.modality]
    if request.brought is None and takes is not None and takes != gives:
        raise SourceError(
            f"source {request.what!r}: {type(request.module).__name__} takes {takes}, and the "
            f"modality is {request.modality!r}, whose samples are {gives}; correct 'modality' and "
            "the data source, or the model"
        )
    module, _, function = FEEDS[request.modality].partition(":")
    make = cast("Callable[[FeedRequest], Feed]", getattr(import_module(module), function))
    return make(request)


def input_name(module: nn.Module) -> str:
    """The keyword of a module's main input."""
    named = getattr(module, "main_input_name", None)
    if isinstance(named, str):
        return named
    return next(iter(inspect.signature(module.forward).parameters), "pixel_values")


def refuse_overrides(request: FeedRequest) -> None:
    """Refuse a ``preprocess`` table where it has no place.

    Raises:
        SourceError: there is one.
    """
    if request.overrides:
        raise SourceError(
            f"source {request.what!r}: 'preprocess' is about images; remove it from the suite "
            "entry (for texts and recordings there is [measure])"
        )
