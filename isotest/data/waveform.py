"""Waveforms: from a user's arrays, and which of them can be measured."""

from __future__ import annotations

import operator
from typing import Any, cast

import numpy as np

from isotest.data.dataset import Waveform
from isotest.errors import SourceError

LOWEST_RATE, HIGHEST_RATE = 1_000, 192_000
"""Samples a second. Below the first no speech is left, and no recorder writes beyond the second."""

LONGEST_SECONDS = 30 * 60


def from_python(value: object, origin: str) -> Waveform | None:
    """A :class:`Waveform`, or a pair (array, rate), as a waveform; ``None``: it is neither.

    The array has one dimension and floating-point values with full scale ±1. A pair whose first
    part is no array is not meant: it is some item with its group.

    Raises:
        SourceError: such a pair, but malformed; names ``origin``.

    >>> from_python((np.zeros(4), 16000), "example").rate
    16000
    """
    if isinstance(value, Waveform):
        samples, rate, transcript = value.samples, value.rate, value.transcript
    elif isinstance(value, tuple) and len(value) == 2 and hasattr(value[0], "__array__"):
        (samples, rate), transcript = value, None
    else:
        return None
    array = np.asarray(cast("Any", samples))
    if array.ndim != 1:
        raise SourceError(
            f"recording {origin}: expected one channel, an array of shape (n,), found shape "
            f"{array.shape}; choose a channel or average them"
        )
    if not np.issubdtype(array.dtype, np.floating):
        raise SourceError(
            f"recording {origin}: expected floating-point samples, full scale ±1, found "
            f"{array.dtype}; divide by the full scale of its integers"
        )
    try:
        rate = operator.index(rate)
    except TypeError:
        raise SourceError(
            f"recording {origin}: expected a whole number of samples a second, found {rate!r}"
        ) from None
    with np.errstate(over="ignore"):
        return Waveform(array.astype(np.float32), rate, transcript)


def require_bounds(rate: int, seconds: float, origin: str) -> None:
    """Refuse what is no speech.

    Raises:
        SourceError: too few or too many samples a second, or too long; names ``origin``.
    """
    if not LOWEST_RATE <= rate <= HIGHEST_RATE:
        raise SourceError(
            f"recording {origin}: has {rate} samples a second, expected {LOWEST_RATE} to "
            f"{HIGHEST_RATE}; correct its rate"
        )
    if seconds > LONGEST_SECONDS:
        raise SourceError(
            f"recording {origin}: is longer than {LONGEST_SECONDS // 60} minutes; cut it into clips"
        )


def checked(waveform: Waveform, origin: str) -> Waveform:
    """``waveform``, unchanged.

    Raises:
        SourceError: no samples, NaN or an infinity, silence, no speech by rate or length, or a
            transcript that is no text; names ``origin``.
    """
    samples = waveform.samples
    if not len(samples):
        raise SourceError(f"recording {origin}: has no samples; remove it")
    require_bounds(waveform.rate, len(samples) / max(waveform.rate, 1), origin)
    finite = np.isfinite(samples)
    if not finite.all():
        first = int(np.argmin(finite))
        raise SourceError(
            f"recording {origin}: sample {first} of {len(samples)} (counted from 0) is "
            f"{samples[first]}; repair or remove it"
        )
    if samples.min() == samples.max():
        raise SourceError(
            f"recording {origin}: is silent (every sample is {samples[0]:g}); remove it"
        )
    if waveform.transcript is not None:
        require_transcript(waveform.transcript, origin)
    return waveform


def require_transcript(transcript: object, origin: str) -> None:
    """Refuse a transcript that is no valid text."""
    try:
        cast("str", transcript).encode("utf-8")
    except (AttributeError, UnicodeEncodeError) as error:
        raise SourceError(
            f"recording {origin}: expected a transcript that is text, found {transcript!a}"
        ) from error
