"""Hooks that fold the outputs of observed modules into sums while a model runs."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Literal

from isotest.errors import IsotestError, MeasurementError, NonFiniteError, one_line
from isotest.models.feed import placed
from isotest.models.loaded import Positions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from torch import Tensor

    from isotest.attention import AttentionOfLayers
    from isotest.models.loaded import LoadedModel, ObservedLayer, Piece
    from isotest.statistics.layer import LayerStatistics

Representation = Literal["positions", "flattened"]
SpecialTokens = Literal["include", "exclude"]

_NAME_LAYERS = "name the layers to observe with 'layers = [...]' in the suite entry"


class Observer:
    """Runs batches through a model and folds every observed layer into its sums.

    Args:
        loaded: the model, its layers and its feed.
        sums: by layer name.
        representation: what counts as one representation.
        special_tokens: whether special positions count.
        model: the entry's name, for messages.
        attention: where attention is wanted, too.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        sums: Mapping[str, LayerStatistics],
        representation: Representation,
        special_tokens: SpecialTokens,
        model: str,
        attention: AttentionOfLayers | None = None,
    ) -> None:
        self._loaded = loaded
        self._sums = sums
        self._representation = representation
        self._special_tokens = special_tokens
        self._model = model
        self._calls: dict[tuple[str, str], int] = {}
        self._own: list[Exception] = []
        self._positions: dict[str, Positions] = {}
        self._units: Any = None
        self._origins: list[str] = []
        self._batch = 0
        self._origin = ""
        self._attention = attention

    @contextmanager
    def hooked(self) -> Iterator[Callable[[Sequence[Piece]], None]]:
        """Put the hooks on; yields the function that runs one batch; takes them off again."""
        handles = [self._hook_mask(stream) for stream in self._loaded.made]
        places: dict[tuple[str, Literal["output", "input"]], list[ObservedLayer]] = {}
        for layer in self._loaded.layers:
            places.setdefault((layer.path, layer.side), []).append(layer)
        handles += [self._hook(path, side, layers) for (path, side), layers in places.items()]
        try:
            with nullcontext() if self._attention is None else self._attention.hooked():
                yield self._run
        finally:
            for handle in handles:
                handle.remove()

    def _hook(
        self, path: str, side: Literal["output", "input"], layers: Sequence[ObservedLayer]
    ) -> Any:
        expected = layers[0].calls

        def observed(value: Any) -> None:
            call = self._calls.get((path, side), 0)
            self._calls[path, side] = call + 1
            try:
                if call >= expected:
                    raise MeasurementError(
                        f"{self._where(layers[0])}: its module ran more often than expected "
                        f"({expected}) in one forward pass, so its output is not one point of a "
                        f"curve; {_NAME_LAYERS}"
                    )
                for layer in layers:
                    if layer.call == call:
                        self._fold(layer, value)
            except Exception as error:
                self._own.append(error)
                raise

        module = self._loaded.module.get_submodule(path)
        if side == "input":
            return module.register_forward_pre_hook(
                lambda _module, args, kwargs: observed(args or kwargs), with_kwargs=True
            )
        return module.register_forward_hook(lambda _module, _args, output: observed(output))

    def _hook_mask(self, stream: str) -> Any:
        path, select = self._loaded.made[stream]

        def hook(_module: Any, _args: Any, output: Any) -> None:
            import torch

            valid = select(output).bool()
            self._positions[stream] = Positions(valid, torch.zeros_like(valid))

        return self._loaded.module.get_submodule(path).register_forward_hook(hook)

    def _run(self, pieces: Sequence[Piece]) -> None:
        import torch

        self._calls.clear()
        self._origins = [piece.origin for piece in pieces]
        self._origin = " … ".join(dict.fromkeys((self._origins[0], self._origins[-1])))
        self._units = torch.tensor([piece.unit for piece in pieces], dtype=torch.int64)
        where = f"model {self._model!r}, batch {self._batch} ({self._origin})"
        try:
            inputs = placed(self._loaded.feed.batch(pieces), self._loaded.module)
            self._positions = dict(inputs.positions)
            if self._attention is not None:
                batch = f"batch {self._batch} ({self._origin})"
                self._attention.begin(self._units.numpy(), self._positions, batch)
            with torch.inference_mode():
                self._loaded.module(**inputs.arguments)
        except IsotestError:
            raise
        except Exception as error:
            if self._own:
                # A fault of isotest's, which must not be blamed on the model.
                raise
            raise MeasurementError(
                f"{where}: the forward pass failed: {one_line(error)}"
            ) from error
        if self._own:
            # The model went on as if nothing had been.
            raise self._own[0]
        silent = [
            layer
            for layer in self._loaded.layers
            if self._calls.get((layer.path, layer.side), 0) != layer.calls
        ]
        if silent:
            names = ", ".join(
                f"{layer.name} ({layer.path}, {self._calls.get((layer.path, layer.side), 0)} of "
                f"{layer.calls} times)"
                for layer in silent
            )
            raise MeasurementError(
                f"{where}: these layers did not run as often as expected: {names}; {_NAME_LAYERS}"
            )
        self._batch += 1

    def _fold(self, layer: ObservedLayer, value: Any) -> None:
        x = self._tensor(layer, value)
        if x.shape[0] != len(self._units):
            raise MeasurementError(
                f"{self._where(layer)}: expected one row per input ({len(self._units)}), found "
                f"shape {tuple(x.shape)}"
            )
        mask = self._mask(layer, x) if layer.kind == "tokens" else None
        if layer.kind == "tokens" and self._special_tokens == "exclude":
            x = x[:, layer.prefix :]
            mask = None if mask is None else mask[:, layer.prefix :]
        self._require_some(layer, x, mask)
        if self._representation == "flattened":
            if mask is not None:
                raise MeasurementError(
                    f"{self._where(layer)}: flattened representations need inputs without padding "
                    "or special tokens; use representation = 'positions'"
                )
            x = x.flatten(1).unsqueeze(1)
        elif layer.kind == "map":
            x = x.flatten(2).transpose(1, 2)
        try:
            self._sums[layer.name].update(x, self._units, mask)
        except NonFiniteError as error:
            dtype = str(x.dtype).removeprefix("torch.")
            # Half precision overflows, and libraries write masks that do so in float64.
            hint = "" if dtype == "float32" else f"; this is {dtype}: see whether float32 has it"
            raise NonFiniteError(
                f"{self._where(layer)}, batch {self._batch} ({self._origin}): {error}; look at the "
                f"inputs of this layer first: the earlier ones are finite{hint}"
            ) from None

    def _require_some(self, layer: ObservedLayer, x: Tensor, mask: Tensor | None) -> None:
        """Refuse a sequence that would vanish from a layer because nothing of it counts there."""
        import torch

        some = torch.full((len(x),), x.shape[1] > 0) if mask is None else mask.any(1)
        if bool(some.all()):
            return
        origin = self._origins[int((~some).nonzero()[0])]
        excluded = self._special_tokens == "exclude"
        what = "padding or special" if excluded else "padding"
        remedy = ", or use special_tokens = 'include'" if excluded else ""
        raise MeasurementError(
            f"{self._where(layer)}, batch {self._batch}: expected something of each input to "
            f"measure, found that all positions of {origin} are {what} there; leave out inputs "
            f"this short{remedy}"
        )

    def _tensor(self, layer: ObservedLayer, value: Any) -> Tensor:
        """The layer's tensor: (batch, length, width), or (batch, channels, height, width)."""
        import torch

        x = layer.select(value)
        expected = 3 if layer.kind == "tokens" else 4
        if not isinstance(x, torch.Tensor) or x.dim() != expected:
            found = tuple(x.shape) if isinstance(x, torch.Tensor) else type(x).__name__
            shape = "(batch, length, width)" if expected == 3 else "(batch, channels, h, w)"
            raise MeasurementError(
                f"{self._where(layer)}: expected a tensor {shape}, found {found}; {_NAME_LAYERS}"
            )
        return x

    def _mask(self, layer: ObservedLayer, x: Tensor) -> Tensor | None:
        """Which positions count, (batch, length); ``None``: all of them."""
        positions = self._positions.get(layer.stream)
        if positions is None:
            if layer.stream:
                raise MeasurementError(
                    f"{self._where(layer)}: nothing says which of its positions ({layer.stream}) "
                    "are padding"
                )
            return None
        mask = positions.valid
        if self._special_tokens == "exclude":
            mask = mask & ~positions.special
        masked = not bool(mask.all())
        if mask.shape == x.shape[:2]:
            return mask if masked else None
        if not layer.stream and (x.shape[1] == 1 or not masked):
            # The mask that someone's own preprocessing brings is for layers of that length: one
            # vector for an input is no padding, and without padding there is none at any length.
            return None
        raise MeasurementError(
            f"{self._where(layer)}: expected {mask.shape[1]} positions, as in the mask of its "
            f"inputs, found {x.shape[1]}; {_NAME_LAYERS}"
        )

    def _where(self, layer: ObservedLayer) -> str:
        return f"model {self._model!r}, layer {layer.name} ({layer.path})"
