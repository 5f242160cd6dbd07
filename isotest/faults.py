"""Faults to plant in a model or its data, to see whether a gate goes red.

A fault alters what is measured without touching the model's library: a forward hook rewrites one
layer's output in place (later layers see it too), or the data set is wrapped. Each is the smallest
honest picture of something that happens in training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.data.dataset import Content, Dataset, Sample
    from isotest.models.loaded import LoadedModel, ObservedLayer

Alteration = Callable[["LoadedModel", "Dataset"], tuple["LoadedModel", "Dataset"]]
Rewrite = Callable[["Tensor", "ObservedLayer"], "Tensor"]


@dataclass(frozen=True)
class Fault:
    """A named alteration.

    Attributes:
        name: as it stands in tables.
        summary: what is done, in words.
        plant: applied to the loaded model and its data before they are measured.
    """

    name: str
    summary: str
    plant: Alteration


def rewrite_layer(loaded: LoadedModel, layer: ObservedLayer, rewrite: Rewrite) -> None:
    """Replace the output of ``layer``'s module by ``rewrite(output, layer)``, in place.

    In place, because outputs come as tensors, tuples or records, and ``select`` knows the way in
    but not the way back. The hook runs before those of a measurement that starts later. Of a module
    that runs for several layers, only the layer's own call is altered.
    """
    runs = 0

    def hook(_module: Any, _inputs: Any, output: Any) -> None:
        nonlocal runs
        call, runs = runs % layer.calls, runs + 1
        if call != layer.call:
            return
        x = layer.select(output)
        x.copy_(rewrite(x, layer))

    loaded.module.get_submodule(layer.path).register_forward_hook(hook)


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


def _dimensions(layer: ObservedLayer) -> tuple[int, ...]:
    """The axes of one representation: the last of tokens, the channels of a map."""
    return (-1,) if layer.kind == "tokens" else (1,)


def _norm(x: Tensor, layer: ObservedLayer) -> Tensor:
    import torch

    norm: Tensor = torch.linalg.vector_norm(x, dim=_dimensions(layer), keepdim=True)
    return norm


def _direction(x: Tensor, layer: ObservedLayer) -> Tensor:
    """A fixed unit vector along the representation axis, shaped to broadcast."""
    import torch

    axis = _dimensions(layer)[0]
    generator = torch.Generator().manual_seed(0)
    v = torch.randn(x.shape[axis], generator=generator, dtype=torch.float64)
    v /= torch.linalg.vector_norm(v)
    shape = [1] * x.dim()
    shape[axis] = -1
    return v.reshape(shape).to(device=x.device, dtype=x.dtype)


def common_direction(
    loaded: LoadedModel, layer: ObservedLayer | None = None, strength: float = 3.0
) -> None:
    """Add one vector, ``strength`` × the mean length, to every representation (a drift)."""

    def rewrite(x: Tensor, layer: ObservedLayer) -> Tensor:
        return x + strength * _norm(x, layer).mean() * _direction(x, layer)

    rewrite_layer(loaded, layer or middle_block(loaded), rewrite)


def collapsed_rank(loaded: LoadedModel, layer: ObservedLayer | None = None) -> None:
    """Every representation keeps its length and takes the same direction: rank one."""

    def rewrite(x: Tensor, layer: ObservedLayer) -> Tensor:
        return _norm(x, layer) * _direction(x, layer)

    rewrite_layer(loaded, layer or last_block(loaded), rewrite)


def sequence_mean(loaded: LoadedModel, layer: ObservedLayer | None = None) -> None:
    """Every position becomes the mean over its sequence: collapse within the sequence."""

    def rewrite(x: Tensor, layer: ObservedLayer) -> Tensor:
        positions = (1,) if layer.kind == "tokens" else (2, 3)
        return x.mean(dim=positions, keepdim=True).expand_as(x)

    rewrite_layer(loaded, layer or last_block(loaded), rewrite)


def rogue_dimension(
    loaded: LoadedModel, layer: ObservedLayer | None = None, strength: float = 3.0
) -> None:
    """One dimension takes the value ``strength`` × the length of its representation."""

    def rewrite(x: Tensor, layer: ObservedLayer) -> Tensor:
        x = x.clone()
        axis = _dimensions(layer)[0]
        x.select(axis, 0).copy_(strength * _norm(x, layer).select(axis, 0))
        return x

    rewrite_layer(loaded, layer or middle_block(loaded), rewrite)


def not_a_number(loaded: LoadedModel, layer: ObservedLayer | None = None) -> None:
    """NaN in the first dimension of one sequence of every batch."""

    def rewrite(x: Tensor, layer: ObservedLayer) -> Tensor:
        x = x.clone()
        # Of all its positions: a single one may be padding, which never counts.
        x.select(_dimensions(layer)[0], 0)[0] = float("nan")
        return x

    rewrite_layer(loaded, layer or middle_block(loaded), rewrite)


class _Permuted:
    """The same inputs with their pixels, characters or samples in another, fixed order.

    Other data of the same shape and the same values.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def __iter__(self) -> Iterator[Sample]:
        import hashlib

        for sample in self._dataset:
            content, stored = _permuted(sample.content)
            digest = hashlib.sha256(sample.digest + stored).digest()
            yield replace(sample, content=content, digest=digest)

    def __len__(self) -> int:
        return len(self._dataset)

    @property
    def grouped(self) -> bool:
        return self._dataset.grouped

    def describe(self) -> Mapping[str, str | int | None]:
        return self._dataset.describe()


