"""What tells the data of one modality from those of another: one class for each kind of content.

A source finds, names and groups inputs in the same way whatever they are. What differs is here:
which files hold one, which column of a table, how a stored value becomes content, which content is
refused, and what identifies it.

Nothing that decodes is imported before something is decoded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from isotest.errors import SourceError
from isotest.source import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from PIL.Image import Image

    from isotest.data.dataset import Content, Waveform
    from isotest.data.rows import Rows, Stream


class Kind(ABC):
    """The data of one modality, read as the options of a source say.

    Args:
        options: of the source.
        where: what names the source, at the start of messages.

    Attributes:
        noun, plural: what one input, and several, are called in messages.
        column: the option that names the column which holds the content, and its default.
        listed: that default in JSON lines.
        inline: whether text in a column is the content itself, not the path of its file.
        suffixes: of the files that hold one input each, in lower case.
        choices: further options of sources of stored data, with the values that they take.
        columns: further options, which name columns.
        samples: the names behind ``sample:``.
        expected: what ``python:`` is to yield, in words.

    Raises:
        SourceError: one of ``choices`` has another value.
    """

    noun: ClassVar[str]
    plural: ClassVar[str]
    column: ClassVar[str]
    listed: ClassVar[str]
    inline: ClassVar[bool] = False
    suffixes: ClassVar[frozenset[str]]
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType({})
    columns: ClassVar[tuple[str, ...]] = ()
    samples: ClassVar[tuple[str, ...]]
    expected: ClassVar[str]

    def __init__(self, options: Mapping[str, str], where: str) -> None:
        self.where = where
        self.chosen: Mapping[str, str] = {
            option: options[option] for option in self.choices if option in options
        }
        for option, value in self.chosen.items():
            if value not in self.choices[option]:
                listed = " or ".join(f"'{option}={choice}'" for choice in self.choices[option])
                raise SourceError(f"{where}: expected {listed}, found '{option}={value}'")

    @abstractmethod
    def item(self, value: object, origin: str) -> Content | None:
        """``value`` as content where it needs no decoding, ``None`` where it is something else."""

    @abstractmethod
    def decode(self, stored: Path | bytes, origin: str) -> Content:
        """The content of a file, or of its bytes.

        Raises:
            SourceError: missing, damaged or too large; names ``origin``.
        """

    @abstractmethod
    def finished(self, content: Any, origin: str) -> Content:
        """``content`` as models see it.

        Raises:
            SourceError: nothing can be measured on it; names ``origin``.
        """

    @abstractmethod
    def digest(self, content: Any) -> bytes:
        """sha256 of finished content."""

    def used(self, opened: Rows | Stream) -> Rows | Stream:
        """What of an opened source counts: all, unless the source says otherwise."""
        return opened


def holds(kind: Kind, name: str) -> bool:
    """Whether a file of this name holds an input of ``kind``, by its suffix."""
    return PurePosixPath(name).suffix.lower() in kind.suffixes


class Images(Kind):
    """Images: files of the usual formats, PIL images; 8-bit RGB in the end."""

    noun, plural = "image", "images"
    column, listed = "image", "path"
    suffixes = frozenset(
        ".bmp .gif .jpeg .jpg .pbm .pgm .png .pnm .ppm .tif .tiff .webp".split()  # noqa: SIM905
    )
    samples = ("photographs", "digits")
    expected = "PIL images, or pairs (PIL image, group)"

    def item(self, value: object, origin: str) -> Content | None:
        """PIL images are content."""
        from PIL import Image

        return value if isinstance(value, Image.Image) else None

    def decode(self, stored: Path | bytes, origin: str) -> Content:
        """By Pillow."""
        from isotest.data.image import decode

        return decode(stored, origin)

    def finished(self, content: Image, origin: str) -> Content:
        """8-bit RGB, upright."""
        from isotest.data.image import to_rgb

        return to_rgb(content, origin)

    def digest(self, content: Image) -> bytes:
        """Of mode, size and pixels."""
        from isotest.data.digest import image_digest

        return image_digest(content)


class Texts(Kind):
    """Texts: ``.txt`` files in UTF-8, strings. ``empty=skip`` leaves empty ones out."""

    noun, plural = "text", "texts"
    column = listed = "text"
    inline = True
    suffixes = frozenset({".txt"})
    choices = MappingProxyType({"empty": ("skip",)})
    samples = ("passages", "reactions", "antibodies")
    expected = "strings, or pairs (string, group)"

    def item(self, value: object, origin: str) -> Content | None:
        """Strings are content."""
        return value if isinstance(value, str) else None

    def decode(self, stored: Path | bytes, origin: str) -> Content:
        """UTF-8, without a byte order mark; lines end with a newline character."""
        from isotest.data.text import decode

        return decode(stored, origin)

    def finished(self, content: str, origin: str) -> Content:
        """Unchanged; refused if empty or no valid Unicode."""
        from isotest.data.text import checked

        return checked(content, origin)

    def used(self, opened: Rows | Stream) -> Rows | Stream:
        """All, or all that are not empty."""
        from isotest.data.text import without_empty

        return without_empty(opened, self.where) if "empty" in self.chosen else opened

    def digest(self, content: str) -> bytes:
        """Of the text in UTF-8."""
        from isotest.data.digest import text_digest

        return text_digest(content)


class Recordings(Kind):
    """Recorded speech: audio files, waveforms. ``channels`` says what becomes of several."""

    noun, plural = "recording", "recordings"
    column = listed = "audio"
    suffixes = frozenset({".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3"})
    choices = MappingProxyType({"channels": ("mean", "first")})
    columns = ("transcript",)
    samples = ("speech",)
    expected = "isotest.data.Waveform objects or pairs (array, rate), or pairs of such and a group"

    def item(self, value: object, origin: str) -> Content | None:
        """Waveforms are content, and so are pairs of an array and its sampling rate."""
        from isotest.data.waveform import from_python

        return from_python(value, origin)

    def decode(self, stored: Path | bytes, origin: str) -> Content:
        """By libsndfile; samples a second stay as recorded."""
        from isotest.data.audio import decode

        return decode(stored, origin, self.chosen.get("channels"))

    def finished(self, content: Waveform, origin: str) -> Content:
        """Unchanged; refused if empty, constant or not finite."""
        from isotest.data.waveform import checked

        return checked(content, origin)

    def digest(self, content: Waveform) -> bytes:
        """Of samples, rate and transcript."""
        from isotest.data.digest import waveform_digest

        return waveform_digest(content)


KINDS: dict[str, type[Kind]] = {
    "vision": Images,
    "text": Texts,
    "characters": Texts,
    "speech": Recordings,
}
"""Modality → its kind of data."""


def kind_of(modality: str) -> type[Kind]:
    """The kind of data of a modality; construct it with a source's options and its name.

    Raises:
        SourceError: there is no such modality.

    >>> kind_of("speech").column
    'audio'
    """
    if modality not in KINDS:
        raise SourceError(f"unknown modality {modality!r}{did_you_mean(modality, KINDS)}")
    return KINDS[modality]
