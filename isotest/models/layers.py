"""Which modules are observed: ``0`` embedding or stem, ``1`` … ``n`` blocks, ``final`` the norm.

Every choice is tried on one blank input before anything is measured: each module must run exactly
once and yield one representation per position or input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from isotest.errors import SourceError
from isotest.models.anatomy import Anatomy, Place, Stack, anatomy, outline
from isotest.models.loaded import Inputs, ObservedLayer
from isotest.models.probe import Seen, watch
from isotest.models.select import one_token
from isotest.source import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor, nn

Layers = Sequence[str] | Mapping[str, str]
"""Module paths, which become layers ``0``, ``1``, …; or names to module paths."""

_PREFIX = frozenset(
    {"cls_token", "class_token", "distillation_token", "dist_token", "register_tokens", "reg_token"}
)


@dataclass(frozen=True)
class Observation:
    """The observed layers of a model and what counts as a representation in them by default.

    Attributes:
        layers: in the order of the curve.
        representation: by the kind of architecture.
        made: as in :attr:`isotest.models.loaded.LoadedModel.made`.
    """

    layers: tuple[ObservedLayer, ...]
    representation: Literal["positions", "flattened"]
    made: Mapping[str, tuple[str, Callable[[Any], Tensor]]]


def observe(
    module: nn.Module,
    inputs: Inputs,
    what: str,
    layers: Layers | None = None,
) -> Observation:
    """Find the layers of ``module``, or check those that were named.

    Args:
        module: the base model, in eval mode.
        inputs: of one blank sample.
        what: the source as text, for messages.
        layers: from the suite, instead of what is found.

    Returns:
        The layers in the order of the curve. ``"flattened"`` where blocks yield convolutional maps,
        ``"positions"`` where they yield tokens.

    Raises:
        SourceError: an unknown path, nothing recognisable, or a module that does not run as often
            as expected or yields something other than a tensor of 2, 3 or 4 dimensions.
    """
    if layers is None:
        body = anatomy(module, inputs.arguments, what)
        named = [item for stack in body.stacks for item in _named(stack)]
    else:
        # The family still says how its maps are laid out and where its special tokens are.
        body = outline(module)
        named = _given(module, layers, body, what)
    prefix = _prefix_tokens(module, body)
    places = dict.fromkeys((place.path, place.side) for _, place, _ in named)
    seen = watch(module, inputs.arguments, what, tuple(places))
    only = next(iter(inputs.positions)) if len(inputs.positions) == 1 else ""
    observed = tuple(
        _layer(name, place, seen[place.path, place.side], stack, only, prefix, what)
        for name, place, stack in named
    )
    for layer in observed:
        if layer.stream and layer.stream not in {*inputs.positions, *body.made}:
            raise SourceError(
                f"source {what!r}: layer {layer.name!r}: its positions are those of "
                f"{layer.stream!r}, and the inputs have only {', '.join(inputs.positions)}"
            )
    blocks = {place.path for stack in body.stacks for place in stack.blocks}
    maps = any(
        layer.kind == "map" for layer in observed if layers is not None or layer.path in blocks
    )
    flattened = maps and not body.positions
    return Observation(observed, "flattened" if flattened else "positions", body.made)


def _named(stack: Stack) -> list[tuple[str, Place, Stack]]:
    before = f"{stack.name}." if stack.name else ""
    stem = [] if stack.stem is None else [("0", stack.stem)]
    blocks = [(str(number), place) for number, place in enumerate(stack.blocks, start=1)]
    final = [] if stack.final is None else [("final", stack.final)]
    return [(before + name, place, stack) for name, place in (*stem, *blocks, *final)]


def _given(
    module: nn.Module, layers: Layers, body: Anatomy, what: str
) -> list[tuple[str, Place, Stack]]:
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
    return [(name, Place(path), _stack_of(path, body)) for name, path in named.items()]


def _stack_of(path: str, body: Anatomy) -> Stack:
    """The stack that a module belongs to: the one whose blocks share most of its path."""

    def shared(stack: Stack) -> int:
        parts = path.split(".")
        own = stack.blocks[0].path.split(".") if stack.blocks else []
        return next((n for n, (a, b) in enumerate(zip(parts, own, strict=False)) if a != b), 99)

    return max(body.stacks, key=shared)


def _layer(
    name: str, place: Place, seen: Seen, stack: Stack, only: str, prefix: int, what: str
) -> ObservedLayer:
    where = f"source {what!r}: layer {name!r} (module {place.path})"
    remedy = "name the modules to observe with layers = [...] in the suite entry"
    if seen.calls != place.calls:
        expected = "once" if place.calls == 1 else f"{place.calls} times"
        raise SourceError(
            f"{where}: expected it to run {expected} in a forward pass, it ran {seen.calls} times; "
            f"{remedy}"
        )
    dimensions = len(seen.shape or ())
    if dimensions not in (2, 3, 4):
        raise SourceError(
            f"{where}: expected tokens (batch, length, width), a map (batch, channels, height, "
            f"width) or vectors (batch, width), found {seen.shape or 'no tensor'}; {remedy}"
        )
    select = {2: one_token, 3: stack.tokens, 4: stack.maps}[dimensions]
    return ObservedLayer(
        name,
        place.path,
        select,
        "map" if dimensions == 4 else "tokens",
        prefix=prefix if dimensions == 3 else 0,
        stream=(stack.stream or only) if dimensions == 3 else "",
        side=place.side,
        call=place.call,
        calls=place.calls,
    )


def _prefix_tokens(module: nn.Module, body: Anatomy) -> int:
    """How many CLS, distillation and register tokens lead the sequence of an image.

    timm says; elsewhere they are the learnt tokens outside the blocks, (1, count, width) each.
    """
    said = getattr(module, "num_prefix_tokens", None)
    if isinstance(said, int):
        return said
    inside = tuple(f"{place.path}." for stack in body.stacks for place in stack.blocks)
    return sum(
        parameter.shape[-2] if parameter.dim() > 1 else 1
        for name, parameter in module.named_parameters()
        if name.rpartition(".")[2] in _PREFIX and not name.startswith(inside)
    )
