"""Recordings as batches for a model: resampled, normalised, padded, masked."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from isotest.data.dataset import Waveform
from isotest.errors import SourceError
from isotest.models.feed import PlainFeed
from isotest.models.feeds import input_name, refuse_overrides
from isotest.models.loaded import Piece
from isotest.models.speech.frames import Frames
from isotest.models.speech.log_mel import LogMel
from isotest.models.speech.resampling import Resampling
from isotest.models.text.encoder import note_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from isotest.data.dataset import Sample
    from isotest.models.feeds import FeedRequest
    from isotest.models.loaded import Feed, Inputs
    from isotest.models.speech.clip import Hearing


def speech_feed(request: FeedRequest) -> Feed:
    """How recordings become inputs of a model.

    Raises:
        SourceError: a model that hears in another way, an unusable feature extractor, or choices
            that don't fit.
        MissingError: a tokenizer is not here.
    """
    if request.brought is not None:
        return PlainFeed(request.brought, Waveform(np.zeros(16_000, np.float32), 16_000))
    refuse_overrides(request)
    return SpeechFeed(_hearing(request))


def _hearing(request: FeedRequest) -> Hearing:
    module: Any = request.module
    config: Any = getattr(module, "config", None)
    encodes = not getattr(config, "is_encoder_decoder", False)
    if encodes and hasattr(config, "conv_kernel") and input_name(module) == "input_values":
        return Frames(request)
    if getattr(config, "model_type", "") == "whisper" and hasattr(module, "decoder"):
        return LogMel(request)
    raise SourceError(
        f"source {request.what!r}: expected a model that hears waveforms through convolutions, as "
        f"wav2vec 2.0 and HuBERT do, or Whisper, found {type(module).__name__}; a python: source "
        "can bring other models with their preprocessing"
    )


class SpeechFeed:
    """One clip, one sequence.

    Args:
        hearing: clips to keyword inputs.
    """

    def __init__(self, hearing: Hearing) -> None:
        self._hearing = hearing
        self._resampling = Resampling(hearing.rate)
        self._read: Any = None

    def pieces(self, samples: Iterable[Sample], *, grouped: bool) -> Iterator[Piece]:
        """Each recording, at the model's rate."""
        self._read = None
        for sample in samples:
            resampled = self._resampling(sample.content, sample.origin)
            clip = self._hearing.clip(resampled, sample)
            if clip.read is not None:
                self._read = self._read or hashlib.sha256()
                note_ids(self._read, clip.read)
            yield Piece(sample.unit, sample.origin, clip)

    def together(self, first: Piece, other: Piece) -> bool:
        """As the kind of model demands it."""
        return self._hearing.together(first.content, other.content)

    def batch(self, pieces: Sequence[Piece]) -> Inputs:
        """Features with their masks."""
        return self._hearing.batch([piece.content for piece in pieces])

    def blank(self) -> Piece:
        """A second of silence."""
        return Piece(0, "blank", self._hearing.blank())

    def describe(self) -> Mapping[str, str | int | float]:
        """Rate and features, and a digest of all ids that a decoder has read."""
        described = {**self._resampling.describe(), **self._hearing.describe()}
        return described if self._read is None else {**described, "ids": self._read.hexdigest()}
