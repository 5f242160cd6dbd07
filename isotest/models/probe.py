"""One forward pass of one blank input: what runs, in which order, with which shapes.

A layer that is found by name alone may never run, run twice, or turn out not to be what its name
says. Looking once, before anything is measured, costs a forward pass of a single input.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from isotest.errors import IsotestError, SourceError, one_line
from isotest.models.normalisation import is_normalisation
from isotest.models.select import first

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from torch import Tensor, nn


@dataclass(frozen=True)
class Seen:
    """What one forward pass showed of a module.

    Attributes:
        calls: how often it ran.
        shape: of the first tensor in its output, or input; ``None`` where there is none.
    """

    calls: int = 0
    shape: tuple[int, ...] | None = None


def watch(
    module: nn.Module,
    inputs: Mapping[str, Tensor],
    what: str,
    paths: Collection[tuple[str, Literal["output", "input"]]],
) -> dict[tuple[str, str], Seen]:
    """How often each module runs in one forward pass, and the shape of what leaves or enters it.

    Raises:
        SourceError: the forward pass fails.
    """
    seen: dict[tuple[str, str], Seen] = {key: Seen() for key in paths}

    def note(key: tuple[str, str], value: Any) -> None:
        shape = getattr(first(value), "shape", None)
        seen[key] = Seen(seen[key].calls + 1, None if shape is None else tuple(shape))

    def after(key: tuple[str, str]) -> Callable[[Any, Any, Any], None]:
        return lambda _module, _args, output: note(key, output)

    def before(key: tuple[str, str]) -> Callable[[Any, Any, Any], None]:
        return lambda _module, args, kwargs: note(key, args or kwargs)

    handles: list[Any] = []
    for path, side in seen:
        part = module.get_submodule(path)
        if side == "input":
            hook = before((path, side))
            handles.append(part.register_forward_pre_hook(hook, with_kwargs=True))
        else:
            handles.append(part.register_forward_hook(after((path, side))))
    run(module, inputs, what, handles)
    return seen


def neighbours(
    module: nn.Module, inputs: Mapping[str, Tensor], what: str, blocks: Sequence[str]
) -> tuple[str | None, str | None]:
    """The module whose output enters the first block, and the norm that takes what the last yields.

    The first is the embedding output whatever the library calls it: of several modules that pass
    the same tensor on, the last one to finish. The second is a module of a class named ``…Norm…``
    that is fed exactly that; a norm of something else (a pooled map, a CLS token) is not the final
    normalisation of the curve.

    Returns:
        The two paths, ``None`` where there is none.

    Raises:
        SourceError: the forward pass fails, or the blocks do not follow each other: of no block
            does the output enter the next, so they are parts of layers and no layers.
    """
    start, end = blocks[0], blocks[-1]
    following = dict(pairwise(blocks))
    before: list[tuple[str, Any]] = []
    found: dict[str, str] = {}
    outputs: dict[str, Any] = {}
    state: dict[str, Any] = {"started": False, "last": None, "chained": False}

    def enter(path: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given = first(args) if args else first(kwargs)
        if path in outputs and _same(given, outputs.pop(path)):
            state["chained"] = True
        if path == start and not state["started"]:
            state["started"] = True
            for earlier, output in before:
                if _same(output, given):
                    found["stem"] = earlier
            before.clear()
        elif (
            "final" not in found
            and _same(given, state["last"])
            and _is_norm(module.get_submodule(path))
        ):
            found["final"] = path

    def leave(path: str, output: Any) -> None:
        if not state["started"]:
            before.append((path, first(output)))
        elif path == end:
            state["last"] = first(output)
        if path in following:
            outputs[following[path]] = first(output)

    def enter_of(path: str) -> Callable[[Any, Any, Any], None]:
        return lambda _module, args, kwargs: enter(path, args, kwargs)

    def leave_of(path: str) -> Callable[[Any, Any, Any], None]:
        return lambda _module, _inputs, output: leave(path, output)

    handles = []
    for path, child in module.named_modules():
        if path:
            handles.append(child.register_forward_pre_hook(enter_of(path), with_kwargs=True))
            handles.append(child.register_forward_hook(leave_of(path)))
    run(module, inputs, what, handles)
    if following and not state["chained"]:
        raise SourceError(
            f"source {what!r}: {start} … {end} of {type(module).__name__} look like its layers, "
            "but what leaves one does not enter the next, so they are parts of layers; name the "
            "modules to observe with layers = [...] in the suite entry"
        )
    return found.get("stem"), found.get("final")


def run(module: nn.Module, inputs: Mapping[str, Tensor], what: str, handles: list[Any]) -> None:
    """Run the module once and take the hooks off again.

    Raises:
        SourceError: the forward pass fails.
    """
    import torch

    try:
        with torch.inference_mode():
            module(**inputs)
    except IsotestError:
        raise
    except Exception as error:
        shapes = ", ".join(f"{key} {tuple(value.shape)}" for key, value in inputs.items())
        images = any(value.dim() == 4 for value in inputs.values())
        remedy = (
            "; 'preprocess' in the suite entry sets the size and the channels" if images else ""
        )
        raise SourceError(
            f"source {what!r}: {type(module).__name__} fails on one blank input ({shapes}): "
            f"{one_line(error)}{remedy}"
        ) from error
    finally:
        for handle in handles:
            handle.remove()


def _is_norm(module: nn.Module) -> bool:
    """By its class; a head that contains a norm ("NormMlpHead") is none."""
    holds = any(True for child in module.children() for _ in child.parameters())
    return is_normalisation(module) and not holds


def _same(a: Any, b: Any) -> bool:
    """The same memory in the same shape: an Identity or an idle Dropout passes its input on."""
    import torch

    return (
        isinstance(a, torch.Tensor)
        and isinstance(b, torch.Tensor)
        and a.data_ptr() == b.data_ptr()
        and a.shape == b.shape
    )
