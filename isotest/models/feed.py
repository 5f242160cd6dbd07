"""The plain feed: every sample is one sequence, made into inputs by a preprocessing function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isotest.errors import SourceError
from isotest.models.loaded import Inputs, Piece, Positions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from torch import Tensor, nn

    from isotest.data.dataset import Sample
    from isotest.models.loaded import Preprocess


@dataclass(frozen=True)
class PlainFeed:
    """One sample, one sequence.

    Attributes:
        preprocess: contents of samples to keyword inputs.
        nothing: the content of a blank sample.
    """

    preprocess: Preprocess
    nothing: Any

    def blank(self) -> Piece:
        """The blank sample."""
        return Piece(0, "blank", self.nothing)

    def pieces(self, samples: Iterable[Sample], *, grouped: bool) -> Iterator[Piece]:
        """Each sample as it is."""
        for sample in samples:
            yield Piece(sample.unit, sample.origin, sample.content)

    def together(self, first: Piece, other: Piece) -> bool:
        """Always: whoever wrote the preprocessing batches its inputs."""
        return True

    def batch(self, pieces: Sequence[Piece]) -> Inputs:
        """What the preprocessing makes of them; an ``attention_mask`` says what is padding.

        Raises:
            SourceError: it makes something else than tensors.
        """
        import torch

        arguments = dict(self.preprocess([piece.content for piece in pieces]))
        for name, value in arguments.items():
            if not isinstance(value, torch.Tensor):
                raise SourceError(
                    f"preprocessing ({type(self.preprocess).__name__}): expected tensors as the "
                    f"model's inputs, found {name!r} to be {type(value).__name__}"
                )
        mask = arguments.get("attention_mask")
        if not isinstance(mask, torch.Tensor) or mask.dim() != 2:
            return Inputs(arguments)
        valid = mask.bool()
        return Inputs(arguments, {"": Positions(valid, torch.zeros_like(valid))})

    def describe(self) -> Mapping[str, str | int | float]:
        """As the preprocessing describes itself."""
        return self.preprocess.describe()


def placed(inputs: Inputs, module: nn.Module) -> Inputs:
    """Onto a module's device; floating inputs into its dtype too."""
    parameter = next(module.parameters(), None)
    if parameter is None:
        return inputs

    def to(value: Tensor) -> Tensor:
        dtype = parameter.dtype if value.is_floating_point() else value.dtype
        return value.to(device=parameter.device, dtype=dtype)

    return Inputs(
        {name: to(value) for name, value in inputs.arguments.items()},
        {
            stream: Positions(to(positions.valid), to(positions.special))
            for stream, positions in inputs.positions.items()
        },
    )
