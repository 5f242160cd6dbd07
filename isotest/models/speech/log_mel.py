"""For Whisper, which hears log-mel spectrograms of 30 seconds and reads what is said in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isotest.errors import SourceError
from isotest.models.loaded import Inputs, Positions
from isotest.models.speech.clip import Clip
from isotest.models.speech.decoder import reader_of
from isotest.models.speech.extractor import extractor_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy import float32
    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.data.dataset import Sample
    from isotest.models.feeds import FeedRequest


class LogMel:
    """Log-mel spectrograms, every clip padded with silence to the length of the model's window.

    The encoder attends to that silence by design, and nothing masks it there. It is masked in the
    statistics only: a position counts if the centre of its mel frame lies in the recording. Since
    the padded length is fixed, no clip depends on its batch.

    The decoder's ids are padded on the right behind a causal mask, so none depends on padding.
    """

    def __init__(self, request: FeedRequest) -> None:
        module: Any = request.module
        config: Any = module.config
        self._class = type(module).__name__
        # Mel frames a position, and positions in all.
        self._stride = int(module.encoder.conv1.stride[0] * module.encoder.conv2.stride[0])
        self._positions = int(config.max_source_positions)
        self._extractor = extractor_of(
            request.folder,
            "WhisperFeatureExtractor",
            {
                "feature_size": config.num_mel_bins,
                # 160 samples a frame, 16,000 a second, unless its folder says otherwise.
                "chunk_length": max(self._positions * self._stride * 160 // 16_000, 1),
            },
            request.what,
        )
        self._reader = reader_of(request)

    @property
    def rate(self) -> int:
        """Samples a second."""
        return int(self._extractor.sampling_rate)

    def positions(self, samples: int) -> int:
        """How many of the encoder's positions a number of samples reaches: ⌈⌈n / hop⌉ / stride⌉.

        Mel frame t is centred on sample t · hop, position j on mel frame j · stride.
        """
        frames = -(-samples // int(self._extractor.hop_length))
        return min(-(-frames // self._stride), self._positions)

    def clip(self, samples: NDArray[float32], sample: Sample) -> Clip:
        """Any recording that fits the window, and what the decoder reads with it."""
        if len(samples) > self._extractor.n_samples:
            raise SourceError(
                f"recording {sample.origin}: is {len(samples) / self.rate:.6g} s long, and "
                f"{self._class} hears at most {self._extractor.chunk_length} s; cut it into "
                "shorter clips"
            )
        return Clip(samples, self._reader(sample))

    def together(self, first: Clip, other: Clip) -> bool:
        """Always: every clip is padded to the same length."""
        return True

    def batch(self, clips: Sequence[Clip]) -> Inputs:
        """``input_features``, ``decoder_input_ids`` and ``decoder_attention_mask``."""
        import torch

        made = self._extractor(
            [clip.samples for clip in clips], sampling_rate=self.rate, return_tensors="pt"
        )
        counts = torch.tensor([self.positions(len(clip.samples)) for clip in clips])
        heard = torch.arange(self._positions) < counts[:, None]
        ids, read = self._read(clips)
        special = read & (torch.arange(read.shape[1]) < len(self._reader.prompt))
        return Inputs(
            {
                "input_features": made["input_features"],
                "decoder_input_ids": ids,
                "decoder_attention_mask": read.long(),
            },
            {
                "encoder": Positions(heard, torch.zeros_like(heard)),
                "decoder": Positions(read, special),
            },
        )

    def _read(self, clips: Sequence[Clip]) -> tuple[Tensor, Tensor]:
        """Ids, (batch, length), and where they are no padding."""
        import torch

        sequences = [np.empty(0, np.int64) if clip.read is None else clip.read for clip in clips]
        counts = torch.tensor([len(sequence) for sequence in sequences])
        valid = torch.arange(int(counts.max())) < counts[:, None]
        ids = torch.full(valid.shape, self._reader.padding)
        ids[valid] = torch.from_numpy(np.concatenate(sequences))
        return ids, valid

    def blank(self) -> Clip:
        """A second of silence, and the prompt."""
        return Clip(
            np.zeros(min(self.rate, self._extractor.n_samples), np.float32), self._reader.prompt
        )

    def describe(self) -> dict[str, str | int | float]:
        """The spectrogram's parameters, and what the decoder reads."""
        extractor = self._extractor
        return {
            "input": "log-mel",
            "bins": extractor.feature_size,
            "n_fft": extractor.n_fft,
            "hop_length": extractor.hop_length,
            "seconds": extractor.chunk_length,
            **self._reader.describe(),
        }
