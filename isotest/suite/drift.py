"""Suites of modality ``embeddings``, and the ``[drift]`` table that makes one an experiment."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat
from pydantic_core import PydanticCustomError

from isotest.errors import SourceError
from isotest.gate.checks import BlockPropertiesCheck, FixedPointCheck, MetricCheck
from isotest.source import DATA_SCHEMES, parse_source
from isotest.statistics.registry import METRICS
from isotest.suite.checks import fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic_core import InitErrorDetails

    from isotest.suite.checks import CheckSpec, Location
    from isotest.suite.spec import MeasureSpec, ModelSpec, SuiteFile

EMBEDDINGS = "embeddings"
"""The modality of these suites, and the scheme of their data source."""

_OF_SAMPLES = ("representation", "special_tokens", "tokenizer", "packing", "length", "decoder")
"""Keys of ``[measure]`` about how samples become representations; here, they are given."""


def _ascending(norms: tuple[float, ...]) -> tuple[float, ...]:
    for before, after in pairwise(norms):
        if after <= before:
            raise PydanticCustomError(
                "fault",
                "{text}",
                {"text": f"norms: {after:g} comes after {before:g}: expected an ascending list"},
            )
    return norms


class DriftSpec(BaseModel):
    """The ``[drift]`` table: how far inputs are moved away from zero, and how often."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    norms: Annotated[
        tuple[Annotated[FiniteFloat, Field(ge=0)], ...],
        Field(strict=False, min_length=1),
        AfterValidator(_ascending),
    ] = Field(
        description="the lengths N of the bias that is added to every input vector, ascending; "
        "layers input.k and output.k are those of the k-th, from 0",
        examples=[[0, 8, 16, 32, 64]],
    )
    replicates: int = Field(
        8,
        ge=2,
        le=64,
        description="how often table, sequences and direction of the bias are drawn, and weights "
        "where the source has a seed; error bars are over replicates",
    )


def embeddings_faults(suite: SuiteFile) -> Iterator[InitErrorDetails]:
    """What does not fit together in a suite, about embeddings and drift."""
    if suite.modality != EMBEDDINGS:
        yield from _elsewhere(suite)
        return
    yield from _data_faults(suite)
    yield from _sampling(suite.measure, ("measure",))
    for index, model in enumerate(suite.models):
        if model.measure is not None:
            yield from _sampling(model.measure, ("models", index, "measure"))
    if suite.drift is None:
        yield from _of_stacks(suite)
    else:
        yield from _of_experiment(suite)


def _of_experiment(suite: SuiteFile) -> Iterator[InitErrorDetails]:
    """In the drift experiment a block is studied by itself, its input beside its output."""
    for index, model in enumerate(suite.models):
        for key in ("layers", "preprocess"):
            if getattr(model, key) is not None:
                yield fault(
                    f"{key!r} has no place in a suite with a table [drift]: a block is fed "
                    "representations; say which module it is with 'block'",
                    ("models", index, key),
                    None,
                )


def _of_stacks(suite: SuiteFile) -> Iterator[InitErrorDetails]:
    """Without the experiment, a stack of blocks is measured layer by layer, as any model."""
    why = "belongs to the drift experiment on one block, and this suite has no table [drift]"
    for index, model in enumerate(suite.models):
        for key in ("block", "width"):
            if getattr(model, key) is not None:
                yield fault(
                    f"{key!r} {why}: the layers of a stack are measured, and its own configuration "
                    "says how wide it is",
                    ("models", index, key),
                    None,
                )
        if model.preprocess is not None:
            yield fault(
                "'preprocess' is about images; this suite's modality is 'embeddings'",
                ("models", index, "preprocess"),
                None,
            )
    for where, checks in (
        ((), suite.checks),
        *((("models", index), model.checks) for index, model in enumerate(suite.models)),
    ):
        for name, check in checks.items():
            if isinstance(check, BlockPropertiesCheck | FixedPointCheck):
                yield fault(f"check {name!r} {why}", (*where, "checks", name), None)
    yield from _experiments_metrics(suite.measure, suite.checks, (), "has no table [drift]")
    for index, model in enumerate(suite.models):
        yield from _experiments_metrics(
            model.measure, model.checks, ("models", index), "has no table [drift]"
        )


