"""``path:FOLDER``, ``path:FILE.gguf`` or ``path:FILE.safetensors?architecture=TYPE``: local."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from isotest.errors import MissingError, SourceError, one_line
from isotest.models.checkpoint import faults, from_folder, from_state_dict
from isotest.models.configuration import default_configuration
from isotest.models.gguf import from_gguf
from isotest.models.registry import Built, Request
from isotest.models.registry import build as build_any

if TYPE_CHECKING:
    from torch import Tensor, nn


def build(request: Request) -> Built:
    """A ``save_pretrained`` folder, or a state dict in the architecture that was named for it.

    Raises:
        MissingError: there is nothing at the path, or no weights in the folder.
        SourceError: as in :func:`isotest.models.checkpoint.from_folder` and :func:`from_file`.
    """
    request.source.require_options({"architecture"})
    path = request.base / Path(request.source.location).expanduser()
    if path.is_dir():
        return from_folder(path, request)
    if not path.exists():
        raise MissingError(
            f"source {str(request.source)!r}: nothing at {path}",
            "expected a folder written by save_pretrained, a .safetensors or a .gguf file there",
        )
    return from_file(path, request)


def from_file(path: Path, request: Request) -> Built:
    """A GGUF file, or a bare state dict for a named architecture or that of ``request.like``.

    Raises:
        MissingError: as in :func:`isotest.models.gguf.from_gguf`.
        SourceError: no architecture, no safetensors or GGUF file, or weights that don't fit.
    """
    what = str(request.source)
    if path.suffix == ".gguf":
        return from_gguf(path, request)
    if path.suffix != ".safetensors":
        raise SourceError(
            f"source {what!r}: expected a folder or a .safetensors file, found {path.name}; "
            "pickled checkpoints (.bin, .pt, .ckpt) are not read, save the state dict with "
            "safetensors.torch.save_file"
        )
    architecture = request.source.options.get("architecture")
    if architecture is None and request.like is None:
        raise SourceError(
            f"source {what!r}: a bare state dict does not say its architecture; add "
            f"?architecture=MODEL_TYPE, as in {what}?architecture=vit, or give the folder that "
            "save_pretrained wrote"
        )
    state = read_state_dict(path, what)
    if architecture is not None:
        config = default_configuration(architecture, request.config, what)
        return Built(from_state_dict(config, state, what), libraries=("transformers",))
    assert request.like is not None
    skeleton = build_any(request.of_like())
    return replace(skeleton, module=_filled(skeleton.module, state, what), commit=None)


def read_state_dict(path: Path, what: str) -> dict[str, Tensor]:
    """The tensors of a safetensors file.

    Raises:
        SourceError: it is truncated, damaged or something else.
    """
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except Exception as error:
        raise SourceError(
            f"source {what!r}: expected a whole safetensors file, found that {path} cannot be "
            f"read: {one_line(error)}"
        ) from error


def _filled(module: nn.Module, state: dict[str, Tensor], what: str) -> nn.Module:
    from transformers import PreTrainedModel

    if isinstance(module, PreTrainedModel):
        return from_state_dict(module.config, state, what)
    expected = module.state_dict()
    # A timm model is built without its classifier, which lies behind the last observed layer.
    heads = classifier_names(module)
    state = {
        name: tensor
        for name, tensor in state.items()
        if name in expected or not any(name.startswith(f"{head}.") for head in heads)
    }
    faults(
        type(module).__name__,
        what,
        missing=expected.keys() - state.keys(),
        surplus=state.keys() - expected.keys(),
        wrong=[
            f"{name} {tuple(state[name].shape)} instead of {tuple(tensor.shape)}"
            for name, tensor in expected.items()
            if name in state and state[name].shape != tensor.shape
        ],
    )
    module.load_state_dict(state)
    return module


def classifier_names(module: nn.Module) -> tuple[str, ...]:
    """Where timm's description of a model says that its classifier sits; empty for others."""
    described = getattr(module, "pretrained_cfg", None) or {}
    names = described.get("classifier", ()) if isinstance(described, dict) else ()
    return (names,) if isinstance(names, str) else tuple(names or ())
