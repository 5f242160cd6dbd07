"""Synthetic transformer blocks, untrained.

``block:bert?seed=0``, ``block:vit``, ``block:san``, ``block:modern``.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from isotest.blocks.config import BlockConfig
from isotest.errors import BlockError, SourceError, one_line
from isotest.models.registry import Built, Request, seed_of
from isotest.source import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PRESETS: Mapping[str, Callable[[], BlockConfig]] = {
    "bert": BlockConfig.bert,
    "modern": BlockConfig.modern,
    "san": BlockConfig.san,
    "vit": BlockConfig.vit,
}


def build(request: Request) -> Built:
    """A stack of blocks; the suite's ``config`` overrides fields of the preset's configuration.

    Its module takes (B, L, D) representations, so that it can only be measured where those are
    what the data are.

    Raises:
        SourceError: an unknown preset, option or field, a value that cannot be, or one too large.
    """
    from isotest.blocks.stack import TransformerStack

    source = request.source
    source.require_options({"seed"})
    seed = seed_of(source)
    config = _configuration(request)
    try:
        return Built(TransformerStack(config, seed=seed))
    except (RuntimeError, MemoryError) as error:
        raise SourceError(f"source {str(source)!r}: cannot build it: {one_line(error)}") from error


def _configuration(request: Request) -> BlockConfig:
    what, preset = str(request.source), request.source.location
    if preset not in PRESETS:
        raise SourceError(
            f"source {what!r}: unknown block {preset!r}{did_you_mean(preset, PRESETS)}"
        )
    known = [field.name for field in fields(BlockConfig)]
    for key in request.config:
        if key not in known:
            hint = did_you_mean(key, known)
            raise SourceError(
                f"source {what!r}: BlockConfig has no configuration key {key!r}{hint}"
            )
    overrides: dict[str, Any] = dict(request.config)
    try:
        return replace(PRESETS[preset](), **overrides)
    except BlockError as error:
        raise SourceError(f"source {what!r}: {error}") from None
