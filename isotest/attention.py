"""Calls of attention folded into the statistics of the layers that they happen in."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from isotest.errors import MeasurementError, NonFiniteError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from isotest.attention_heads import AttentionHeads, AttentionKind
    from isotest.models.attention.call import AttentionCall, NotObservable
    from isotest.models.loaded import LoadedModel, ObservedLayer, Positions
    from isotest.statistics.attention.accumulator import CrossAttention, SelfAttention
    from isotest.statistics.attention.maps import Maps
    from isotest.statistics.layer import LayerStatistics


Kind = TypeVar("Kind", bound="SelfAttention | CrossAttention")


class AttentionOfLayers:
    """What an observer of attention sees, by layer.

    A call belongs to the layer whose module, a block or a stage, holds the attention module and
    runs; where a block runs several times, to the layer of that call.

    Args:
        loaded: the model and its layers.
        sums: by layer name.
        model: the entry's name, for messages.
    """

    def __init__(
        self, loaded: LoadedModel, sums: Mapping[str, LayerStatistics], model: str
    ) -> None:
        from isotest.models.attention.registry import observer_of
        from isotest.statistics.attention.accumulator import CrossAttention, SelfAttention

        self._loaded = loaded
        self._model = model
        self._self = _parts(sums, SelfAttention)
        self._cross = _parts(sums, CrossAttention)
        # Before any hook is on: to tell who observes a model, it may have to run once.
        self._observer = observer_of(loaded) if self._self or self._cross else None
        self._layers: dict[str, list[ObservedLayer]] = {}
        for layer in loaded.layers:
            if layer.side == "output":
                self._layers.setdefault(layer.path, []).append(layer)
        self._begun: dict[str, int] = {}
        self._units: NDArray[np.int64] | None = None
        self._positions: Mapping[str, Positions] = {}
        self._where = ""

    @contextmanager
    def hooked(self) -> Iterator[None]:
        """While the context is open, attention is seen; without a wanted metric, nothing is done.

        What cannot be seen is said in the statistics.

        Raises:
            NonFiniteError: a score, query or key that counts is NaN or infinite.
        """
        from isotest.models.attention.call import NotObservable

        observer = self._observer
        if observer is None:
            yield
            return
        if isinstance(observer, NotObservable):
            if not observer.absent:
                for part in (*self._self.values(), *self._cross.values()):
                    part.refuse(observer.reason)
            yield
            return
        with ExitStack() as stack:
            for path in self._layers:
                module = self._loaded.module.get_submodule(path)
                handle = module.register_forward_pre_hook(self._counter(path))
                stack.callback(handle.remove)
            stack.enter_context(observer.observed(self._loaded, self._receive))
            yield

    def begin(
        self, units: NDArray[np.int64], positions: Mapping[str, Positions], where: str
    ) -> None:
        """A forward pass begins.

        Args:
            units: (N,) of its sequences.
            positions: by stream, of its sequences; one may be added while the model runs.
            where: the batch and what is in it, for messages.
        """
        self._begun.clear()
        self._units, self._positions, self._where = units, positions, where

    def _counter(self, path: str) -> Callable[..., None]:
        def count(_module: Any, _args: Any) -> None:
            self._begun[path] = self._begun.get(path, 0) + 1

        return count

    def _receive(self, path: str, seen: AttentionCall | NotObservable) -> None:
        from isotest.models.attention.call import NotObservable

        layer, units = self._layer(path), self._units
        if layer is None or units is None:
            return
        if isinstance(seen, NotObservable):
            self._refuse(layer, f"{path}: {seen.reason}")
            return
        parts: Mapping[str, SelfAttention | CrossAttention]
        parts = self._cross if seen.cross else self._self
        if layer.name not in parts:
            return
        part = parts[layer.name]
        try:
            queries = self._queries(layer, seen)
        except MeasurementError as error:
            self._refuse(layer, f"{path}: {error}")
            return
        try:
            maps = maps_of_call(seen, part, len(units), queries=queries)
        except NonFiniteError as error:
            raise NonFiniteError(
                f"model {self._model!r}, layer {layer.name} ({path}), {self._where}: {error}; look "
                "at the inputs of this attention first"
            ) from None
        except MeasurementError as error:
            raise MeasurementError(
                f"model {self._model!r}, layer {layer.name} ({path}), {self._where}: attention "
                f"cannot be measured: {error}; leave out the attention metrics"
            ) from None
        part.observe(path, maps, units)

    def _refuse(self, layer: ObservedLayer, reason: str) -> None:
        for parts in (self._self, self._cross):
            if layer.name in parts:
                parts[layer.name].refuse(reason)

    def _layer(self, path: str) -> ObservedLayer | None:
        """The layer in which the module at ``path`` runs now; the innermost one."""
        holding = [outer for outer in self._layers if path == outer or path.startswith(f"{outer}.")]
        if not holding:
            return None
        outer = max(holding, key=len)
        call = self._begun.get(outer, 1) - 1
        return next((layer for layer in self._layers[outer] if layer.call == call), None)

    def _queries(self, layer: ObservedLayer, seen: AttentionCall) -> Tensor | None:
        """(B, Lq) which queries are no padding; ``None``: all."""
        if seen.queries is not None:
            return seen.queries
        positions = self._positions.get(layer.stream)
        if positions is None or bool(positions.valid.all()):
            return None
        shape = (seen.query.shape[0], seen.query.shape[2])
        if tuple(positions.valid.shape) == shape:
            return positions.valid
        if not layer.stream:
            # The mask of someone's own preprocessing is for layers of that length.
            return None
        raise MeasurementError(
            f"it has {shape[0]} × {shape[1]} queries, and the layer "
            f"{tuple(positions.valid.shape)} positions"
        )


def maps_of_call(
    call: AttentionCall,
    part: SelfAttention | CrossAttention,
    sequences: int,
    *,
    queries: Tensor | None,
    all_queries: bool = False,
) -> Maps:
    """What is measured of one call of attention, as far as the statistics that it goes into ask.

    Args:
        call: what was observed.
        part: where the result is to go.
        sequences: of the forward pass.
        queries: (B, Lq) bool, which count; ``None``: all.
        all_queries: whether scores of every query are looked at, not of a choice.

    Raises:
        NonFiniteError, MeasurementError: as of :func:`isotest.statistics.attention.maps.maps_of`.
    """
    from isotest.statistics.attention.maps import ROWS, maps_of

    return maps_of(
        call.query,
        call.key,
        scale=call.scale,
        bias=call.bias,
        allowed=call.allowed,
        queries=queries,
        softcap=call.softcap,
        sequences=sequences,
        rows=None if all_queries else ROWS,
        quantiles=part.wants_quantiles,
    )


def heads_of(sums: LayerStatistics) -> dict[AttentionKind, AttentionHeads]:
    """The heads of one layer by kind of attention, as far as any was wanted and observed."""
    from isotest.statistics.attention.accumulator import CrossAttention, SelfAttention

    own, cross = sums.part(SelfAttention), sums.part(CrossAttention)
    found: dict[AttentionKind, AttentionHeads | None] = {
        "self": None if own is None else own.heads(),
        "cross": None if cross is None else cross.heads(),
    }
    return {kind: heads for kind, heads in found.items() if heads is not None}


def _parts(sums: Mapping[str, LayerStatistics], kind: type[Kind]) -> dict[str, Kind]:
    parts = {name: of_layer.part(kind) for name, of_layer in sums.items()}
    return {name: part for name, part in parts.items() if part is not None}
