"""An entry of a suite, measured: source and data opened, the cache asked first."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Literal

from isotest.data.identity import data_identity
from isotest.errors import IsotestError
from isotest.gate.checks import BlockPropertiesCheck, Check, CollapseBoundCheck, FiniteCheck
from isotest.models.ablations.ablation import Ablation
from isotest.models.foreign_code import foreign_class
from isotest.models.identity import model_identity, tokenizer_identity
from isotest.models.reading import Reading
from isotest.source import DATA_SCHEMES, MODEL_SCHEMES, parse_source
from isotest.statistics.registry import METRICS
from isotest.suite.experiments import EXPERIMENTS, TASKS, experiment_of
from isotest.wanted import wanted_metrics

if TYPE_CHECKING:
    from pathlib import Path

    from isotest.blocks.drift.entry import DriftEntry
    from isotest.cache import ProfileCache
    from isotest.data.dataset import Dataset
    from isotest.measurement import Progress
    from isotest.models.loaded import LoadedModel
    from isotest.profile import Profile
    from isotest.suite import ModelSpec, Suite
    from isotest.suite.spec import MeasureSpec

ProgressFactory = Callable[[str, int], "Progress"]
"""Called with what is measured and how many samples there are, when measuring starts."""


@dataclass(frozen=True)
class Settings:
    """What a run may set on top of its suites.

    Attributes:
        device: torch device.
        dtype, samples, batch_size, metrics: instead of the suite's, if given.
        download: whether sources may reach the hub.
        trust_remote_code: whether hub models may run their own code.
    """

    device: str = "cpu"
    dtype: str | None = None
    samples: int | Literal["all"] | None = None
    batch_size: int | None = None
    metrics: Literal["default", "all"] | None = None
    download: bool = False
    trust_remote_code: bool = False


@dataclass(frozen=True)
class StandIn:
    """A source measured in an entry's place; relative paths in it start at ``base``."""

    source: str
    base: Path


@dataclass(frozen=True)
class Measurement:
    """A measured entry.

    Attributes:
        profile: what was measured.
        cached: whether it came from the cache.
        seconds: how long getting it took.
        file: where the cache keeps it, for ``isotest diff``; ``None`` where nothing is kept.
    """

    profile: Profile
    cached: bool
    seconds: float
    file: Path | None


def measure_entry(
    suite: Suite,
    spec: ModelSpec,
    settings: Settings,
    *,
    stand_in: StandIn | None = None,
    cache: ProfileCache | None = None,
    progress: ProgressFactory | None = None,
) -> Measurement:
    """Measure one entry of a suite, or take its profile from the cache.

    Args:
        suite: the suite that the entry belongs to.
        spec: the entry.
        settings: the run's own settings.
        stand_in: measured in the entry's place, under the entry's protocol.
        cache: asked first and filled; ``None`` always measures.
        progress: makes the progress display, once the number of samples is known.

    Raises:
        MissingError: weights, data, a package or a device are not here.
        IsotestError: the source, the data or the model is at fault.
    """
    started = time.perf_counter()
    key = None
    if cache is not None:
        key = _cache_key(suite, spec, settings, stand_in, cache)
        if key is not None and (found := cache.get(key)) is not None:
            # The same numbers may have been measured for an entry of another name.
            profile = replace(found, suite=suite.id, model=spec.name)
            return Measurement(profile, True, time.perf_counter() - started, cache.path_of(key))
    module = None
    if suite.modality == TASKS:
        profile = _measure_task(suite, spec, settings, stand_in, progress)
    elif suite.drift is not None:
        drift = _drift_entry(suite, spec, settings, stand_in)
        profile = drift.measure(None if progress is None else progress(spec.name, drift.passes))
        module = drift.first.module
    else:
        opened = open_entry(suite, spec, settings, stand_in=stand_in)
        profile = opened.measure(progress)
        module = opened.loaded.module
    file = None
    if key is not None and cache is not None and (module is None or foreign_class(module) is None):
        file = cache.put(key, profile)
    return Measurement(profile, False, time.perf_counter() - started, file)


