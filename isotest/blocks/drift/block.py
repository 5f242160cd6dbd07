"""A block under study: found inside a model, its width, how it is run."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from isotest.errors import MeasurementError, SourceError, one_line
from isotest.models.architecture import architecture
from isotest.models.evaluating import evaluating
from isotest.models.loaded import LoadedModel, ObservedLayer
from isotest.models.normalisation import is_normalisation
from isotest.models.select import first
from isotest.models.vectors import feed_of_width
from isotest.source import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_GIVE_WIDTH = "say what it is with 'width'"


def find_block(model: nn.Module, path: str | None, what: str) -> nn.Module:
    """The block at a dotted path below a model; the model itself without a path.

    Raises:
        SourceError: there is no module of that path.
    """
    if path is None:
        return model
    try:
        return model.get_submodule(path)
    except AttributeError:
        known = [name for name, _ in model.named_modules() if name]
        hint = did_you_mean(path, known) if len(known) < 40 else _nearest(path, known)
        raise SourceError(
            f"{what}: {type(model).__name__} has no module {path!r} to be the block{hint}"
        ) from None


def _nearest(path: str, known: Sequence[str]) -> str:
    hint = did_you_mean(path, known)
    if "known:" not in hint:
        return hint
    lists = [name for name in known if name.rpartition(".")[2] == "0"]
    return f"; lists of modules start at {', '.join(lists[:8])}"


def width_of(block: nn.Module, what: str) -> int:
    """D, by the block's configuration, its norms, or its first linear map.

    Raises:
        SourceError: it has none of these, or they disagree.

    >>> width_of(nn.TransformerEncoderLayer(8, 2, 16), "block")
    8
    """
    own = getattr(getattr(block, "config", None), "width", None)
    if isinstance(own, int):
        return own
    norms = {
        parameter.shape[0]
        for module in block.modules()
        if is_normalisation(module)
        for parameter in module.parameters(recurse=False)
        if parameter.dim() == 1
    }
    if len(norms) == 1:
        return int(norms.pop())
    linear = next((each for each in block.modules() if isinstance(each, nn.Linear)), None)
    if norms or linear is None:
        found = f"norms of {', '.join(map(str, sorted(norms)))} entries" if norms else "no norm"
        raise SourceError(
            f"{what}: cannot tell the width of {type(block).__name__} ({found}); {_GIVE_WIDTH}"
        )
    return linear.in_features


@dataclass(frozen=True)
class StudiedBlock:
    """A block in eval mode that maps (B, L, D) to (B, L, D).

    Attributes:
        module: the block.
        width: D.
        what: where it is from, for messages.
    """

    module: nn.Module
    width: int
    what: str

    @property
    def device(self) -> torch.device:
        """Where it is."""
        parameter = next(self.module.parameters(), None)
        return torch.device("cpu") if parameter is None else parameter.device

    @property
    def dtype(self) -> torch.dtype:
        """What it computes in."""
        floating = (each.dtype for each in self.module.parameters() if each.is_floating_point())
        return next(floating, torch.float32)

    def run(self, x: Tensor) -> Tensor:
        """The block's output.

        Args:
            x: (B, L, D), on its device and in its dtype.

        Raises:
            MeasurementError: it fails, or its output is no (B, L, D).
        """
        try:
            output: Any = first(self.module(x))
        except Exception as error:
            own = f"{type(self.module).__name__} fails on (batch, length, width) {tuple(x.shape)}"
            raise MeasurementError(
                f"{self.what}: {own}: {one_line(error)}; a block is called with one tensor: where "
                f"it needs more, wrap it in a module that brings the rest; where its width is not "
                f"{self.width}, {_GIVE_WIDTH}"
            ) from error
        if not isinstance(output, Tensor) or output.shape != x.shape:
            shape = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
            raise MeasurementError(
                f"{self.what}: expected {type(self.module).__name__} to return a tensor of the "
                f"shape of its input, {tuple(x.shape)}, found {shape}"
            )
        return output

    @contextmanager
    def running(self) -> Iterator[None]:
        """While the context is open, in eval mode and without gradients; then as it was."""
        with evaluating(self.module), torch.inference_mode():
            yield

    def loaded(self) -> LoadedModel:
        """The block as observers of attention take it."""
        return LoadedModel(
            module=self.module,
            layers=(ObservedLayer("output", "", first, "tokens"),),
            feed=feed_of_width(self.module, self.width),
            architecture=architecture(self.module),
            weights="",
            commit=None,
            versions={},
            default_representation="positions",
        )
