"""Where models come from: one entry a scheme, each built by one module.

A source is built in two steps. Its own module turns a :class:`Request` into a :class:`Built`; what
every source shares (eval mode, layers, preprocessing, digests, device) happens once, in
:mod:`isotest.models.load`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, cast

from isotest.errors import SourceError
from isotest.source import Source, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from torch import nn

    from isotest.models.loaded import Preprocess

BUILDERS: dict[str, str] = {
    "init": "isotest.models.init:build",
    "block": "isotest.models.block:build",
    "hub": "isotest.models.hub:build",
    "timm": "isotest.models.timm:build",
    "path": "isotest.models.path:build",
    "package": "isotest.models.package:build",
    "python": "isotest.models.python:build",
    "sample": "isotest.models.sample:build",
    "task": "isotest.models.task:build",
}
"""Scheme to ``module:function``, a function from :class:`Request` to :class:`Built`."""


@dataclass(frozen=True)
class Request:
    """What a source is asked for.

    Attributes:
        source: the parsed source.
        config: overrides of the architecture's configuration, from the suite.
        base: what relative paths start from.
        download: whether the hub may be reached; without it no attempt is made.
        trust_remote_code: whether code that comes with the weights may run.
        like: the source that this one stands in for; a bare state dict takes its architecture from
            there, and ``config`` describes it.
        like_base: what relative paths in ``like`` start from; ``base`` where it is ``None``.
        weights: false asks for the architecture only: any values will do, none need to be present.
    """

    source: Source
    config: Mapping[str, object]
    base: Path
    download: bool = False
    trust_remote_code: bool = False
    like: Source | None = None
    like_base: Path | None = None
    weights: bool = True

    def of_like(self) -> Request:
        """For the architecture and the preprocessing of ``like``."""
        assert self.like is not None
        base = self.like_base or self.base
        return replace(self, source=self.like, base=base, like=None, weights=False)


@dataclass(frozen=True)
class Built:
    """What a source yields before it is made ready.

    Attributes:
        module: as built, in float32 where the source leaves a choice.
        folder: the folder it came from, which may say how images are prepared.
        preprocess: brought by the source itself.
        commit: resolved commit of a ``hub:`` source.
        libraries: distributions whose versions decide what was built, beside torch.
    """

    module: nn.Module
    folder: Path | None = None
    preprocess: Preprocess | None = None
    commit: str | None = None
    libraries: tuple[str, ...] = ()


def build(request: Request) -> Built:
    """Build ``request.source`` with the function that its scheme is registered with.

    Raises:
        MissingError: weights, a package or a folder are not here.
        SourceError: the source is misspelt, malformed or unusable.
    """
    scheme = request.source.scheme
    if scheme not in BUILDERS:
        hint = did_you_mean(scheme, BUILDERS)
        raise SourceError(f"source {str(request.source)!r}: unknown scheme {scheme!r}{hint}")
    module, _, function = BUILDERS[scheme].partition(":")
    builder = cast("Callable[[Request], Built]", getattr(import_module(module), function))
    return builder(request)


def seed_of(source: Source) -> int:
    """The option ``seed`` of a source, 0 by default.

    Raises:
        SourceError: it is not a whole number in 0 … 2⁶³ − 1.
    """
    text = source.options.get("seed", "0")
    if not (text.isascii() and text.isdecimal() and int(text) < 2**63):
        raise SourceError(
            f"source {str(source)!r}: expected seed to be a whole number from 0, found {text!r}"
        )
    return int(text)
