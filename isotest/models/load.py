"""A model source, built and made ready to be measured."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from isotest.errors import IsotestError, MissingError, SourceError, one_line
from isotest.models.evaluating import evaluating
from isotest.models.feed import placed
from isotest.models.feeds import FEEDS, FeedRequest, feed_of
from isotest.models.loaded import LoadedModel
from isotest.models.offline import offline
from isotest.models.reading import Reading
from isotest.models.registry import Built, Request, build
from isotest.source import MODEL_SCHEMES, Source, did_you_mean, parse_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import torch
    from torch import nn

    from isotest.models.layers import Layers
    from isotest.models.loaded import Feed, Inputs

_LIBRARIES = {
    "vision": ("torchvision",),
    "text": ("tokenizers",),
    "characters": ("tokenizers",),
    "speech": ("torchaudio",),
    "embeddings": ("numpy",),
}
DTYPES = ("float32", "float64", "bfloat16", "float16")


def load_model(
    source: Source | str,
    *,
    modality: str = "vision",
    reading: Reading | None = None,
    config: Mapping[str, object] | None = None,
    layers: Layers | None = None,
    preprocess: Mapping[str, object] | None = None,
    device: str = "cpu",
    dtype: str = "float32",
    download: bool = False,
    trust_remote_code: bool = False,
    base: Path | None = None,
    like: Source | str | None = None,
    like_base: Path | None = None,
) -> LoadedModel:
    """Load a model, find its layers, and make it ready to be measured.

    Args:
        source: where the model comes from, e.g. ``"init:vit?seed=0"``.
        modality: what it is fed: ``"vision"``, ``"text"``, ``"characters"`` or ``"speech"``.
        reading: how texts and recordings become sequences.
        config: overrides of the architecture's configuration.
        layers: modules to observe instead of those found: paths, which become ``0``, ``1``, …, or
            names to paths, below the base model.
        preprocess: ``size``, ``resize``, ``interpolation``, ``mean``, ``std``, ``channels`` instead
            of the model's own image preprocessing.
        device: where the model runs.
        dtype: what it runs in; ``weights`` digests what the source holds, whatever this is.
        download: whether the hub may be reached.
        trust_remote_code: whether code that comes with the weights may run.
        base: what relative paths in the source start from; the working directory by default.
        like: the source that this one stands in for. A bare state dict is loaded strictly into its
            architecture, ``config`` describes it, and its preprocessing is used.
        like_base: what relative paths in ``like`` start from; ``base`` by default.

    Raises:
        MissingError: weights, a package, a folder or a device are not here.
        SourceError: anything else that is wrong with what was given.
    """
    base = Path.cwd() if base is None else base
    request = Request(
        source=_parsed(source),
        config=dict(config or {}),
        base=base,
        download=download,
        trust_remote_code=trust_remote_code,
        like=None if like is None else _parsed(like),
        like_base=like_base or base,
    )
    what = str(request.source)
    if device != "cpu":
        _device(device)  # before a long load; not for the CPU, where it would only import torch
    with nullcontext() if download else offline():
        built = build(request)
        place, precision = _device(device), _dtype(dtype)
        module = _base_model(built.module).eval().requires_grad_(False)
        lender = _lender(built, request)
        feeding = FeedRequest(
            module=module,
            what=what,
            modality=known_modality(modality),
            folder=lender.folder,
            brought=lender.preprocess,
            overrides=preprocess,
            reading=reading or Reading(),
            # A tokenizer is named in the suite, like the source that is stood in for.
            base=base if like_base is None else like_base,
            download=download,
        )
        return _ready(module, built, feeding, layers, place, precision)


@contextmanager
def borrow_module(
    module: nn.Module,
    *,
    modality: str = "vision",
    reading: Reading | None = None,
    layers: Layers | None = None,
    preprocess: Mapping[str, object] | None = None,
    download: bool = False,
) -> Iterator[LoadedModel]:
    """Make a module of the caller's ready to be measured, and give it back as it was.

    It stays on its device and in its dtype. While it is borrowed it is in eval mode; afterwards
    every part of it is in the mode that it was in, as a training loop expects.

    Args:
        module: takes its inputs the way transformers' or timm's models do.
        modality: as for :func:`load_model`.
        reading: as for :func:`load_model`; it names a tokenizer where the module needs one.
        layers: as for :func:`load_model`.
        preprocess: as for :func:`load_model`.
        download: whether a tokenizer may be fetched from the hub.

    Raises:
        SourceError: it has no recognisable layers, or takes other inputs.
    """
    base = _base_model(module)
    parameter = next(base.parameters(), None)
    place = () if parameter is None else (parameter.device, parameter.dtype)
    request = FeedRequest(
        module=base,
        what=type(module).__name__,
        modality=known_modality(modality),
        overrides=preprocess,
        reading=reading or Reading(),
        base=Path.cwd(),
        download=download,
    )
    with evaluating(base):
        yield _ready(base, Built(module=base), request, layers, *place)


def build_placed(request: Request, *, device: str = "cpu", dtype: str = "float32") -> Built:
    """What a source yields, its base model in eval mode and in place: however it is fed.

    Raises:
        MissingError: weights, a package, a folder or a device are not here.
        SourceError: anything else that is wrong with what was given.
    """
    place, precision = _device(device), _dtype(dtype)
    with nullcontext() if request.download else offline():
        built = build(request)
    module = _base_model(built.module).eval().requires_grad_(False)
    return replace(built, module=_placed(module, str(request.source), place, precision))


def known_modality(modality: str) -> str:
    """``modality``, if there is a feed for it.

    Raises:
        SourceError: there is none.
    """
    if modality not in FEEDS:
        raise SourceError(f"unknown modality {modality!r}{did_you_mean(modality, FEEDS)}")
    return modality


def _ready(
    module: nn.Module,
    built: Built,
    request: FeedRequest,
    layers: Layers | None,
    device: torch.device | None = None,
    dtype: torch.dtype | None = None,
) -> LoadedModel:
    """What all sources share; ``request`` says how the model is fed."""
    from isotest.models.architecture import architecture, weights_fingerprint
    from isotest.models.layers import observe

    feed = feed_of(request)
    observation = observe(module, _blank(feed, module, request.what), request.what, layers)
    weights = weights_fingerprint(module)
    in_place = _placed(module, request.what, device, dtype)
    libraries = ("torch", *_LIBRARIES[request.modality], *built.libraries)
    return LoadedModel(
        module=in_place,
        layers=observation.layers,
        feed=feed,
        architecture=architecture(module),
        weights=weights,
        commit=built.commit,
        versions={name: version(name) for name in libraries},
        default_representation=observation.representation,
        made=observation.made,
    )


def _placed(
    module: nn.Module, what: str, device: torch.device | None, dtype: torch.dtype | None
) -> nn.Module:
    try:
        return module.to(device=device, dtype=dtype)
    except Exception as error:
        raise MissingError(
            f"source {what!r}: {device} cannot hold the model: {error}",
            "use --isotest-device cpu",
        ) from error


def _blank(feed: Feed, module: nn.Module, what: str) -> Inputs:
    """The inputs made of one blank sample, in the dtype that the model was built in."""
    try:
        return placed(feed.batch([feed.blank()]), module)
    except IsotestError:
        raise
    except Exception as error:
        raise SourceError(
            f"source {what!r}: its preprocessing fails on one blank input: {one_line(error)}"
        ) from error


def _parsed(source: Source | str) -> Source:
    return parse_source(source, MODEL_SCHEMES) if isinstance(source, str) else source


def _base_model(module: nn.Module) -> nn.Module:
    """The backbone of a transformers head model; any other module as it is."""
    base = getattr(module, "base_model", None)
    return base if hasattr(module, "base_model_prefix") and base is not None else module


def _lender(built: Built, request: Request) -> Built:
    """Whose preprocessing is used: a stand-in is fed what the entry it stands in for is fed."""
    if request.like is None:
        return built
    if request.like.scheme in ("init", "timm"):
        # These follow from the architecture, which has to be the same.
        return replace(built, folder=None, preprocess=None)
    return build(request.of_like())


def _dtype(name: str) -> torch.dtype:
    import torch

    if name not in DTYPES:
        raise SourceError(f"unknown dtype {name!r}{did_you_mean(name, DTYPES)}")
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def _device(name: str) -> torch.device:
    import torch

    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise SourceError(f"unknown device {name!r}: {str(error).splitlines()[0]}") from None
    count: dict[str, Callable[[], int]] = {
        "cuda": torch.cuda.device_count,
        "mps": lambda: int(torch.backends.mps.is_available()),
    }
    found = count.get(device.type, lambda: 1)()
    if device.type == "meta" or (device.index or 0) >= found:
        raise MissingError(
            f"device {name!r} was asked for, torch {torch.__version__} sees {found or 'none'} of "
            f"its kind here",
            "run on a machine that has it, or use --isotest-device cpu",
        )
    return device