def _data_faults(suite: SuiteFile) -> Iterator[InitErrorDetails]:
    source = parse_source(suite.data.source, DATA_SCHEMES)
    if source.scheme != EMBEDDINGS:
        yield fault(
            f"modality 'embeddings' has no samples, but {source.scheme}: does; write source = "
            '"embeddings:normal?std=0.02&vocabulary=30522&length=512"',
            ("data", "source"),
            suite.data.source,
        )
        return
    from isotest.data.embeddings import embedding_table  # for such suites alone: NumPy

    try:
        table = embedding_table(source)
    except SourceError as error:
        yield fault(str(error), ("data", "source"), suite.data.source)
    else:
        if suite.drift is not None and table.bias:
            yield fault(
                "'bias' has no place in a suite with a table [drift], whose 'norms' say it",
                ("data", "source"),
                suite.data.source,
            )
    if suite.data.samples == "all":
        where = "samples" if "samples" in suite.data.model_fields_set else "source"
        yield fault(
            "embeddings are drawn, as many as are asked for: say how many sequences with "
            "'samples', such as 16",
            ("data", where),
            suite.data.samples,
        )


def _sampling(measure: MeasureSpec, where: Location) -> Iterator[InitErrorDetails]:
    for key in _OF_SAMPLES:
        if key in measure.model_fields_set:
            hint = "; the length of sequences stands in [data] source" if key == "length" else ""
            yield fault(
                f"{key!r} has no place in a suite of modality 'embeddings', whose inputs are "
                f"representations already{hint}",
                (*where, key),
                None,
            )


def _elsewhere(suite: SuiteFile) -> Iterator[InitErrorDetails]:
    if suite.drift is not None:
        yield fault(
            f"[drift] is the experiment of modality 'embeddings'; this suite's is "
            f"{suite.modality!r}",
            ("drift",),
            None,
        )
    source = parse_source(suite.data.source, DATA_SCHEMES)
    if source.scheme == EMBEDDINGS:
        yield fault(
            f"embeddings: is the data of modality 'embeddings'; this suite's is {suite.modality!r}",
            ("data", "source"),
            suite.data.source,
        )
    yield from _experiments_metrics(
        suite.measure, suite.checks, (), f"is of modality {suite.modality!r}"
    )
    for index, model in enumerate(suite.models):
        yield from _model_elsewhere(model, ("models", index), suite.modality)


def _model_elsewhere(model: ModelSpec, here: Location, modality: str) -> Iterator[InitErrorDetails]:
    for key in ("block", "width"):
        if getattr(model, key) is not None:
            yield fault(
                f"{key!r} is for suites of modality 'embeddings', which feed a block by itself; "
                f"this suite's is {modality!r}",
                (*here, key),
                None,
            )
    yield from _experiments_metrics(
        model.measure, model.checks, here, f"is of modality {modality!r}"
    )


def _experiments_metrics(
    measure: MeasureSpec | None, checks: Mapping[str, CheckSpec], here: Location, but: str
) -> Iterator[InitErrorDetails]:
    """Metrics that an experiment alone measures, asked for in a suite without it."""
    named: list[tuple[str, Location]] = []
    if measure is not None and not isinstance(measure.metrics, str):
        named += [
            (name, (*here, "measure", "metrics", index))
            for index, name in enumerate(measure.metrics)
        ]
    for name, check in checks.items():
        if isinstance(check, FixedPointCheck | MetricCheck):
            key = ("metric",) if "metric" in check.model_fields_set else ()
            named.append((check.metric or name, (*here, "checks", name, *key)))
    for metric, where in named:
        experiment = METRICS[metric].experiment
        if experiment is not None:
            yield fault(
                f"{metric!r} is measured by the {experiment} experiment alone, in suites of "
                f"modality 'embeddings' with a table [{experiment}]; this suite {but}",
                where,
                metric,
            )