@dataclass(frozen=True)
class OpenEntry:
    """An entry whose model is loaded and whose data are open, to be measured as often as wanted.

    Attributes:
        suite, spec, settings: what it is an entry of, itself, and the run's own settings.
        source: what was loaded: the entry's source, or that of what stands in for it.
        loaded: the model.
        dataset: the data.
    """

    suite: Suite
    spec: ModelSpec
    settings: Settings
    source: str
    loaded: LoadedModel
    dataset: Dataset

    @property
    def checks(self) -> Mapping[str, Check]:
        """All its checks: the suite's, its own, and the one that is part of every entry."""
        return {"finite": FiniteCheck(), **self.suite.checks_of(self.spec)}

    def measure(self, progress: ProgressFactory | None = None) -> Profile:
        """Measure it under the suite's protocol; what is asked for and what its checks need.

        Raises:
            IsotestError: the model or its data misbehave.
        """
        from isotest.measurement import measure_loaded

        measure = self.suite.measure_of(self.spec)
        profile = measure_loaded(
            self.loaded,
            self.dataset,
            source=self.source,
            model=self.spec.name,
            suite=self.suite.id,
            modality=self.suite.modality,
            representation=measure.representation,
            special_tokens=measure.special_tokens,
            batch_size=self.settings.batch_size or measure.batch_size,
            metrics=_metrics(self.suite, self.spec, self.settings),
            ablation=_ablation(self.spec),
            progress=None if progress is None else progress(self.spec.name, len(self.dataset)),
        )
        if not _bounded(self.suite, self.spec):
            return profile
        from isotest.blocks.bound_entry import bounds_of

        return replace(profile, bounds=bounds_of(self.loaded, self.dataset, self.spec.name))


def open_entry(
    suite: Suite, spec: ModelSpec, settings: Settings, *, stand_in: StandIn | None = None
) -> OpenEntry:
    """Load the model of an entry and open its data; arguments as of :func:`measure_entry`.

    Raises:
        MissingError: weights, data, a package or a device are not here.
        IsotestError: the source or the data is at fault, or the suite is an experiment on blocks.
    """
    if (experiment := experiment_of(suite)) is not None:
        feeds = "one block random vectors" if experiment == "drift" else "networks their own task"
        raise IsotestError(
            f"{suite.path}: faults are planted in models that are fed samples; a suite with a "
            f"table [{experiment}] feeds {feeds}"
        )
    from isotest.data.load import open_data
    from isotest.models.load import load_model

    measure = suite.measure_of(spec)
    source = spec.source if stand_in is None else stand_in.source
    dataset = open_data(
        suite.data.source,
        modality=suite.modality,
        samples=suite.data.samples if settings.samples is None else settings.samples,
        seed=suite.data.seed,
        download=settings.download,
        base=suite.path.parent,
    )
    loaded = load_model(
        source,
        modality=suite.modality,
        reading=_reading(measure),
        like=None if stand_in is None else spec.source,
        like_base=suite.path.parent,
        config=spec.config,
        layers=spec.layers,
        preprocess=spec.preprocess,
        device=settings.device,
        dtype=settings.dtype or measure.dtype,
        download=settings.download,
        trust_remote_code=settings.trust_remote_code,
        base=suite.path.parent if stand_in is None else stand_in.base,
    )
    return OpenEntry(suite, spec, settings, source, loaded, dataset)


def _drift_entry(
    suite: Suite, spec: ModelSpec, settings: Settings, stand_in: StandIn | None
) -> DriftEntry:
    from isotest.blocks.drift.entry import DriftEntry

    measure = suite.measure_of(spec)
    samples = suite.data.samples if settings.samples is None else settings.samples
    if samples == "all":
        raise IsotestError(
            f"{suite.path}: embeddings are drawn, as many as are asked for: say how many sequences"
        )
    return DriftEntry(
        suite=suite,
        spec=spec,
        source=spec.source if stand_in is None else stand_in.source,
        base=suite.path.parent if stand_in is None else stand_in.base,
        like=None if stand_in is None else spec.source,
        samples=samples,
        metrics=_metrics(suite, spec, settings),
        batch_size=settings.batch_size or measure.batch_size,
        device=settings.device,
        dtype=settings.dtype or measure.dtype,
        download=settings.download,
        trust_remote_code=settings.trust_remote_code,
    )


