"""What every model source yields: a module in eval mode, its observed layers, how to feed it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from torch import Tensor, nn

    from isotest.data.dataset import Sample


@dataclass(frozen=True)
class ObservedLayer:
    """A module whose output (or input) is a layer of the curve.

    Attributes:
        name: ``"0"`` (embedding or stem), ``"1"`` … ``"n"`` (blocks), ``"final"``; with
            ``"encoder."`` or ``"decoder."`` in front where a model has both.
        path: dotted path of the module below the model; hooks go there.
        select: picks the representation tensor out of the module's raw output (or input).
        kind: ``"tokens"``: (batch, length, width); ``"map"``: (batch, channels, height, width).
        prefix: how many leading positions of an image's tokens are special (CLS, registers).
        stream: which of :attr:`Inputs.positions` says what its positions are; ``""``: none does.
        side: what is observed of the module.
        call: which of the module's calls in one forward pass, from 0: a block whose weights are
            shared between layers runs once for each.
        calls: how often the module is to run in one forward pass.
    """

    name: str
    path: str
    select: Callable[[Any], Tensor]
    kind: Literal["tokens", "map"]
    prefix: int = 0
    stream: str = ""
    side: Literal["output", "input"] = "output"
    call: int = 0
    calls: int = 1


@dataclass(frozen=True)
class Positions:
    """What the positions of a batch of sequences are.

    Attributes:
        valid: (batch, length) bool, false where there is only padding.
        special: (batch, length) bool, true for what a tokenizer or a model adds to the input's own
            units (CLS, SEP, start and end of sequence).
    """

    valid: Tensor
    special: Tensor


@dataclass(frozen=True)
class Inputs:
    """One batch, ready for a forward pass.

    Attributes:
        arguments: keyword arguments of the module.
        positions: by stream, where not every position is a representation like any other.
    """

    arguments: Mapping[str, Tensor]
    positions: Mapping[str, Positions] = field(default_factory=dict)


@dataclass(frozen=True)
class Piece:
    """One sequence of a batch: an image, a clip, a window of a text.

    Attributes:
        unit: number of the independent unit that it belongs to.
        origin: where it came from, for messages.
        content: what :meth:`Feed.batch` makes inputs of.
    """

    unit: int
    origin: str
    content: Any


class Feed(Protocol):
    """Turns samples into batches for a model, exactly: padding never counts."""

    def pieces(self, samples: Iterable[Sample], *, grouped: bool) -> Iterator[Piece]:
        """The sequences that samples yield, in order; ``grouped``: samples may share a unit.

        Raises:
            SourceError: a sample that the model cannot be fed, or too few of them to make one.
        """
        ...

    def together(self, first: Piece, other: Piece) -> bool:
        """Whether two pieces may share a batch without changing each other's numbers."""
        ...

    def batch(self, pieces: Sequence[Piece]) -> Inputs:
        """Pieces that may share a batch, as inputs of one forward pass."""
        ...

    def blank(self) -> Piece:
        """A piece that holds nothing of interest, to look at the model with."""
        ...

    def describe(self) -> Mapping[str, str | int | float]:
        """Flat description for the protocol; equal iff equivalent, once all pieces are made."""
        ...


class Preprocess(Protocol):
    """The simple way to feed a module: contents of samples to its keyword inputs, one to one.

    Where the inputs hold an ``attention_mask`` of shape (batch, length), positions that it masks
    do not count in layers of that length.
    """

    def __call__(self, contents: Sequence[Any], /) -> Mapping[str, Tensor]:
        """One batch of decoded contents to the keyword inputs of a forward pass."""
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
        feed: samples to keyword inputs of ``module``.
        architecture: ``class``, ``parameters`` (digest of shapes), ``config`` (digest of
            what decides the computation: not paths, not labels, not library versions).
        weights: digest of all parameters and buffers.
        commit: resolved commit of a ``hub:`` source.
        versions: versions of the libraries that built it.
        default_representation: ``"positions"`` (each token or map position is a representation) or
            ``"flattened"`` (one input, one representation), by the kind of architecture.
        made: streams whose valid positions the model makes itself: name to the path of the module
            and the function that picks the (batch, length) mask out of its output.
    """

    module: nn.Module
    layers: tuple[ObservedLayer, ...]
    feed: Feed
    architecture: Mapping[str, str]
    weights: str
    commit: str | None
    versions: Mapping[str, str]
    default_representation: Literal["positions", "flattened"]
    made: Mapping[str, tuple[str, Callable[[Any], Tensor]]] = field(default_factory=dict)
