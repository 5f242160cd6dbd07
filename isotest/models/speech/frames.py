"""For models that hear waveforms through strided convolutions: wav2vec 2.0, HuBERT, their kin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isotest.errors import SourceError
from isotest.models.loaded import Inputs, Positions
from isotest.models.speech.clip import Clip
from isotest.models.speech.extractor import extractor_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy import float32
    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.data.dataset import Sample
    from isotest.models.feeds import FeedRequest

# The families of which it is known, and tested, that padding changes no valid frame.
_PADDED = frozenset({"wav2vec2", "hubert"})
# A model attends from every frame to every other. Half an hour takes 12 GB in a base model, and
# the longest clip of LibriSpeech takes 35 seconds.
LONGEST_SECONDS = 60


class Frames:
    """Waveforms, normalised clip by clip, one frame a stretch of samples.

    Where the first convolution is followed by a group norm (``feat_extract_norm = "group"``, as in
    the base models), it takes its statistics over the whole length, padding included: there only
    clips of the same length share a batch, unmasked, as these models were trained. Where every
    convolution is followed by a layer norm, clips are padded and masked.
    """

    def __init__(self, request: FeedRequest) -> None:
        config: Any = request.module.config
        self._class = type(request.module).__name__
        self._extractor = extractor_of(
            request.folder, "Wav2Vec2FeatureExtractor", {"do_normalize": True}, request.what
        )
        self._convolutions = tuple(zip(config.conv_kernel, config.conv_stride, strict=True))
        self._padded = (
            config.model_type in _PADDED
            and getattr(config, "feat_extract_norm", None) == "layer"
            # It moves the zeros that padding is.
            and not getattr(config, "conv_pos_batch_norm", False)
        )

    @property
    def rate(self) -> int:
        """Samples a second."""
        return int(self._extractor.sampling_rate)

    def frames(self, samples: int) -> int:
        """How many frames a number of samples becomes: those that see no padding."""
        for kernel, stride in self._convolutions:
            samples = (samples - kernel) // stride + 1
        return max(samples, 0)

    @property
    def field(self) -> int:
        """How many samples one frame sees, which is how many there must be."""
        samples = 1
        for kernel, stride in reversed(self._convolutions):
            samples = (samples - 1) * stride + kernel
        return samples

    def clip(self, samples: NDArray[float32], sample: Sample) -> Clip:
        """Any recording that is long enough for one frame, and no longer than a minute."""
        if len(samples) < self.field:
            raise SourceError(
                f"recording {sample.origin}: is {1000 * len(samples) / self.rate:.3g} ms long "
                f"({len(samples)} samples at {self.rate} a second), and one frame of {self._class} "
                f"takes {self.field} samples; remove it, or join it to another"
            )
        if len(samples) > LONGEST_SECONDS * self.rate:
            raise SourceError(
                f"recording {sample.origin}: is {len(samples) / self.rate:.6g} s long, and a clip "
                f"is fed whole to {self._class}, which takes memory for all of it at once: "
                f"expected at most {LONGEST_SECONDS} s; cut it into shorter clips"
            )
        return Clip(samples)

    def together(self, first: Clip, other: Clip) -> bool:
        """Clips of one length, or any where padding is masked."""
        return self._padded or len(first.samples) == len(other.samples)

    def batch(self, clips: Sequence[Clip]) -> Inputs:
        """``input_values``, and ``attention_mask`` where clips may be padded."""
        import torch

        made = self._extractor(
            [clip.samples for clip in clips],
            sampling_rate=self.rate,
            padding=True,
            return_attention_mask=self._padded,
            return_tensors="pt",
        )
        arguments: dict[str, Tensor] = {"input_values": made["input_values"]}
        if self._padded:
            arguments["attention_mask"] = made["attention_mask"]
        counts = torch.tensor([self.frames(len(clip.samples)) for clip in clips])
        valid = torch.arange(int(counts.max())) < counts[:, None]
        return Inputs(arguments, {"frames": Positions(valid, torch.zeros_like(valid))})

    def blank(self) -> Clip:
        """A second of silence, or as much as one frame takes."""
        return Clip(np.zeros(max(self.rate, self.field), np.float32))

    def describe(self) -> dict[str, str | int | float]:
        """How samples are normalised, and whether there is padding."""
        normalised = "zero mean, unit variance" if self._extractor.do_normalize else "none"
        return {
            "input": "waveform",
            "normalisation": normalised,
            "padding": "masked" if self._padded else "none",
        }