def _measure_task(
    suite: Suite,
    spec: ModelSpec,
    settings: Settings,
    stand_in: StandIn | None,
    progress: ProgressFactory | None,
) -> Profile:
    from isotest.blocks.tasks.entry import TasksEntry

    if settings.dtype is not None:
        raise IsotestError(
            f"{suite.path}: paths are computed in float32 and recurrent steps in float64: leave "
            f"out the choice of {settings.dtype}, or run this suite by itself"
        )
    entry = TasksEntry(
        suite=suite,
        spec=spec,
        source=spec.source if stand_in is None else stand_in.source,
        base=suite.path.parent if stand_in is None else stand_in.base,
        samples=suite.data.samples if settings.samples is None else settings.samples,
        metrics=_metrics(suite, spec, settings),
    )
    return entry.measure(None if progress is None else progress(spec.name, entry.passes))


def _metrics(suite: Suite, spec: ModelSpec, settings: Settings) -> tuple[str, ...]:
    choice = settings.metrics or suite.measure_of(spec).metrics
    return wanted_metrics(choice, suite.checks_of(spec), experiment=experiment_of(suite))


def _tried_for(suite: Suite, spec: ModelSpec) -> list[object]:
    """What decides which properties a block is tried for, and how."""
    return [
        check.model_dump(mode="json")
        for check in suite.checks_of(spec).values()
        if isinstance(check, BlockPropertiesCheck)
    ]


def _bounded(suite: Suite, spec: ModelSpec) -> bool:
    """Whether a check asks for the bound of rank collapse."""
    checks = suite.checks_of(spec).values()
    return any(isinstance(check, CollapseBoundCheck) for check in checks)


def _ablation(spec: ModelSpec) -> Ablation | None:
    return None if spec.ablate is None else Ablation.of(spec.ablate)


def _reading(measure: MeasureSpec) -> Reading:
    return Reading(measure.tokenizer, measure.packing, measure.length, measure.decoder)


def _cache_key(
    suite: Suite,
    spec: ModelSpec,
    settings: Settings,
    stand_in: StandIn | None,
    cache: ProfileCache,
) -> str | None:
    """The content key of the measurement; ``None`` where arbitrary code decides the numbers."""
    source = spec.source if stand_in is None else stand_in.source
    weights = model_identity(
        parse_source(source, MODEL_SCHEMES),
        config=spec.config,
        base=suite.path.parent if stand_in is None else stand_in.base,
        download=settings.download,
        trust_remote_code=settings.trust_remote_code,
        digests=cache.digests,
    )
    like = None
    if stand_in is not None:
        # What stands in borrows the architecture and the preprocessing of the entry's own source.
        like = model_identity(
            parse_source(spec.source, MODEL_SCHEMES),
            config=spec.config,
            base=suite.path.parent,
            download=settings.download,
            trust_remote_code=settings.trust_remote_code,
            digests=cache.digests,
        )
        if like is None:
            return None
    data = data_identity(
        parse_source(suite.data.source, DATA_SCHEMES),
        base=suite.path.parent,
        modality=suite.modality,
        digests=cache.digests,
    )
    measure = suite.measure_of(spec)
    metrics = _metrics(suite, spec, settings)
    if any(name not in METRICS.own for name in metrics):
        return None
    tokenizer = tokenizer_identity(
        measure.tokenizer,
        base=suite.path.parent,
        download=settings.download,
        digests=cache.digests,
    )
    if weights is None or data is None or tokenizer is None:
        return None
    return cache.key(
        {
            "weights": weights,
            "like": like,
            "source": source,
            "config": spec.config,
            "layers": spec.layers,
            "preprocess": spec.preprocess,
            "data": data,
            "data source": suite.data.source,
            "samples": suite.data.samples if settings.samples is None else settings.samples,
            "seed": suite.data.seed,
            "modality": suite.modality,
            "representation": measure.representation,
            "special_tokens": measure.special_tokens,
            "dtype": settings.dtype or measure.dtype,
            "reading": asdict(_reading(measure)),
            "tokenizer": tokenizer,
            "device": settings.device,
            "metrics": list(metrics),
            **{
                name: None if (table := getattr(suite, name)) is None else table.model_dump()
                for name in EXPERIMENTS
            },
            "ablate": dict(ablation.describe()) if (ablation := _ablation(spec)) else {},
            "block": spec.block,
            "width": spec.width,
            "properties": _tried_for(suite, spec),
            "bound": _bounded(suite, spec),
        }
    )
