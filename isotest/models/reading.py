"""How texts and recordings become a model's sequences: what a suite may say about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Packing = Literal["windows", "documents"]
DecoderInput = Literal["input", "transcript", "random"]


@dataclass(frozen=True)
class Reading:
    """The choices that a suite's ``[measure]`` table makes for texts and recordings.

    Attributes:
        tokenizer: ``"bytes"``, ``"codepoints"``, ``"words"``, or a source of a tokenizer
            (``"sample:tokenizer"``, ``"hub:OWNER/NAME"``, ``"path:FOLDER"``,
            ``"package:DIST/FOLDER"``, ``"python:MODULE:FUNCTION"``); the model's own where it is
            ``None``.
        packing: ``"windows"``: texts joined and cut into sequences of exactly ``length`` units;
            ``"documents"``: one text, one sequence, cut off after ``length`` units.
        length: units (tokens, characters, bytes, words) of a sequence, special ones included.
        decoder: what the decoder of an encoder-decoder model reads: ``"input"``: the text itself,
            shifted right; ``"transcript"``: of a recording; ``"random"``: ids drawn by the number
            of the sequence, for untrained models. ``None``: the input of a text model, the
            transcript of a speech model.
    """

    tokenizer: str | None = None
    packing: Packing = "windows"
    length: int = 128
    decoder: DecoderInput | None = None
