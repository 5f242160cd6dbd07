"""Batches of id sequences as keyword inputs, with exact masks for every stream of positions."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from isotest.models.loaded import Inputs, Positions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor, nn

    from isotest.models.text.encoder import Ids, TextEncoder


@dataclass(frozen=True)
class Padded:
    """Sequences of one batch, padded to one length.

    Attributes:
        ids: (batch, length) or (batch, length, k).
        valid: (batch, length) bool.
        special: (batch, length) bool.
    """

    ids: NDArray[np.int64]
    valid: NDArray[np.bool_]
    special: NDArray[np.bool_]

    @property
    def positions(self) -> Positions:
        """The masks, as tensors."""
        import torch

        return Positions(torch.from_numpy(self.valid), torch.from_numpy(self.special))


def padded(
    sequences: Sequence[Ids],
    encoder: TextEncoder,
    *,
    length: int | None = None,
    start: Ids | None = None,
) -> Padded:
    """Sequences with padding on the encoder's side, to ``length`` or the longest of them.

    With ``start`` they are shifted right: it comes first, and the last unit of each goes.
    """
    longest = max(len(sequence) for sequence in sequences) if length is None else length
    shape = (len(sequences), longest, *sequences[0].shape[1:])
    ids = np.zeros(shape, np.int64)
    ids[:] = 0 if encoder.padding is None else encoder.padding
    valid = np.zeros(shape[:2], np.bool_)
    special = np.zeros(shape[:2], np.bool_)
    for row, sequence in enumerate(sequences):
        first = longest - len(sequence) if encoder.side == "left" else 0
        own = slice(first, first + len(sequence))
        added = np.zeros(len(sequence), np.bool_)
        added[: len(encoder.prefix)] = True
        added[len(sequence) - len(encoder.suffix) :] = True
        if start is not None:
            sequence = np.concatenate([start, sequence[:-1]])
            added = np.concatenate([[True], added[:-1]])
        ids[row, own] = sequence
        valid[row, own] = True
        special[row, own] = added
    return Padded(ids, valid, special)


def first_position(module: nn.Module) -> int:
    """The position of a sequence's first token: RoBERTa's kin count from one past the padding."""
    for name, part in module.named_modules():
        padding = getattr(part, "padding_idx", None)
        if name.rpartition(".")[2] == "position_embeddings" and isinstance(padding, int):
            return padding + 1
    return 0


class SingleStream:
    """For a model that reads one sequence: an encoder, or a decoder alone."""

    def __init__(self, module: nn.Module) -> None:
        parameters = inspect.signature(module.forward).parameters
        self._takes_positions = "position_ids" in parameters
        self._takes_mask = "attention_mask" in parameters
        self._first = first_position(module)

    def __call__(self, sequences: Sequence[Ids], encoder: TextEncoder) -> Inputs:
        """``input_ids`` and ``attention_mask``, if the model takes one.

        Positions are counted past padding on the left.
        """
        import torch

        batch = padded(sequences, encoder)
        arguments: dict[str, Tensor] = {"input_ids": torch.from_numpy(batch.ids)}
        if self._takes_mask:
            arguments["attention_mask"] = torch.from_numpy(batch.valid.astype(np.int64))
        if self._takes_positions and encoder.side == "left":
            counted = np.maximum(batch.valid.cumsum(axis=1) - 1, 0) + self._first
            arguments["position_ids"] = torch.from_numpy(counted)
        return Inputs(arguments, {"tokens": batch.positions})

    def describe(self) -> dict[str, str | int | float]:
        """Nothing beside the sequences themselves."""
        return {}


class EncoderDecoder:
    """For a model whose decoder reads, too: the same text, shifted right by its start token."""

    def __init__(self, module: nn.Module) -> None:
        config: Any = getattr(module, "config", None)
        start = getattr(config, "decoder_start_token_id", None)
        if start is None:
            # T5's own: its decoder starts with the padding token.
            start = getattr(config, "pad_token_id", None)
        self._start = np.array([start if start is not None else 0], np.int64)

    def __call__(self, sequences: Sequence[Ids], encoder: TextEncoder) -> Inputs:
        """``input_ids``, ``decoder_input_ids`` and their masks; padding is on the right.

        Positions cannot be passed to such models, and BART's kin would count padding in front.
        """
        import torch

        encoder = replace(encoder, side="right")
        batch = padded(sequences, encoder)
        target = padded(sequences, encoder, start=self._start)
        return Inputs(
            {
                "input_ids": torch.from_numpy(batch.ids),
                "attention_mask": torch.from_numpy(batch.valid.astype(np.int64)),
                "decoder_input_ids": torch.from_numpy(target.ids),
                "decoder_attention_mask": torch.from_numpy(target.valid.astype(np.int64)),
            },
            {"encoder": batch.positions, "decoder": target.positions},
        )

    def describe(self) -> dict[str, str | int | float]:
        """What the decoder reads."""
        return {"decoder": "the text, shifted right"}


class Downsampled:
    """For CANINE, which reads characters and thinks in molecules, a fraction as many.

    Where a text ends decides how its last characters are put together again from molecules, and
    padding counts as text there. So every sequence is padded to one length, whatever its batch.
    """

    def __init__(self, module: nn.Module, length: int) -> None:
        config: Any = getattr(module, "config", None)
        self._rate = int(config.downsampling_rate)
        self._length = -(-length // self._rate) * self._rate

    def __call__(self, sequences: Sequence[Ids], encoder: TextEncoder) -> Inputs:
        """``input_ids`` and ``attention_mask``; molecule 0 is CLS, molecule i ≥ 1 covers a stretch.

        The stretch of molecule i is that of the strided convolution's output i − 1: the first
        output follows the CLS that the model puts in front, and the last one is dropped.
        """
        import torch

        batch = padded(sequences, encoder, length=self._length)
        count = self._length // self._rate
        # Which molecules are attended to, as the model decides it: any valid character among its
        # ``rate`` own, counted without the shift by CLS.
        stretches = (len(sequences), count, self._rate)
        valid = np.any(batch.valid.reshape(stretches), axis=2)
        own = np.any((batch.valid & ~batch.special).reshape(stretches), axis=2)
        special = np.ones((len(sequences), count), np.bool_)
        special[:, 1:] = ~own[:, :-1]
        molecules = Positions(torch.from_numpy(valid), torch.from_numpy(special & valid))
        return Inputs(
            {
                "input_ids": torch.from_numpy(batch.ids),
                "attention_mask": torch.from_numpy(batch.valid.astype(np.int64)),
            },
            {"characters": batch.positions, "molecules": molecules},
        )

    def describe(self) -> dict[str, str | int | float]:
        """The length that all sequences are padded to."""
        return {"padded": self._length}
