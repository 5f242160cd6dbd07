"""Faults in the output of one block.

With X the output, x a representation in it, v a fixed unit vector and s the strength:

=================== ==================================================== =======================
fault               what x becomes                                       where
=================== ==================================================== =======================
common direction    x + s · mean ‖x‖ · v                                 after the middle block
collapsed rank      ‖x‖ · (u + s(v − u)), made as long, u = x / ‖x‖      after the last block
rogue dimension     x + s · ‖x‖ · e₀                                     after the middle block
sequence mean       x + s(x̄ − x), x̄ the mean over x's sequence           after the last block
duplicated rows     the sequence's second position, for a share s of x   after the last block
not a number        NaN in dimension 0 of a batch's first sequence       after the middle block
dropped layer       x, unobserved                                        the middle block
=================== ==================================================== =======================
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor, nn

    from isotest.data.dataset import Dataset
    from isotest.models.loaded import LoadedModel, ObservedLayer
    from isotest.profile import Profile

    Altered = Iterator[tuple[LoadedModel, Dataset]]


@contextmanager
def rewritten_output(
    module: nn.Module,
    rewrite: Callable[[Tensor], Tensor],
    *,
    select: Callable[[Any], Tensor] = lambda output: output,
    call: int = 0,
    calls: int = 1,
) -> Iterator[None]:
    """Replace the output of a module by ``rewrite(output)``, in place, for a while.

    In place, because outputs come as tensors, tuples or records, and ``select`` knows the way in
    but not the way back. The hook runs before those of a measurement that starts later. Of a module
    that runs ``calls`` times in a forward pass, only one call is altered.
    """
    runs = 0

    def hook(_module: Any, _inputs: Any, output: Any) -> None:
        nonlocal runs
        this, runs = runs % calls, runs + 1
        if this == call:
            x = select(output)
            x.copy_(rewrite(x))

    handle = module.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def rewritten(
    loaded: LoadedModel, layer: ObservedLayer, rewrite: Callable[[Tensor], Tensor]
) -> Iterator[None]:
    """Replace what is observed at ``layer``, and what later layers are given."""
    module = loaded.module.get_submodule(layer.path)
    with rewritten_output(module, rewrite, select=layer.select, call=layer.call, calls=layer.calls):
        yield


def middle_block(loaded: LoadedModel) -> ObservedLayer:
    """The block in the middle of the network, so that layers before and after it are observed."""
    blocks = [layer for layer in loaded.layers if _short(layer) not in ("0", "final")]
    return blocks[len(blocks) // 2] if blocks else loaded.layers[-1]


def last_block(loaded: LoadedModel) -> ObservedLayer:
    """The last numbered block."""
    return next(layer for layer in reversed(loaded.layers) if _short(layer) != "final")


def _short(layer: ObservedLayer) -> str:
    """Its name without that of its part."""
    return layer.name.rpartition(".")[2]


@contextmanager
def common_direction(loaded: LoadedModel, dataset: Dataset, strength: float) -> Altered:
    """A drift: one vector, as long as ``strength`` × the mean length, is added everywhere."""
    layer = middle_block(loaded)

    def rewrite(x: Tensor) -> Tensor:
        return x + strength * _norm(x, layer).mean() * _direction(x, layer)

    with rewritten(loaded, layer, rewrite):
        yield loaded, dataset


@contextmanager
def collapsed_rank(loaded: LoadedModel, dataset: Dataset, strength: float) -> Altered:
    """Representations keep their lengths and turn to one direction: rank one at strength 1."""
    import torch

    layer = last_block(loaded)

    def rewrite(x: Tensor) -> Tensor:
        lengths = _norm(x, layer)
        units = torch.where(lengths > 0, x / lengths, 0)
        turned = units + strength * (_direction(x, layer) - units)
        return lengths * turned / _norm(turned, layer)

    with rewritten(loaded, layer, rewrite):
        yield loaded, dataset


@contextmanager
def rogue_dimension(loaded: LoadedModel, dataset: Dataset, strength: float) -> Altered:
    """To one dimension, ``strength`` × the length of its representation is added."""
    layer = middle_block(loaded)

    def rewrite(x: Tensor) -> Tensor:
        altered = x.clone()
        axis = _axis(layer)
        altered.select(axis, 0).add_(strength * _norm(x, layer).select(axis, 0))
        return altered

    with rewritten(loaded, layer, rewrite):
        yield loaded, dataset


@contextmanager
def sequence_mean(loaded: LoadedModel, dataset: Dataset, strength: float) -> Altered:
    """Collapse within the sequence: every position moves towards the mean over its sequence."""
    layer = last_block(loaded)

    def rewrite(x: Tensor) -> Tensor:
        positions = (1,) if layer.kind == "tokens" else (2, 3)
        return x + strength * (x.mean(dim=positions, keepdim=True) - x)

    with rewritten(loaded, layer, rewrite):
        yield loaded, dataset


@contextmanager
def duplicated_rows(loaded: LoadedModel, dataset: Dataset, strength: float) -> Altered:
    """A share ``strength`` of a sequence's positions, evenly spread, become copies of one.

    Of the second one, as the first is often a special token, whose length is like no other's.
    """
    import torch

    layer = last_block(loaded)

    def rewrite(x: Tensor) -> Tensor:
        rows = x if layer.kind == "tokens" else x.flatten(2).transpose(1, 2)
        number = rows.shape[1]
        # The multiples of the golden ratio, modulo 1, fill 0 … 1 evenly, in any number.
        spread = torch.arange(1, number + 1, dtype=torch.float64) * ((5**0.5 - 1) / 2) % 1
        copies = (spread < strength).to(x.device)[:, None]
        altered = torch.where(copies, rows[:, min(1, number - 1), None], rows)
        return altered if layer.kind == "tokens" else altered.transpose(1, 2).reshape(x.shape)

    with rewritten(loaded, layer, rewrite):
        yield loaded, dataset


def no_positions(loaded: LoadedModel, profile: Profile) -> str | None:
    """Why nothing can collapse within a sequence; ``None`` where it can."""
    last = last_block(loaded).name
    representations = next(layer.representations for layer in profile.layers if layer.name == last)
    if representations > profile.sequences:
        return None
    return "every input is one representation, so there is nothing within a sequence"


@contextmanager
def not_a_number(loaded: LoadedModel, dataset: Dataset, _strength: float) -> Altered:
    """NaN in the first dimension of one sequence of every batch."""
    layer = middle_block(loaded)

    def rewrite(x: Tensor) -> Tensor:
        altered = x.clone()
        # Of all its positions: a single one may be padding, which never counts.
        altered.select(_axis(layer), 0)[0] = float("nan")
        return altered

    with rewritten(loaded, layer, rewrite):
        yield loaded, dataset


@contextmanager
def dropped_layer(loaded: LoadedModel, dataset: Dataset, _strength: float) -> Altered:
    """The middle block is not observed."""
    dropped = middle_block(loaded)
    layers = tuple(layer for layer in loaded.layers if layer is not dropped)
    yield replace(loaded, layers=layers), dataset


def _axis(layer: ObservedLayer) -> int:
    """The axis of one representation: the last of tokens, the channels of a map."""
    return -1 if layer.kind == "tokens" else 1


def _norm(x: Tensor, layer: ObservedLayer) -> Tensor:
    import torch

    norm: Tensor = torch.linalg.vector_norm(x, dim=(_axis(layer),), keepdim=True)
    return norm


def _direction(x: Tensor, layer: ObservedLayer) -> Tensor:
    """A fixed unit vector along the representation axis, shaped to broadcast."""
    import torch

    axis = _axis(layer)
    generator = torch.Generator().manual_seed(0)
    v = torch.randn(x.shape[axis], generator=generator, dtype=torch.float64)
    v /= torch.linalg.vector_norm(v)
    shape = [1] * x.dim()
    shape[axis] = -1
    return v.reshape(shape).to(device=x.device, dtype=x.dtype)
