"""Which modules are observed: ``0`` embedding or stem, ``1`` … ``n`` blocks, ``final`` the norm.

Every choice is tried on one blank input before anything is measured: each module must run exactly
once and yield one representation per position or input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from isotest.errors import SourceError
from isotest.models.anatomy import Anatomy, anatomy, outline
from isotest.models.loaded import ObservedLayer
from isotest.models.probe import Seen, watch
from isotest.models.select import first, one_token
from isotest.source import did_you_mean

if TYPE_CHECKING:
    from torch import Tensor, nn

Layers = Sequence[str] | Mapping[str, str]
"""Module paths, which become layers ``0``, ``1``, …; or names to module paths."""

_PREFIX = frozenset(
    {"cls_token", "class_token", "distillation_token", "dist_token", "register_tokens", "reg_token"}
)


@dataclass(frozen=True)
class Observation:
    """The observed layers of a model and what counts as a representation in them by default."""

    layers: tuple[ObservedLayer, ...]
    representation: Literal["positions", "flattened"]


def observe(
    module: nn.Module,
    inputs: Mapping[str, Tensor],
    what: str,
    layers: Layers | None = None,
) -> Observation:
    """Find the layers of ``module``, or check those that were named.

    Args:
        module: the base model, in eval mode.
        inputs: keyword inputs of one blank sample.
        what: the source as text, for messages.
        layers: from the suite, instead of what is found.

    Returns:
        The layers in the order of the curve. ``"flattened"`` where blocks yield convolutional maps,
        ``"positions"`` where they yield tokens.

    Raises:
        SourceError: an unknown path, nothing recognisable, or a module that does not run exactly
            once or yields something other than a tensor of 2, 3 or 4 dimensions.
    """
    if layers is None:
        body = anatomy(module, inputs, what)
        paths = _named(body)
        prefix = _prefix_tokens(module, body.blocks)
    else:
        # The family still says how its maps are laid out and where its special tokens are.
        family = outline(module)
        prefix = _prefix_tokens(module, family.blocks)
        paths = _given(module, layers, what)
        body = replace(family, stem=None, blocks=tuple(paths.values()), final=None)
    seen = watch(module, inputs, what, tuple(dict.fromkeys(paths.values())))
    observed = tuple(
        _layer(name, path, seen[path], body, prefix, what) for name, path in paths.items()
    )
    maps = any(layer.kind == "map" for layer in observed if layer.path in body.blocks)
    return Observation(observed, "flattened" if maps and not body.positions else "positions")


def _named(body: Anatomy) -> dict[str, str]:
    named = {} if body.stem is None else {"0": body.stem}
    named |= {str(k): path for k, path in enumerate(body.blocks, start=1)}
    return named if body.final is None else {**named, "final": body.final}


def _given(module: nn.Module, layers: Layers, what: str) -> dict[str, str]:
    named = (
        {str(name): path for name, path in layers.items()}
        if isinstance(layers, Mapping)
        else {str(index): path for index, path in enumerate(layers)}
    )
    if not named:
        raise SourceError(f"source {what!r}: layers names no module; leave it out or name some")
    known = {path: child for path, child in module.named_modules() if path}
    for name, path in named.items():
        if path not in known:
            hint = did_you_mean(path, tuple(known))
            if "did you mean" not in hint:
                top = ", ".join(child for child, _ in module.named_children())
                hint = f"; its parts are {top}"
            raise SourceError(
                f"source {what!r}: layer {name!r}: {type(module).__name__} has no module "
                f"{path!r}{hint}"
            )
    return named


def _layer(
    name: str, path: str, seen: Seen, body: Anatomy, prefix: int, what: str
) -> ObservedLayer:
    where = f"source {what!r}: layer {name!r} (module {path})"
    remedy = "name the modules to observe with layers = [...] in the suite entry"
    if seen.calls != 1:
        raise SourceError(
            f"{where}: expected it to run once in a forward pass, it ran {seen.calls} times; "
            f"{remedy}"
        )
    dimensions = len(seen.shape or ())
    if dimensions == 4:
        return ObservedLayer(name, path, body.select, "map")
    if dimensions == 3:
        return ObservedLayer(name, path, first, "tokens", prefix)
    if dimensions == 2:
        return ObservedLayer(name, path, one_token, "tokens")
    raise SourceError(
        f"{where}: expected tokens (batch, length, width), a map (batch, channels, height, width) "
        f"or vectors (batch, width), found {seen.shape or 'no tensor'}; {remedy}"
    )


def _prefix_tokens(module: nn.Module, blocks: tuple[str, ...]) -> int:
    """How many CLS, distillation and register tokens lead the sequence.

    timm says; elsewhere they are the learnt tokens outside the blocks, (1, count, width) each.
    """
    said = getattr(module, "num_prefix_tokens", None)
    if isinstance(said, int):
        return said
    inside = tuple(f"{path}." for path in blocks)
    return sum(
        parameter.shape[-2] if parameter.dim() > 1 else 1
        for name, parameter in module.named_parameters()
        if name.rpartition(".")[2] in _PREFIX and not name.startswith(inside)
    )
