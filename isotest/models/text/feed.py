"""Texts as batches for a model: encoded, cut into sequences, padded, masked."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from isotest.errors import SourceError
from isotest.models.feed import PlainFeed
from isotest.models.feeds import refuse_overrides
from isotest.models.loaded import Piece
from isotest.models.text.arguments import (
    Downsampled,
    EncoderDecoder,
    SingleStream,
    first_position,
)
from isotest.models.text.encoder import note_ids
from isotest.models.text.packing import documents, windows
from isotest.models.text.padding import require_padding_ignored
from isotest.models.text.tokenizer import encoder_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from torch import nn

    from isotest.data.dataset import Sample
    from isotest.models.feeds import FeedRequest
    from isotest.models.loaded import Feed, Inputs
    from isotest.models.reading import Reading
    from isotest.models.text.encoder import Ids, TextEncoder

_BLANK = "In the beginning there was a text that says nothing. "


class Arguments(Protocol):
    """Turns id sequences into the keyword inputs of one kind of model."""

    def __call__(self, sequences: Sequence[Ids], encoder: TextEncoder) -> Inputs:
        """One batch, with masks."""
        ...

    def describe(self) -> dict[str, str | int | float]:
        """What it adds to the protocol."""
        ...


def text_feed(request: FeedRequest) -> Feed:
    """How texts become inputs of a model.

    Raises:
        SourceError: no tokenizer, a length that the model cannot read, choices that don't fit, or
            documents for a model whose numbers depend on padding.
        MissingError: a tokenizer is not here.
    """
    if request.brought is not None:
        return PlainFeed(request.brought, _BLANK)
    refuse_overrides(request)
    config: Any = getattr(request.module, "config", None)
    reading = request.reading
    encoder = encoder_of(request)
    what = f"source {request.what!r}"
    if reading.decoder not in (None, "input"):
        raise SourceError(
            f"{what}: decoder = {reading.decoder!r} is for speech models; leave it out"
        )
    if reading.length <= encoder.added:
        raise SourceError(
            f"{what}: expected 'length' to leave room for text beside {encoder.added} special "
            f"{encoder.units}, found {reading.length}"
        )
    most = _longest(request.module, config)
    if most is not None and reading.length > most:
        raise SourceError(
            f"{what}: expected 'length' in [measure] to be at most {most}, the positions that the "
            f"model has, found {reading.length}"
        )
    if reading.packing == "documents" and encoder.padding is None:
        raise SourceError(
            f"{what}: packing = 'documents' pads shorter texts, and its tokenizer has no padding "
            "token; use packing = 'windows', or give the tokenizer one (pad_token in "
            "tokenizer_config.json)"
        )
    if getattr(config, "model_type", "") == "canine":
        return TextFeed(encoder, reading, Downsampled(request.module, reading.length))
    arguments: Arguments = (
        EncoderDecoder(request.module)
        if getattr(config, "is_encoder_decoder", False)
        else SingleStream(request.module)
    )
    if reading.packing == "documents":
        body = encoder.encode(_BLANK)[: reading.length - encoder.added]
        require_padding_ignored(
            request.module,
            partial(arguments, encoder=encoder),
            encoder.sequence(body[: max(1, len(body) // 4)]),
            encoder.sequence(body),
            request.what,
        )
    return TextFeed(encoder, reading, arguments)


def _longest(module: nn.Module, config: Any) -> int | None:
    """How many positions a model has learnt embeddings for; ``None`` where that is no limit."""
    kind = getattr(config, "model_type", "")
    if kind in ("t5", "manta", "xlnet", "transfo-xl"):  # relative positions
        return None
    most = getattr(config, "max_position_embeddings", None)
    if not isinstance(most, int) or most <= 0:
        return None
    return most - first_position(module)


class TextFeed:
    """Sequences of ids, as their model reads them.

    Args:
        encoder: text to ids.
        reading: packing and length.
        arguments: ids to keyword inputs.
    """

    def __init__(self, encoder: TextEncoder, reading: Reading, arguments: Arguments) -> None:
        self._encoder = encoder
        self._reading = reading
        self._arguments = arguments
        self._digest = hashlib.sha256()

    def pieces(self, samples: Iterable[Sample], *, grouped: bool) -> Iterator[Piece]:
        """Windows or documents, by the packing."""
        self._digest = hashlib.sha256()
        length = self._reading.length
        if self._reading.packing == "windows":
            pieces = windows(samples, self._encoder, length, grouped=grouped)
        else:
            pieces = documents(samples, self._encoder, length)
        for piece in pieces:
            note_ids(self._digest, piece.content)
            yield piece

    def together(self, first: Piece, other: Piece) -> bool:
        """Always: padding is masked."""
        return True

    def batch(self, pieces: Sequence[Piece]) -> Inputs:
        """Padded ids with their masks."""
        return self._arguments([piece.content for piece in pieces], self._encoder)

    def blank(self) -> Piece:
        """A text of many words, cut to the length."""
        encoder = self._encoder
        text = _BLANK * (1 + self._reading.length // 8)
        body = encoder.encode(text)[: self._reading.length - encoder.added]
        return Piece(0, "blank", encoder.sequence(body))

    def describe(self) -> Mapping[str, str | int | float]:
        """Packing, length, and a digest of all ids: whatever made them, they are what was read."""
        return {
            "tokenizer": self._reading.tokenizer or "own",
            "packing": self._reading.packing,
            "length": self._reading.length,
            **self._arguments.describe(),
            "ids": self._digest.hexdigest(),
        }
