"""The one pass: a loaded model × a data set ─► a profile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

from isotest.errors import IsotestError, MeasurementError, NonFiniteError, one_line
from isotest.profile import LayerProfile, Profile, Provenance

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor, nn

    from isotest.data.dataset import Dataset, Sample
    from isotest.models.loaded import LoadedModel, ObservedLayer
    from isotest.statistics.layer import LayerStatistics

Representation = Literal["positions", "flattened"]
SpecialTokens = Literal["include", "exclude"]
Progress = Callable[[int], object]
"""Called after each batch with the number of samples that it held."""


def measure(
    model: str | nn.Module,
    data: str | Dataset | Iterable[Image | tuple[Image, object]],
    *,
    name: str = "model",
    samples: int | Literal["all"] = "all",
    seed: int = 0,
    representation: Representation | None = None,
    special_tokens: SpecialTokens = "exclude",
    metrics: Sequence[str] | None = None,
    layers: Sequence[str] | Mapping[str, str] | None = None,
    preprocess: Mapping[str, object] | None = None,
    config: Mapping[str, object] | None = None,
    batch_size: int = 8,
    device: str = "cpu",
    dtype: str = "float32",
    download: bool = False,
    progress: Progress | None = None,
) -> Profile:
    """Measure a model on images, outside of any suite.

    Args:
        model: a source (``"init:vit?seed=0"``, ``"path:checkpoints/last"``) or a module, which
            stays where it is and is given back in the mode (train or eval) that it was in.
        data: a source (``"sample:photographs"``), PIL images, or pairs (image, group) where images
            of one group depend on each other.
        name: what the model is called in the profile and in messages.
        samples: how many samples of a data source.
        seed: which of them.
        representation: ``"positions"`` or ``"flattened"``; by the architecture unless given.
        special_tokens: whether prefix tokens (CLS, distillation, registers) count.
        metrics: names from the registry; all of them by default.
        layers: paths of the modules to observe; found by themselves where possible.
        preprocess: how images become input, instead of the model's own way.
        config: overrides of the configuration that a model source builds from.
        device: where a model source is put.
        dtype: what a model source runs in.
        download: whether sources may reach the hub.
        batch_size: inputs per forward pass; the numbers do not depend on it.
        progress: called after each batch with the number of samples that it held.

    Returns:
        One estimate with its error bar for every metric at every layer.

    Raises:
        IsotestError: the model, the data or an argument is at fault; the text says what to do.

    >>> profile = measure("sample:digits", "sample:digits?split=held-out", samples=20)
    >>> profile.layers[0].estimates["anisotropy"].se is not None
    True
    """
    from isotest.data.dataset import Dataset
    from isotest.data.load import images_as_data, open_data
    from isotest.models.load import borrow_module, load_model

    dataset: Dataset
    if isinstance(data, str):
        dataset = open_data(data, samples=samples, seed=seed, download=download)
    elif isinstance(data, Dataset):
        dataset = data
    else:
        dataset = images_as_data(data)
    with ExitStack() as stack:
        if isinstance(model, str):
            loaded = load_model(
                model,
                config=config,
                layers=layers,
                preprocess=preprocess,
                device=device,
                dtype=dtype,
                download=download,
            )
        else:
            loaded = stack.enter_context(borrow_module(model, layers=layers, preprocess=preprocess))
        return measure_loaded(
            loaded,
            dataset,
            source=model if isinstance(model, str) else type(model).__name__,
            model=name,
            representation=representation,
            special_tokens=special_tokens,
            batch_size=batch_size,
            metrics=metrics,
            progress=progress,
        )


def measure_loaded(
    loaded: LoadedModel,
    dataset: Dataset,
    *,
    source: str,
    model: str,
    suite: str = "",
    modality: str = "vision",
    representation: Representation | None = None,
    special_tokens: SpecialTokens = "exclude",
    batch_size: int = 8,
    metrics: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Profile:
    """Measure every observed layer of ``loaded`` on all samples of ``dataset`` in one pass.

    Each layer's output is folded into its sums inside the forward hook, so no hidden state outlives
    its module's call; memory does not grow with the number of samples.

    Args:
        loaded: the model, its layers and its preprocessing.
        dataset: samples in index order, each with its independent unit.
        source: the model source as text, for the provenance.
        model: the entry's name, for messages and the profile.
        suite: the suite's id; empty outside a suite.
        modality: of the data.
        representation: ``"positions"``: each token or map position is a representation;
            ``"flattened"``: one input, one representation; ``None``: by the architecture.
        special_tokens: whether prefix tokens (CLS, distillation, registers) count.
        batch_size: inputs per forward pass; the numbers do not depend on it.
        metrics: names from the registry; all of them by default.
        progress: called after each batch.

    Raises:
        NonFiniteError: NaN or an infinity at a layer; names model, layer and batch.
        MeasurementError: the model fails on a batch, or a layer does not fire exactly once.
    """
    from isotest.data.batches import batches
    from isotest.data.dataset import fingerprint
    from isotest.statistics.layer import LayerStatistics
    from isotest.statistics.registry import METRICS

    if representation is None:
        representation = loaded.default_representation
    names = tuple(METRICS) if metrics is None else tuple(metrics)
    # Units are known only sample by sample, but whether there are any groups decides the memory
    # layout, so the data set says so up front.
    accumulators = {
        layer.name: LayerStatistics(names, grouped=dataset.grouped) for layer in loaded.layers
    }
    digests: dict[int, bytes] = {}
    with _observed(loaded, accumulators, representation, special_tokens, model) as observe:
        for batch in batches(dataset, batch_size):
            observe(batch)
            digests.update((sample.index, sample.digest) for sample in batch)
            if progress is not None:
                progress(len(batch))
    if not digests:
        raise MeasurementError(f"model {model!r}: the data source yielded no samples")
    first = accumulators[loaded.layers[0].name]
    return Profile(
        suite=suite,
        model=model,
        modality=modality,
        sequences=first.sequences,
        units=first.units,
        block_sequences=first.block_sequences,
        layers=tuple(_layer_profile(layer, accumulators[layer.name]) for layer in loaded.layers),
        provenance=Provenance(
            source=source,
            architecture=dict(loaded.architecture),
            protocol=_protocol(loaded, dataset, representation, special_tokens),
            data=fingerprint([digests[index] for index in sorted(digests)]),
            weights=loaded.weights,
            commit=loaded.commit,
            device=_device_of(loaded),
            versions={**loaded.versions, "isotest": version("isotest")},
            created=datetime.now(UTC).isoformat(timespec="microseconds"),
        ),
    )


def _layer_profile(layer: ObservedLayer, sums: LayerStatistics) -> LayerProfile:
    return LayerProfile(
        name=layer.name,
        module=layer.path,
        width=sums.width,
        representations=sums.representations,
        zero_length=sums.zero_length,
        block_representations=sums.block_representations,
        estimates=sums.estimates(),
    )


def _protocol(
    loaded: LoadedModel,
    dataset: Dataset,
    representation: Representation,
    special_tokens: SpecialTokens,
) -> Mapping[str, str | int | float | bool | None]:
    """Everything beside weights and data that decides which numbers come out."""
    return {
        **{f"data.{key}": value for key, value in dataset.describe().items()},
        **{f"preprocess.{key}": value for key, value in loaded.preprocess.describe().items()},
        "representation": representation,
        "special_tokens": special_tokens,
        "dtype": _dtype_of(loaded),
    }


def _device_of(loaded: LoadedModel) -> str:
    return next((str(p.device.type) for p in loaded.module.parameters()), "cpu")


def _dtype_of(loaded: LoadedModel) -> str:
    return next((str(p.dtype).removeprefix("torch.") for p in loaded.module.parameters()), "none")


@contextmanager
def _observed(
    loaded: LoadedModel,
    accumulators: Mapping[str, LayerStatistics],
    representation: Representation,
    special_tokens: SpecialTokens,
    model: str,
) -> Iterator[Callable[[Sequence[Sample]], None]]:
    """Hooks on every observed layer; yields the function that runs one batch through the model."""
    import torch

    fired: dict[str, int] = {}
    own: list[Exception] = []
    current: dict[str, Any] = {}

    def hook_of(layer: ObservedLayer) -> Callable[[Any, Any, Any], None]:
        def hook(_module: Any, _inputs: Any, output: Any) -> None:
            try:
                fold(layer, output)
            except Exception as error:
                own.append(error)
                raise

        return hook

    def fold(layer: ObservedLayer, output: Any) -> None:
        fired[layer.name] = fired.get(layer.name, 0) + 1
        if fired[layer.name] > 1:
            raise MeasurementError(
                f"model {model!r}, layer {layer.name} ({layer.path}): its module ran twice in "
                "one forward pass, so its output is not one point of a curve; name the layers "
                "to observe with 'layers = [...]' in the suite entry"
            )
        x = _representations(layer, output, representation, special_tokens, model)
        if x.shape[0] != len(current["units"]):
            raise MeasurementError(
                f"model {model!r}, layer {layer.name} ({layer.path}): expected one row per "
                f"input ({len(current['units'])}), found shape {tuple(x.shape)}"
            )
        try:
            accumulators[layer.name].update(x, current["units"])
        except NonFiniteError as error:
            raise NonFiniteError(
                f"model {model!r}, layer {layer.name} ({layer.path}), batch "
                f"{current['batch']} ({current['origin']}): {error}; look at the inputs of "
                "this layer first: the earlier ones are finite"
            ) from None

    handles = [
        loaded.module.get_submodule(layer.path).register_forward_hook(hook_of(layer))
        for layer in loaded.layers
    ]
    batch_number = 0

    def observe(batch: Sequence[Sample]) -> None:
        nonlocal batch_number
        fired.clear()
        origin = f"{batch[0].origin} … {batch[-1].origin}" if len(batch) > 1 else batch[0].origin
        current.update(
            units=torch.tensor([sample.unit for sample in batch], dtype=torch.int64),
            batch=batch_number,
            origin=origin,
        )
        where = f"model {model!r}, batch {batch_number} ({origin})"
        try:
            inputs = loaded.preprocess([sample.content for sample in batch])
            parameter = next(loaded.module.parameters(), None)
            if parameter is not None:
                inputs = {key: _to(value, parameter) for key, value in inputs.items()}
            with torch.inference_mode():
                loaded.module(**inputs)
        except IsotestError:
            raise
        except Exception as error:
            if own:
                # A fault of isotest's, which must not be blamed on the model.
                raise
            raise MeasurementError(
                f"{where}: the forward pass failed: {one_line(error)}"
            ) from error
        silent = [layer for layer in loaded.layers if layer.name not in fired]
        if silent:
            names = ", ".join(f"{layer.name} ({layer.path})" for layer in silent)
            raise MeasurementError(
                f"{where}: these layers were expected to run and did not: {names}; name the layers "
                "to observe with 'layers = [...]' in the suite entry"
            )
        batch_number += 1

    try:
        yield observe
    finally:
        for handle in handles:
            handle.remove()


def _to(value: Tensor, parameter: Tensor) -> Tensor:
    """Onto the model's device; floating inputs into its dtype too."""
    dtype = parameter.dtype if value.is_floating_point() else value.dtype
    return value.to(device=parameter.device, dtype=dtype)


def _representations(
    layer: ObservedLayer,
    output: Any,
    representation: Representation,
    special_tokens: SpecialTokens,
    model: str,
) -> Tensor:
    """The layer's output as (batch, length, width): what counts as one representation."""
    import torch

    x = layer.select(output)
    expected = 3 if layer.kind == "tokens" else 4
    if not isinstance(x, torch.Tensor) or x.dim() != expected:
        found = tuple(x.shape) if isinstance(x, torch.Tensor) else type(x).__name__
        shape = "(batch, length, width)" if layer.kind == "tokens" else "(batch, channels, h, w)"
        raise MeasurementError(
            f"model {model!r}, layer {layer.name} ({layer.path}): expected a tensor {shape}, "
            f"found {found}; name the layers to observe with 'layers = [...]' in the suite entry"
        )
    if layer.kind == "tokens" and special_tokens == "exclude":
        x = x[:, layer.prefix :]
    if representation == "flattened":
        return x.flatten(1).unsqueeze(1)
    return x if layer.kind == "tokens" else x.flatten(2).transpose(1, 2)
