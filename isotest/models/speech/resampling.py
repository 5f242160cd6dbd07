"""Recordings at the samples a second that a model was made for."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from isotest.errors import SourceError

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    from isotest.data.dataset import Waveform

METHOD = "sinc_interp_hann"
WIDTH = 6
ROLLOFF = 0.99

_LARGEST_KERNEL = 1 << 24


class Resampling:
    """Band-limited interpolation with a windowed sinc, by torchaudio (Smith, Gossett 1984).

    The kernel is computed in float64 and applied in float32. Of n samples at rate r,
    ⌈n · rate / r⌉ come out; a recording at the model's own rate stays as it is.

    Args:
        rate: samples a second, of the model.
    """

    def __init__(self, rate: int) -> None:
        self.rate = rate

    def __call__(self, waveform: Waveform, origin: str) -> NDArray[float32]:
        """The samples of a recording, (n,) float32, at the model's rate.

        Raises:
            SourceError: the two rates have no ratio of numbers small enough for a kernel.
        """
        import torch

        if waveform.rate == self.rate:
            return waveform.samples
        common = math.gcd(waveform.rate, self.rate)
        size = waveform.rate // common * (self.rate // common)
        if size > _LARGEST_KERNEL:
            raise SourceError(
                f"recording {origin}: has {waveform.rate} samples a second, expected a rate that "
                f"stands in a simple ratio to the model's {self.rate}, as 8000, 22050, 44100 and "
                "48000 do; correct its rate, or resample it"
            )
        resampled = _transform(waveform.rate, self.rate)(torch.tensor(waveform.samples))
        samples: NDArray[float32] = resampled.numpy()
        return samples

    def describe(self) -> dict[str, str | int | float]:
        """The rate, and how it is reached."""
        return {
            "rate": self.rate,
            "resampling": METHOD,
            "lowpass_filter_width": WIDTH,
            "rolloff": ROLLOFF,
        }


@lru_cache(maxsize=4)
def _transform(recorded: int, wanted: int) -> Any:
    from torchaudio.transforms import Resample

    return Resample(
        recorded, wanted, resampling_method=METHOD, lowpass_filter_width=WIDTH, rolloff=ROLLOFF
    )
