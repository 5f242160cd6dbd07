"""The one pass: a loaded model × a data set ─► a profile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal

from isotest.errors import MeasurementError
from isotest.observation import Observer, Representation, SpecialTokens
from isotest.profile import DECIDED, LayerProfile, Profile, Provenance

if TYPE_CHECKING:
    from torch import nn

    from isotest.data.dataset import Dataset, Sample
    from isotest.models.ablations.ablation import Ablation
    from isotest.models.loaded import LoadedModel, ObservedLayer
    from isotest.models.reading import DecoderInput, Packing
    from isotest.statistics.layer import LayerStatistics

Progress = Callable[[int], object]
"""Called after each batch with the number of samples that it held."""


def measure(
    model: str | nn.Module,
    data: str | Dataset | Iterable[object],
    *,
    modality: str = "vision",
    name: str = "model",
    samples: int | Literal["all"] = "all",
    seed: int = 0,
    representation: Representation | None = None,
    special_tokens: SpecialTokens = "exclude",
    tokenizer: str | None = None,
    packing: Packing = "windows",
    length: int = 128,
    decoder: DecoderInput | None = None,
    ablate: Ablation | str | Mapping[str, bool] | None = None,
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
    """Measure a model on images, texts or recordings, outside of any suite.

    Args:
        model: a source (``"init:vit?seed=0"``, ``"path:checkpoints/last"``) or a module, which
            stays where it is and is given back in the mode (train or eval) that it was in.
        data: a source (``"sample:photographs"``); or PIL images, texts, or recordings (pairs of
            samples and rate); or pairs of one of them and a group, whose members depend on each
            other.
        modality: ``"vision"``, ``"text"``, ``"characters"`` or ``"speech"``; ``"embeddings"`` for a
            stack of blocks that is fed vectors.
        name: what the model is called in the profile and in messages.
        samples: how many samples of a data source.
        seed: which of them.
        representation: ``"positions"`` or ``"flattened"``; by the architecture unless given.
        special_tokens: whether tokens count that a tokenizer or a model adds (CLS, registers).
        tokenizer: of a text model; its own by default (see
            :class:`isotest.models.reading.Reading`, also for the next three).
        packing: ``"windows"`` of exactly ``length`` units, or ``"documents"``.
        length: units of a text's sequence.
        decoder: what the decoder of an encoder-decoder model reads.
        ablate: parts that are switched off in every block while measuring, as for
            :meth:`isotest.models.ablations.Ablation.of`.
        metrics: names from the registry; by default all that cost next to nothing.
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
    from isotest.data.load import as_data, open_data
    from isotest.models.ablations.ablation import Ablation
    from isotest.models.load import borrow_module, load_model
    from isotest.models.reading import Reading

    dataset: Dataset
    if isinstance(data, str):
        dataset = open_data(data, modality=modality, samples=samples, seed=seed, download=download)
    elif isinstance(data, Dataset):
        dataset = data
    else:
        dataset = as_data(data, modality=modality)
    reading = Reading(tokenizer, packing, length, decoder)
    with ExitStack() as stack:
        if isinstance(model, str):
            loaded = load_model(
                model,
                modality=modality,
                reading=reading,
                config=config,
                layers=layers,
                preprocess=preprocess,
                device=device,
                dtype=dtype,
                download=download,
            )
        else:
            loaded = stack.enter_context(
                borrow_module(
                    model,
                    modality=modality,
                    reading=reading,
                    layers=layers,
                    preprocess=preprocess,
                    download=download,
                )
            )
        return measure_loaded(
            loaded,
            dataset,
            source=model if isinstance(model, str) else type(model).__name__,
            model=name,
            modality=modality,
            representation=representation,
            special_tokens=special_tokens,
            batch_size=batch_size,
            metrics=metrics,
            ablation=None if ablate is None else Ablation.of(ablate),
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
    ablation: Ablation | None = None,
    progress: Progress | None = None,
) -> Profile:
    """Measure every observed layer of ``loaded`` on all samples of ``dataset`` in one pass.

    Each layer's output is folded into its sums inside the forward hook, so no hidden state outlives
    its module's call; memory does not grow with the number of samples.

    Args:
        loaded: the model, its layers and its feed.
        dataset: samples in index order, each with its independent unit.
        source: the model source as text, for the provenance.
        model: the entry's name, for messages and the profile.
        suite: the suite's id; empty outside a suite.
        modality: of the data.
        representation: ``"positions"``: each token or map position is a representation;
            ``"flattened"``: one input, one representation; ``None``: by the architecture.
        special_tokens: whether prefix tokens (CLS, distillation, registers) count.
        batch_size: inputs per forward pass; the numbers do not depend on it.
        metrics: names from the registry; by default all that cost next to nothing.
        ablation: parts of the blocks that are switched off meanwhile; it stands in the protocol.
        progress: called after each batch.

    Raises:
        NonFiniteError: NaN or an infinity at a layer; names model, layer and batch.
        MeasurementError: the model fails on a batch, or a layer does not fire exactly once.
        SourceError: nothing is known of how to ablate the model.
    """
    from isotest.attention import AttentionOfLayers
    from isotest.data.dataset import fingerprint
    from isotest.models.batches import batches
    from isotest.statistics.layer import LayerStatistics
    from isotest.statistics.registry import default_metrics

    if representation is None:
        representation = loaded.default_representation
    names = default_metrics() if metrics is None else tuple(metrics)
    # Units are known only sample by sample, but whether there are any groups decides the memory
    # layout, so the data set says so up front.
    accumulators = {
        layer.name: LayerStatistics(names, grouped=dataset.grouped) for layer in loaded.layers
    }
    digests: dict[int, bytes] = {}

    def noted() -> Iterator[Sample]:
        for sample in dataset:
            digests[sample.index] = sample.digest
            yield sample

    attention = AttentionOfLayers(loaded, accumulators, model)
    observer = Observer(loaded, accumulators, representation, special_tokens, model, attention)
    done = 0
    with _ablated(loaded, ablation), observer.hooked() as run:
        pieces = loaded.feed.pieces(noted(), grouped=dataset.grouped)
        for batch in batches(pieces, batch_size, loaded.feed.together):
            run(batch)
            if progress is not None:
                progress(len(digests) - done)
            done = len(digests)
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
            protocol={
                **_protocol(loaded, dataset, representation, special_tokens),
                **({} if ablation is None else ablation.describe()),
            },
            data=fingerprint([digests[index] for index in sorted(digests)]),
            weights=loaded.weights,
            commit=loaded.commit,
            device=_device_of(loaded),
            versions={**loaded.versions, "isotest": version("isotest")},
            created=datetime.now(UTC).isoformat(timespec="microseconds"),
        ),
    )


def _layer_profile(layer: ObservedLayer, sums: LayerStatistics) -> LayerProfile:
    from isotest.attention import heads_of

    return LayerProfile(
        name=layer.name,
        module=layer.path,
        width=sums.width,
        representations=sums.representations,
        zero_length=sums.zero_length,
        block_representations=sums.block_representations,
        estimates=sums.estimates(),
        attention=heads_of(sums),
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
        **{f"preprocess.{key}": value for key, value in loaded.feed.describe().items()},
        "representation": representation,
        "special_tokens": special_tokens,
        "dtype": _dtype_of(loaded),
        **{
            f"{DECIDED}{layer.name}": True for layer in loaded.layers if layer.stream in loaded.made
        },
    }


def _ablated(loaded: LoadedModel, ablation: Ablation | None) -> AbstractContextManager[None]:
    if ablation is None:
        return nullcontext()
    from isotest.models.ablations.apply import ablated

    return ablated(loaded.module, ablation)


def _device_of(loaded: LoadedModel) -> str:
    return next((str(p.device.type) for p in loaded.module.parameters()), "cpu")


def _dtype_of(loaded: LoadedModel) -> str:
    return next((str(p.dtype).removeprefix("torch.") for p in loaded.module.parameters()), "none")
