"""Suites of modality ``embeddings``, and the ``[drift]`` table that makes one an experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat

from isotest.errors import SourceError
from isotest.gate.checks import BlockPropertiesCheck, FixedPointCheck
from isotest.source import DATA_SCHEMES, parse_source
from isotest.suite.checks import fault
from isotest.suite.experiments import EMBEDDINGS, OF_SAMPLES, ascending

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_core import InitErrorDetails

    from isotest.suite.checks import Location
    from isotest.suite.spec import MeasureSpec, SuiteFile


def _ascending(norms: tuple[float, ...]) -> tuple[float, ...]:
    ascending("norms", norms)
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


def _data_faults(suite: SuiteFile) -> Iterator[InitErrorDetails]:
    source = parse_source(suite.data.source, DATA_SCHEMES)
    if source.scheme != EMBEDDINGS:
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
    for key in OF_SAMPLES:
        if key in measure.model_fields_set:
            hint = "; the length of sequences stands in [data] source" if key == "length" else ""
            yield fault(
                f"{key!r} has no place in a suite of modality 'embeddings', whose inputs are "
                f"representations already{hint}",
                (*where, key),
                None,
            )


def _elsewhere(suite: SuiteFile) -> Iterator[InitErrorDetails]:
    for index, model in enumerate(suite.models):
        for key in ("block", "width"):
            if getattr(model, key) is not None:
                yield fault(
                    f"{key!r} is for suites of modality 'embeddings', which feed a block by "
                    f"itself; this suite's is {suite.modality!r}",
                    ("models", index, key),
                    None,
                )
