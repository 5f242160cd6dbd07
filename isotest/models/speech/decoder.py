"""What the decoder of a speech model reads while its encoder hears a clip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from isotest.errors import SourceError
from isotest.models.text.tokenizer import encoder_of, has_tokenizer

if TYPE_CHECKING:
    from isotest.data.dataset import Sample
    from isotest.models.feeds import FeedRequest
    from isotest.models.text.encoder import Ids

RANDOM_IDS = 32


class Reader(Protocol):
    """Gives a decoder its ids.

    Attributes:
        prompt: the special ids that it starts with.
        padding: the id of a padding unit.
    """

    prompt: Ids
    padding: int

    def __call__(self, sample: Sample) -> Ids:
        """The ids read with one recording, the prompt included.

        Raises:
            SourceError: there is nothing to read, or too much.
        """
        ...

    def describe(self) -> dict[str, str | int | float]:
        """What is read."""
        ...


def reader_of(request: FeedRequest) -> Reader:
    """The reader that the suite asks for: of transcripts unless it says otherwise.

    Raises:
        SourceError: a text input, or no tokenizer for transcripts.
        MissingError: a tokenizer is not here.
    """
    match request.reading.decoder:
        case "random":
            return RandomIds(request)
        case "input":
            raise SourceError(
                f"source {request.what!r}: decoder = 'input' is for text models, whose input can "
                "be read again; of a recording the decoder reads the 'transcript', or 'random' ids"
            )
        case _:
            return Transcripts(request)


class RandomIds:
    """The start id, then 32 ids: drawn uniformly from all that are not special, by the clip.

    For untrained models, to which all ids are alike. The clip with number i gets the first draws of
    ``numpy.random.default_rng(i)``.
    """

    def __init__(self, request: FeedRequest) -> None:
        config: Any = request.module.config
        self.prompt = _start(config)
        self.padding = _padding(config)
        names = ("decoder_start_token_id", "pad_token_id", "bos_token_id", "eos_token_id")
        special = {getattr(config, name, None) for name in names}
        self._ids = np.array([k for k in range(config.vocab_size) if k not in special], np.int64)
        self._count = min(RANDOM_IDS, config.max_target_positions - len(self.prompt))

    def __call__(self, sample: Sample) -> Ids:
        """The ids of this number."""
        drawn = np.random.default_rng(sample.index).integers(len(self._ids), size=self._count)
        return np.concatenate([self.prompt, self._ids[drawn]])

    def describe(self) -> dict[str, str | int | float]:
        """That they are drawn; which, the digest of all ids says."""
        return {"decoder": "random"}


class Transcripts:
    """What is said, as the model's tokenizer has it, behind the tokenizer's own prompt.

    The prompt is what the tokenizer puts in front of a text (start of transcript, language, task,
    no timestamps), from the decoder's start id on; what it puts behind a text is not read: it is
    what the last token is to predict.
    """

    def __init__(self, request: FeedRequest) -> None:
        config: Any = request.module.config
        folder = request.folder
        if request.reading.tokenizer is None and (folder is None or not has_tokenizer(folder)):
            where = "the model brings none" if folder is None else f"there is none in {folder}"
            raise SourceError(
                f"source {request.what!r}: the decoder reads transcripts, for which it needs a "
                f"tokenizer, and {where}; use measure = {{ decoder = 'random' }} in the suite "
                "entry of an untrained model, or name a tokenizer with tokenizer = 'hub:OWNER/NAME'"
            )
        self._encoder = encoder_of(request)
        self._named = request.reading.tokenizer or "own"
        start = _start(config)
        prefix = self._encoder.prefix
        self.prompt = prefix if prefix[:1].tolist() == start.tolist() else np.r_[start, prefix]
        self.padding = _padding(config)
        self._most: int = config.max_target_positions

    def __call__(self, sample: Sample) -> Ids:
        """Prompt and transcript."""
        where = f"recording {sample.origin}"
        transcript = sample.content.transcript
        if transcript is None:
            raise SourceError(
                f"{where}: has no transcript, which the decoder is to read; use data with "
                "transcripts (hub: data name their column with 'transcript='), or, for an "
                "untrained model, measure = { decoder = 'random' }"
            )
        body = self._encoder.encode(transcript)
        if not len(body):
            raise SourceError(f"{where}: its transcript is empty; write or remove it")
        ids: Ids = np.concatenate([self.prompt, body])
        if len(ids) > self._most:
            raise SourceError(
                f"{where}: its transcript is {len(body)} {self._encoder.units} long, and the "
                f"decoder reads at most {self._most}, {len(self.prompt)} special ones included; "
                "cut the recording into shorter clips"
            )
        return ids

    def describe(self) -> dict[str, str | int | float]:
        """That it is the transcript, and whose tokenizer."""
        return {"decoder": "transcript", "tokenizer": self._named}


def _start(config: Any) -> Ids:
    return np.array([config.decoder_start_token_id], np.int64)


def _padding(config: Any) -> int:
    padding = getattr(config, "pad_token_id", None)
    return 0 if padding is None else int(padding)
