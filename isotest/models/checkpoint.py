"""Base models of transformers from a configuration, a folder or a state dict; nothing missing.

``from_pretrained`` draws whatever the checkpoint lacks at random and says so in a log line. Here
that is an error: a curve of random weights under a trained model's name would be a false green.
Two things may differ. Task heads are not part of the observed base model. The pooler sits behind
the last observed layer; it isn't built where the class lets us leave it out, and never demanded.
"""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from isotest.errors import IsotestError, MissingError, SourceError, one_line
from isotest.installed import leads_out
from isotest.models.configuration import folder_configuration, remote_code_error
from isotest.models.quiet import quiet
from isotest.models.registry import Built, Request
from isotest.models.seeding import seeded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from torch import Tensor, nn

WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
"""The names under which save_pretrained, now or earlier, writes weights."""

# Trained beside the backbone in some checkpoints, and read by no observed layer.
_UNOBSERVED = ("pooler", "mask_token")


def from_configuration(
    config: Any, what: str, *, trust_remote_code: bool = False, weights: bool = True
) -> nn.Module:
    """The base model of ``config`` with weights drawn from torch's generator as it stands.

    Without ``weights`` it is on the meta device: nothing is allocated and nothing is drawn.

    Raises:
        SourceError: transformers has no base model for it, or it cannot be built.
    """
    import torch
    import transformers

    auto: Any = transformers.AutoModel
    with quiet(), nullcontext() if weights else torch.device("meta"):
        try:
            module: nn.Module = auto.from_config(
                config,
                dtype=torch.float32,
                trust_remote_code=trust_remote_code,
                **_without_pooler(config),
            )
        except Exception as error:
            raise SourceError(
                f"source {what!r}: cannot build the model: {one_line(error)}"
            ) from error
    return module


def from_folder(folder: Path, request: Request, commit: str | None = None) -> Built:
    """The base model in a folder that ``save_pretrained`` wrote.

    Weights are read from safetensors where there are any, else from a torch file with
    ``weights_only=True``; never unpickled.

    Raises:
        MissingError: the folder holds no weights.
        SourceError: no or unusable ``config.json``; damaged, incomplete or surplus weights.
    """
    what = str(request.source)
    trust = request.trust_remote_code
    if "architecture" in request.source.options:
        raise SourceError(
            f"source {what!r}: architecture= is for a safetensors file; {folder} is a folder, "
            "which brings its own config.json"
        )
    # The configuration in the suite describes the entry; a stand-in brings its own.
    overrides = request.config if request.like is None else {}
    config = folder_configuration(folder, overrides, what, trust)
    if not request.weights:
        module = from_configuration(config, what, trust_remote_code=trust, weights=False)
        return Built(module, folder, commit=commit, libraries=("transformers",))
    remedy = (
        "fetch them with --isotest-download"
        if request.source.scheme == "hub"
        else "save the model there with save_pretrained"
    )
    if not any((folder / name).is_file() for name in WEIGHT_FILES):
        looked = ", ".join(WEIGHT_FILES[::2])
        raise MissingError(f"source {what!r}: no weights in {folder} (looked for {looked})", remedy)
    if absent := _absent_shards(folder, what):
        raise MissingError(
            f"source {what!r}: {len(absent)} of the weight files are not in {folder} "
            f"({_few(absent)})",
            remedy,
        )
    module = _load(config, what, folder=folder, trust_remote_code=trust)
    return Built(module, folder, commit=commit, libraries=("transformers",))


def from_state_dict(config: Any, state: Mapping[str, Tensor], what: str) -> nn.Module:
    """The base model of ``config`` with the weights in ``state``, which may be a head model's.

    Names may be those of this release of transformers or those that ``save_pretrained`` writes.

    Raises:
        SourceError: weights are missing, surplus or of another shape.
    """
    return _load(config, what, state=state)


