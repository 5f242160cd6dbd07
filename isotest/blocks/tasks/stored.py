"""Trained weights as a safetensors file: in float16, with how they were made beside them.

Weights are rounded to float16 before anything is measured, so that what is stored is what was
evaluated. In memory they are float32.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from isotest.atomic import write_atomically
from isotest.blocks.tasks.network import TaskNetwork
from isotest.blocks.tasks.task import TASKS
from isotest.errors import MissingError, SourceError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from torch import Tensor, nn

    from isotest.blocks.tasks.config import Design

_RETRAIN = "train it anew with 'python -m isotest.blocks.tasks'"


@dataclass(frozen=True)
class Stored:
    """What a file of weights holds.

    Attributes:
        tensors: name to float32 tensor, each entry a float16 number.
        metadata: name to what was said about it, as JSON can hold it: task, design, seed, …
    """

    tensors: Mapping[str, Tensor]
    metadata: Mapping[str, Any]


@torch.no_grad()
def rounded(module: nn.Module) -> None:
    """Round all parameters to float16, in place; they stay float32."""
    for parameter in module.parameters():
        parameter.copy_(parameter.to(torch.float16).to(parameter.dtype))


def save(file: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> None:
    """Write weights, rounded to float16; the file is whole or what it was.

    Args:
        file: ends in ``.safetensors``; its folder exists.
        tensors: name to tensor of numbers.
        metadata: name to what JSON can hold.

    Raises:
        SourceError: a tensor is not finite in float16, or the file cannot be written.
    """
    from safetensors.torch import save as serialised

    halves = {name: x.detach().to(torch.float16).contiguous() for name, x in tensors.items()}
    for name, half in halves.items():
        _require_finite(half, name, f"weights {file}")
    texts = {
        name: json.dumps(value, ensure_ascii=False, allow_nan=False)
        for name, value in metadata.items()
    }
    try:
        write_atomically(_ordered(serialised(halves, metadata=texts)), file)
    except OSError as error:
        raise SourceError(f"weights {file}: cannot be written ({error})") from error


def load(file: Path) -> Stored:
    """Read what :func:`save` wrote.

    Raises:
        MissingError: there is no file.
        SourceError: it is no safetensors file, cut short, of other numbers than float16, not
            finite, or its metadata are not what :func:`save` writes.
    """
    from safetensors import SafetensorError, safe_open

    where = f"weights {file}"
    if not file.is_file():
        raise MissingError(f"{where}: there is no such file", _RETRAIN)
    try:
        with safe_open(str(file), framework="pt") as opened:
            texts = opened.metadata() or {}
            halves = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise SourceError(
            f"{where}: expected a whole safetensors file, found one that cannot be read "
            f"({' '.join(str(error).split())}); {_RETRAIN}"
        ) from error
    for name, half in halves.items():
        if half.dtype != torch.float16:
            raise SourceError(
                f"{where}: expected {name} in float16, found "
                f"{str(half.dtype).removeprefix('torch.')}; {_RETRAIN}"
            )
        _require_finite(half, name, where)
    try:
        metadata = {name: json.loads(text) for name, text in texts.items()}
    except (ValueError, RecursionError) as error:
        raise SourceError(
            f"{where}: expected metadata in JSON, found others ({error}); {_RETRAIN}"
        ) from error
    return Stored({name: half.to(torch.float32) for name, half in halves.items()}, metadata)


def require_said(stored: Stored, expected: Mapping[str, Any], file: Path) -> None:
    """That a file says of itself what is expected: the right task, design, network.

    Raises:
        SourceError: it says something else, or nothing; names the first difference.
    """
    for name, value in expected.items():
        found = stored.metadata.get(name)
        if found != value:
            raise SourceError(
                f"weights {file}: expected {name} = {_short(value)}, found "
                f"{_short(found) if name in stored.metadata else 'nothing said of it'}; name "
                f"another file, or {_RETRAIN}"
            )


def fill(module: nn.Module, tensors: Mapping[str, Tensor], file: Path) -> None:
    """Give a module these weights, in place.

    Args:
        module: every parameter is set.
        tensors: of the same names and shapes.
        file: where they are from, for messages.

    Raises:
        SourceError: a parameter is missing, one is too many, or a shape differs; names it.
    """
    wanted = module.state_dict()
    for name, parameter in wanted.items():
        if name not in tensors:
            raise SourceError(f"weights {file}: expected {name}, found none; {_RETRAIN}")
        if tensors[name].shape != parameter.shape:
            raise SourceError(
                f"weights {file}: expected {name} of shape {tuple(parameter.shape)}, found "
                f"{tuple(tensors[name].shape)}; {_RETRAIN}"
            )
    unknown = sorted(set(tensors) - set(wanted))
    if unknown:
        raise SourceError(
            f"weights {file}: found {unknown[0]}, which the network has not; {_RETRAIN}"
        )
    module.load_state_dict(dict(tensors))


def load_network(file: Path, *, task: str, design: Design) -> TaskNetwork:
    """The trained network of a task, in eval mode.

    What it is made of comes from the task and not from the file, which only has to agree.

    Args:
        file: as ``python -m isotest.blocks.tasks`` writes it.
        task: a key of :data:`isotest.blocks.tasks.task.TASKS`.
        design: of its blocks.

    Raises:
        MissingError: there is no file.
        SourceError: it cannot be read, or is of something else.
    """
    stored = load(file)
    config = TASKS[task].network_config(design)
    require_said(stored, {"task": task, "design": design, "network": config.to_dict()}, file)
    network = TaskNetwork(config)
    fill(network, stored.tensors, file)
    return network.eval()


def _ordered(content: bytes) -> bytes:
    """A safetensors file with its metadata sorted by name: the library's order is one of chance.

    The same weights are the same bytes.
    """
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    header["__metadata__"] = dict(sorted(header.get("__metadata__", {}).items()))
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    # The numbers start at a multiple of 8 bytes.
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + content[end:]


def _require_finite(half: Tensor, name: str, where: str) -> None:
    if not bool(half.isfinite().all()):
        raise SourceError(
            f"{where}: expected finite numbers in {name}, found NaN or infinity in float16; "
            f"{_RETRAIN}"
        )


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return f"{text[:300]}{'…' if len(text) > 300 else ''}"
