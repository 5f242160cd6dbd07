"""One forward pass of a block, watched for its attention, perhaps with projections changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from isotest.testing.recorder.origin import DEPENDS, BlockInput, Origin, adds, exponentiates, follow
from isotest.testing.recorder.products import (
    Traced,
    addresses,
    attention_of,
    fused,
    fused_attention,
    multiplied,
    normalised,
    scores_of,
    tokens_of,
)
from isotest.testing.recorder.recording import Attention, Projection, Recording

if TYPE_CHECKING:
    from torch import Tensor

    from isotest.testing.subject import Subject

Change = Callable[["Tensor"], "Tensor"]
"""From the output of a projection to what the block goes on with."""


def record(
    subject: Subject,
    x: Tensor,
    valid: Tensor | None = None,
    changes: Mapping[int, Change] | None = None,
) -> Recording:
    """Run a block and see what its attention computes.

    Torch hands every operation to the recorder, which runs it and follows where entries come from:
    attention is a product of two tensors that depend on the input, a softmax of it, and a product
    of that with a third. Fused attention is computed a second time from its arguments. Nothing is
    replaced, but torch's fast path of a whole encoder layer is switched off meanwhile.

    Args:
        subject: the block.
        x: (B, L, D); it is copied.
        valid: (B, L) bool, as :meth:`isotest.testing.subject.Subject.run` takes it.
        changes: for projections, by number, what becomes of their output.
    """
    x = x.clone()
    watch = _Watch(x, changes or {})
    with _no_fast_path(), watch:
        output = subject.run(x, valid)
    return Recording(output, tuple(watch.attentions))


@contextmanager
def _no_fast_path() -> Iterator[None]:
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


class _Watch(TorchDispatchMode):
    def __init__(self, x: Tensor, changes: Mapping[int, Change]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.attentions: list[Attention] = []
        self._changes = changes
        self._projections = 0
        self._origins: dict[object, Origin] = {}
        self._storages: set[int] = set()
        self._alive: list[Tensor] = []
        """So that no other tensor takes the place in memory of one that is known."""
        self._know(x, Origin(BlockInput(), addresses(x)))

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        del types
        kwargs = kwargs or {}
        with self:
            # Where a module runs in inference mode, operations come as they were written.
            parts = func.decompose(*args, **kwargs)
        if parts is not NotImplemented:
            return parts
        tensors = list(_tensors((*args, *kwargs.values())))
        origins = [self._origin(tensor) for tensor in tensors]
        if not any(origins):
            return func(*args, **kwargs)
        matrices = multiplied(func, args)
        given = fused(func, args, kwargs)
        if matrices is not None:
            left, right = (self._traced(args[at]) for at in matrices)
            return self._product(left, right, func(*args, **kwargs))
        if given is not None:
            query, key, values = (self._traced(given[name]) for name in ("query", "key", "value"))
            output = func(*args, **kwargs)
            self.attentions.append(fused_attention(query, key, values, given, output[0]))
            self._know_all(output, DEPENDS)
            return output
        origin = follow(func, args, kwargs, origins)
        if exponentiates(func) and origins[0] is not None:
            origin = normalised(tensors[0], origins[0])
        output = func(*args, **kwargs)
        if adds(func) and isinstance(origin.source, Projection) and None in origins:
            return self._project(output, origin.source.tokens, origin.source.gain)
        self._know_all(output, origin)
        return output

    def _product(self, left: Traced, right: Traced, output: Tensor) -> Tensor:
        if left.origin is None or right.origin is None:
            if left.origin is right.origin:
                # Only what is added depends on the input.
                self._know(output, DEPENDS)
                return output
            if left.origin is None:
                # The input is on the right: each of its columns is a token.
                return self._project(output, None, float(left.value.norm(dim=-1).max()))
            return self._project(output, tokens_of(left), float(right.value.norm(dim=-2).max()))
        attention = attention_of(left, right, output)
        if attention is None:
            self._know(output, scores_of(left, right, output))
        else:
            self.attentions.append(attention)
            self._know(output, DEPENDS)
        return output

    def _project(self, output: Tensor, tokens: Tensor | None, gain: float) -> Tensor:
        change = self._changes.get(self._projections)
        if change is not None:
            output.copy_(change(output))
        projection = Projection(self._projections, output.clone(), tokens, gain)
        self._projections += 1
        self._know(output, Origin(source=projection, address=addresses(output)))
        return output

    def _traced(self, tensor: Tensor) -> Traced:
        return Traced(tensor, self._origin(tensor))

    def _origin(self, tensor: Tensor) -> Origin | None:
        known = self._origins.get(_key(tensor))
        if known is None and tensor.untyped_storage()._cdata in self._storages:
            return DEPENDS
        return known

    def _know_all(self, output: Any, origin: Origin | list[Origin]) -> None:
        for at, tensor in enumerate(_tensors((output,))):
            self._know(tensor, origin[at] if isinstance(origin, list) else origin)

    def _know(self, tensor: Tensor, origin: Origin) -> None:
        if origin.address is not None and origin.address.shape != tensor.shape:
            try:
                expanded = origin.address.expand(tensor.shape)
            except RuntimeError:
                origin = DEPENDS
            else:
                origin = Origin(origin.source, expanded, origin.normalised)
        self._origins[_key(tensor)] = origin
        self._storages.add(tensor.untyped_storage()._cdata)
        self._alive.append(tensor)


def _key(tensor: Tensor) -> object:
    storage = tensor.untyped_storage()._cdata
    return storage, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype


def _tensors(values: Any) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)