def _load(
    config: Any,
    what: str,
    *,
    folder: Path | None = None,
    state: Mapping[str, Tensor] | None = None,
    trust_remote_code: bool = False,
) -> nn.Module:
    import torch
    from transformers import MODEL_MAPPING, AutoModel

    options: dict[str, Any] = {
        "config": config,
        "dtype": torch.float32,
        "output_loading_info": True,
        # Reported by name below; transformers' own error points at a report that it logged.
        "ignore_mismatched_sizes": True,
        **_without_pooler(config),
    }
    with quiet(), seeded(0):
        try:
            if folder is not None:
                module, info = AutoModel.from_pretrained(
                    folder,
                    local_files_only=True,
                    weights_only=True,
                    trust_remote_code=trust_remote_code,
                    **options,
                )
            else:
                cls = _first(MODEL_MAPPING[type(config)])
                module, info = cls.from_pretrained(None, state_dict=dict(state or {}), **options)
        except IsotestError:
            raise
        except Exception as error:
            if "trust_remote_code" in str(error):
                raise remote_code_error(what) from None
            where = f" in {folder}" if folder is not None else ""
            raise SourceError(
                f"source {what!r}: cannot read the weights{where}; expected safetensors, or a "
                f"torch file of plain tensors: {one_line(error)}"
            ) from error
    names = _stored_names(folder) if state is None and folder is not None else tuple(state or ())
    _require_complete(module, info, names, what)
    base: nn.Module = module
    return base


def _require_complete(
    module: Any, info: Mapping[str, Any], stored: Iterable[str], what: str
) -> None:
    """Every weight of the backbone was in the checkpoint, and every one there is in the model."""
    prefix = f"{module.base_model_prefix}."
    inside_head_model = module.base_model_prefix and any(n.startswith(prefix) for n in stored)
    missing = {name for name in info["missing_keys"] if not _unobserved(name)}
    surplus = {
        name
        for name in info["unexpected_keys"]
        if not _unobserved(name) and not (inside_head_model and not name.startswith(prefix))
    }
    wrong = {
        f"{name} {tuple(found)} instead of {tuple(expected)}"
        for name, found, expected in info["mismatched_keys"]
    }
    faults(type(module).__name__, what, missing=missing, surplus=surplus, wrong=wrong)


def faults(
    model: str, what: str, *, missing: Iterable[str], surplus: Iterable[str], wrong: Iterable[str]
) -> None:
    """Raise one error that names the first few of each fault; nothing where there is none.

    Raises:
        SourceError: any of the three is not empty.
    """
    parts = [
        f"{len(names)} {fault} ({_few(names)})"
        for fault, names in (
            ("missing", sorted(missing)),
            ("not part of it", sorted(surplus)),
            ("of another shape", sorted(wrong)),
        )
        if names
    ]
    if parts:
        raise SourceError(
            f"source {what!r}: the weights are not those of this {model}: {'; '.join(parts)}; "
            "nothing is filled with random values, so give the architecture (its configuration) "
            "that the weights were saved from"
        )


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _unobserved(name: str) -> bool:
    return any(part in _UNOBSERVED for part in name.split("."))


def _without_pooler(config: Any) -> dict[str, bool]:
    """The option that leaves the pooler out, for the classes that know it."""
    from transformers import MODEL_MAPPING

    cls = _first(MODEL_MAPPING.get(type(config), None))
    if cls is not None and "add_pooling_layer" in inspect.signature(cls.__init__).parameters:
        return {"add_pooling_layer": False}
    return {}


def _first(cls: Any) -> Any:
    return cls[0] if isinstance(cls, tuple | list) else cls


def _absent_shards(folder: Path, what: str) -> list[str]:
    """The files that an index of sharded weights names and that are not there.

    Raises:
        SourceError: one of them is not below the folder.
    """
    import json

    first = next(name for name in WEIGHT_FILES if (folder / name).is_file())
    if not first.endswith(".index.json"):
        return []
    try:
        shards = set(
            json.loads((folder / first).read_text(encoding="utf-8"))["weight_map"].values()
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []  # a damaged index is transformers' to refuse
    for name in sorted(map(str, shards)):
        if leads_out(name):
            raise SourceError(
                f"source {what!r}: {folder / first}: {name!r} leads out of the folder; name a file "
                "below it"
            )
    return sorted(str(name) for name in shards if not (folder / str(name)).is_file())


def _stored_names(folder: Path) -> tuple[str, ...]:
    """The names in a checkpoint's safetensors files; of a torch file none are read again."""
    import json

    from safetensors import safe_open

    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").is_file():
        with safe_open(folder / "model.safetensors", framework="pt") as file:
            return tuple(file.keys())
    if index.is_file():
        return tuple(json.loads(index.read_text(encoding="utf-8"))["weight_map"])
    import torch

    file = folder / "pytorch_model.bin"
    if file.is_file():
        return tuple(torch.load(file, map_location="meta", weights_only=True))
    return tuple(json.loads(file.with_suffix(".bin.index.json").read_text())["weight_map"])
