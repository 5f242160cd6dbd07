"""What every model source yields: a module in eval mode, its observed layers, how to feed it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from PIL.Image import Image
    from torch import Tensor, nn


@dataclass(frozen=True)
class ObservedLayer:
    """A module whose output is a layer of the curve.

    Attributes:
        name: ``"0"`` (embedding or stem), ``"1"`` … ``"n"`` (blocks), ``"final"``.
        path: dotted path of the module below the model; hooks go there.
        select: picks the representation tensor out of the module's raw output.
        kind: ``"tokens"``: (batch, length, width); ``"map"``: (batch, channels, height, width).
        prefix: how many leading positions are special tokens (CLS, distillation, registers).
    """

    name: str
    path: str
    select: Callable[[Any], Tensor]
    kind: Literal["tokens", "map"]
    prefix: int = 0


class Preprocess(Protocol):
    """Turns decoded images into the model's keyword inputs."""

    def __call__(self, images: Sequence[Image]) -> Mapping[str, Tensor]:
        """One batch of decoded images to the keyword inputs of a forward pass."""
        ...

    def describe(self) -> Mapping[str, str | int | float]:
        """Flat description for the protocol: sizes, means, interpolation; equal iff equivalent."""
        ...


@dataclass(frozen=True)
class LoadedModel:
    """A model ready to be measured.

    Attributes:
        module: in eval mode, gradients off, on its device, in its dtype.
        layers: the observed layers, in forward order.
        preprocess: images to keyword inputs of ``module``.
        architecture: ``class``, ``parameters`` (digest of shapes), ``config`` (digest of
            what decides the computation: not paths, not labels, not library versions).
        weights: digest of all parameters and buffers.
        commit: resolved commit of a ``hub:`` source.
        versions: versions of the libraries that built it.
        default_representation: ``"positions"`` (each token or map position is a representation) or
            ``"flattened"`` (one input, one representation), by the kind of architecture.
    """

    module: nn.Module
    layers: tuple[ObservedLayer, ...]
    preprocess: Preprocess
    architecture: Mapping[str, str]
    weights: str
    commit: str | None
    versions: Mapping[str, str]
    default_representation: Literal["positions", "flattened"]