def _permuted(content: Content) -> tuple[Content, bytes]:
    """``content`` in an order that depends on its length only, and that order's bytes."""
    import numpy as np
    from PIL import Image

    from isotest.data.dataset import Waveform

    def order(length: int) -> NDArray[np.int64]:
        return np.random.default_rng(0).permutation(length)

    if isinstance(content, str):
        text = "".join(content[position] for position in order(len(content)))
        return text, text.encode()
    if isinstance(content, Waveform):
        samples = content.samples[order(len(content.samples))]
        return replace(content, samples=samples), samples.tobytes()
    pixels: NDArray[np.uint8] = np.asarray(content)
    mixed = pixels.reshape(-1, pixels.shape[2])[order(pixels.shape[0] * pixels.shape[1])]
    mixed = mixed.reshape(pixels.shape)
    return Image.fromarray(mixed), mixed.tobytes()


def _in_model(plant: Callable[[LoadedModel], None]) -> Alteration:
    def alteration(loaded: LoadedModel, dataset: Dataset) -> tuple[LoadedModel, Dataset]:
        plant(loaded)
        return loaded, dataset

    return alteration


def _permuted_data(loaded: LoadedModel, dataset: Dataset) -> tuple[LoadedModel, Dataset]:
    return loaded, _Permuted(dataset)


def _dropped_layer(loaded: LoadedModel, dataset: Dataset) -> tuple[LoadedModel, Dataset]:
    dropped = middle_block(loaded)
    layers = tuple(layer for layer in loaded.layers if layer is not dropped)
    return replace(loaded, layers=layers), dataset


FAULTS: tuple[Fault, ...] = (
    Fault("common direction", "a vector added after the middle block", _in_model(common_direction)),
    Fault("collapsed rank", "one direction after the last block", _in_model(collapsed_rank)),
    Fault("rogue dimension", "one dominant dimension, middle block", _in_model(rogue_dimension)),
    Fault("not a number", "NaN in one sequence after the middle block", _in_model(not_a_number)),
    Fault("permuted data", "pixels, characters or samples permuted", _permuted_data),
    Fault("dropped layer", "the middle block is not observed", _dropped_layer),
)
"""What ``isotest selftest`` plants, in order."""
