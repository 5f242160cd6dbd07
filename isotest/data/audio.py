"""From an audio file to a waveform: one channel, float32, samples a second as recorded.

WAV, FLAC, Ogg (Vorbis, Opus) and MP3, read by libsndfile. Lossy formats are decoded with
floating-point arithmetic that may round differently on another processor: baselines that are to
hold on other machines need WAV or FLAC.

Files are untrusted: rate, channels and length are checked before samples are read, and while they
are read no more of them are kept than the longest recording has.
"""

from __future__ import annotations

import io
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from isotest.data.dataset import Waveform
from isotest.data.regular import read_regular
from isotest.data.waveform import require_bounds
from isotest.errors import SourceError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

FORMATS = frozenset({"WAV", "WAVEX", "FLAC", "OGG", "MP3"})
MOST_CHANNELS = 64
LARGEST_FILE = 1 << 30
"""Bytes: half an hour of two channels in studio quality."""

_BLOCK = 1 << 16
# What libsndfile makes of a FLAC header without a number of samples; it cannot read on from there.
_UNKNOWN = 2**63 - 1
_LAST_PAGE = 4
_MIRRORED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def decode(stored: Path | bytes, origin: str, channels: str | None = None) -> Waveform:
    """Decode an audio file, or its bytes, completely.

    Args:
        stored: the file, or what it holds.
        origin: where it comes from, for messages.
        channels: ``"mean"`` or ``"first"`` of several channels; ``None`` refuses several.

    Raises:
        SourceError: missing, empty, corrupt, truncated, too long, or with several channels; names
            ``origin``.
    """
    import soundfile

    try:
        if not isinstance(stored, bytes):
            stored = read_regular(stored, f"recording {origin}", LARGEST_FILE)
        if not stored:
            raise SourceError(f"recording {origin}: the file is empty; replace or remove it")
        with soundfile.SoundFile(io.BytesIO(stored)) as file:
            _require_readable(file, origin, channels)
            samples = _samples(file, origin, channels)
            whole = len(samples) == file.frames and _is_whole(stored, file)
            rate = int(file.samplerate)
    except SourceError:
        raise
    except Exception as error:
        # libsndfile's own errors, and those of files that are not here or not readable.
        reason = getattr(error, "error_string", error)  # without the address of a file in memory
        raise SourceError(
            f"recording {origin}: cannot be decoded ({reason}); replace or remove it"
        ) from error
    if not whole:
        raise SourceError(
            f"recording {origin}: is truncated or damaged ({len(samples)} samples could be read); "
            "replace or remove it"
        )
    return Waveform(samples, rate)


def _require_readable(file: Any, origin: str, channels: str | None) -> None:
    if file.format not in FORMATS:
        raise SourceError(
            f"recording {origin}: expected WAV, FLAC, Ogg or MP3, found {file.format}; convert it"
        )
    if file.frames == _UNKNOWN:
        raise SourceError(
            f"recording {origin}: does not say how long it is, as if written to a pipe; "
            "write it to a file"
        )
    require_bounds(file.samplerate, file.frames / file.samplerate, origin)
    if file.channels > MOST_CHANNELS:
        raise SourceError(
            f"recording {origin}: has {file.channels} channels, expected at most {MOST_CHANNELS}"
        )
    if file.channels > 1 and channels is None:
        raise SourceError(
            f"recording {origin}: has {file.channels} channels, expected one; add 'channels=mean' "
            "or 'channels=first' to the source (in telephone recordings each speaker may have one)"
        )


def _samples(file: Any, origin: str, channels: str | None) -> NDArray[np.float32]:
    """Block by block, one channel kept; libsndfile may find more than the header promised."""
    parts = [np.zeros(0, np.float32)]
    count = 0
    while len(block := file.read(_BLOCK, dtype="float32", always_2d=True)):
        count += len(block)
        require_bounds(file.samplerate, count / file.samplerate, origin)
        parts.append(block.mean(axis=1) if channels == "mean" else block[:, 0].copy())
    return np.concatenate(parts)


def _is_whole(content: bytes, file: Any) -> bool:
    """Whether the file's own structure is intact; libsndfile takes a part for all.

    WAV: the length that the RIFF header states (0 and 2³²−1: unknown, written to a pipe).
    Ogg: the pages (RFC 3533). FLAC and MP3: libsndfile finds fewer samples than were promised.
    """
    if content[:4] == b"RIFF":
        stated = struct.unpack_from("<I", content, 4)[0]
        return stated in (0, 2**32 - 1) or stated + 8 <= len(content)
    return file.format != "OGG" or _has_whole_pages(content)


def _has_whole_pages(content: bytes) -> bool:
    """Whether an Ogg file is pages with right checksums, of which the last ends the stream."""
    start, kind = 0, 0
    while start < len(content):
        header = content[start : start + 27]
        if len(header) < 27 or header[:4] != b"OggS":
            return False
        kind, segments = header[5], header[26]
        end = start + 27 + segments + sum(content[start + 27 : start + 27 + segments])
        page = header[:22] + bytes(4) + content[start + 26 : end]
        if end > len(content) or _checksum(page) != struct.unpack_from("<I", header, 22)[0]:
            return False
        start = end
    return bool(kind & _LAST_PAGE)


def _checksum(page: bytes) -> int:
    """CRC-32 with the bits in Ogg's order, by zlib's, whose bits are in the other one."""
    mirrored = ~zlib.crc32(page.translate(_MIRRORED), 0xFFFFFFFF) & 0xFFFFFFFF
    return int(f"{mirrored:032b}"[::-1], 2)
