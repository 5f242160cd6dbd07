"""Suites of modality ``tasks``; each has a table ``[paths]`` or a table ``[recurrence]``.

The networks of four tasks (Dong, Cordonnier and Loukas 2021, section 4) are measured by what
becomes of their task: by the accuracy of their paths, or by where they lead two trajectories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from isotest.blocks.tasks.identity import (
    EXPERIMENTS,
    PAIRS,
    SCHEME,
    SENTENCES,
    WHOLE,
    task_of,
    task_source,
)
from isotest.errors import SourceError
from isotest.gate.checks import CollapseBoundCheck, MetricCheck
from isotest.source import DATA_SCHEMES, MODEL_SCHEMES, parse_source
from isotest.suite.checks import fault
from isotest.suite.experiments import OF_SAMPLES, TASKS, ascending

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic_core import InitErrorDetails

    from isotest.suite.checks import CheckSpec, Location
    from isotest.suite.spec import MeasureSpec, ModelSpec, SuiteFile

_OF_COMPUTING = {
    "dtype": "paths are computed in float32, recurrent steps in float64",
    "batch_size": "it changes no number, and examples are few",
}
"""Keys of ``[measure]`` about how a model is run, each with why they have no place."""

_OF_MODELS = {
    "preprocess": "it is about images",
    "layers": "no layer is observed; which paths are summed, or after which steps, stands in the "
    "suite's table",
    "ablate": "the design of its blocks stands in 'source', as design= or variant=",
}
"""Keys of an entry that have no place here, each with why."""


def _ascending_counts(counts: tuple[int, ...]) -> tuple[int, ...]:
    ascending("counts", counts)
    return counts


def _steps_from_zero(steps: tuple[int, ...]) -> tuple[int, ...]:
    ascending("steps", steps)
    if steps[0] != 0 or len(steps) < 2:
        raise PydanticCustomError(
            "fault",
            "{text}",
            {
                "text": f"steps: expected 0, where the trajectories start, and at least one step "
                f"behind it, found {list(steps)}"
            },
        )
    return steps


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PathsSpec(_Table):
    """The ``[paths]`` table: what is summed in place of the whole network, and how often."""

    counts: Annotated[
        tuple[Annotated[int, Field(ge=1, le=1000)], ...],
        Field(strict=False, min_length=1),
        AfterValidator(_ascending_counts),
    ] = Field(
        description="how many paths of one length are drawn and summed, ascending; layer paths_n.k "
        "is that of n paths of length k",
        examples=[[5, 20]],
    )
    repeats: int = Field(
        5,
        ge=2,
        le=64,
        description="how often paths, and examples where they are drawn, are drawn anew; error "
        "bars are over repeats",
    )


class RecurrenceSpec(_Table):
    """The ``[recurrence]`` table: after how many recurrent steps two trajectories are compared."""

    steps: Annotated[
        tuple[Annotated[int, Field(ge=0, le=100_000)], ...],
        Field(strict=False, min_length=1),
        AfterValidator(_steps_from_zero),
    ] = Field(
        description="numbers of steps, ascending from 0; layer step.t is after t of them; error "
        "bars are over the networks in the file of weights, each trained by itself",
        examples=[[0, 1, 3, 10, 30, 100, 300]],
    )


def tasks_faults(suite: SuiteFile) -> Iterator[InitErrorDetails]:
    """What does not fit together in a suite, about tasks and their networks."""
    if suite.modality != TASKS:
        yield from _elsewhere(suite)
        return
    task = _task(suite)
    if isinstance(task, str):
        yield from _table_faults(suite, task)
        yield from _sample_faults(suite, task)
    else:
        yield from task
    yield from _measure_faults(suite.measure, ("measure",))
    yield from _check_faults(suite.checks, ())
    for index, model in enumerate(suite.models):
        here = ("models", index)
        yield from _model_faults(model, here)
        yield from _source_faults(model, task if isinstance(task, str) else None, here)
        if model.measure is not None:
            yield from _measure_faults(model.measure, (*here, "measure"))
        yield from _check_faults(model.checks, here)


def _elsewhere(suite: SuiteFile) -> Iterator[InitErrorDetails]:
    for index, model in enumerate(suite.models):
        if parse_source(model.source, MODEL_SCHEMES).scheme == SCHEME:
            yield fault(
                f"task: brings the network of a task, which only suites of modality 'tasks' can "
                f"feed; this suite's is {suite.modality!r}",
                ("models", index, "source"),
                model.source,
            )


def _task(suite: SuiteFile) -> str | list[InitErrorDetails]:
    """The task that the data are of, or what is wrong with them."""
    source = parse_source(suite.data.source, DATA_SCHEMES)
    if source.scheme != SCHEME:
        return []  # said of every modality with data of its own
    try:
        task = task_of(source)
        source.require_options(())
    except SourceError as error:
        return [fault(str(error), ("data", "source"), suite.data.source)]
    return task


def _table_faults(suite: SuiteFile, task: str) -> Iterator[InitErrorDetails]:
    needed = EXPERIMENTS[task]
    other = next(name for name in EXPERIMENTS.values() if name != needed)
    if getattr(suite, other) is not None:
        yield fault(
            f"[{other}] has no place in a suite about {task}, whose table is [{needed}]",
            (other,),
            None,
        )
    elif getattr(suite, needed) is None:
        example = "counts = [5, 20]" if needed == "paths" else "steps = [0, 1, 3, 10, 30, 100, 300]"
        yield fault(
            f"a suite about {task} needs a table [{needed}], such as: {example}",
            ("data", "source"),
            suite.data.source,
        )


def _sample_faults(suite: SuiteFile, task: str) -> Iterator[InitErrorDetails]:
    samples = suite.data.samples
    where = ("data", "samples" if "samples" in suite.data.model_fields_set else "source")
    if task == WHOLE and samples != "all" and samples > SENTENCES:
        yield fault(
            f"samples = {samples}: a network of {task} has learnt {SENTENCES} sentences",
            where,
            samples,
        )
    elif EXPERIMENTS[task] == "recurrence":
        if samples != "all" and samples > PAIRS:
            yield fault(
                f"samples = {samples}: the circle has {PAIRS} pairs to start from", where, samples
            )
        if "seed" in suite.data.model_fields_set:
            yield fault(
                "'seed' has no place in a suite about circle: the starting pairs are spread evenly "
                "over the arcs, nothing is drawn",
                ("data", "seed"),
                suite.data.seed,
            )
    elif task != WHOLE and samples == "all":
        yield fault(
            f"the examples of {task} are drawn, as many as are asked for: say how many there are "
            "of each repeat with 'samples', such as 200",
            where,
            samples,
        )


def _model_faults(model: ModelSpec, here: Location) -> Iterator[InitErrorDetails]:
    for key, why in _OF_MODELS.items():
        if key in model.model_fields_set and getattr(model, key) is not None:
            yield fault(
                f"{key!r} has no place in a suite of modality 'tasks': {why}", (*here, key), None
            )


def _source_faults(
    model: ModelSpec, task: str | None, here: Location
) -> Iterator[InitErrorDetails]:
    where = (*here, "source")
    source = parse_source(model.source, MODEL_SCHEMES)
    if source.scheme != SCHEME:
        yield fault(
            f"modality 'tasks' measures the networks of tasks, which {source.scheme}: does not "
            f'bring; write source = "{SCHEME}:{task or "sorting"}"',
            where,
            model.source,
        )
        return
    try:
        found = task_source(source).task
    except SourceError as error:
        yield fault(str(error), where, model.source)
        return
    if task is not None and found != task:
        yield fault(
            f"a network of {found} cannot be fed the data of this suite, task:{task}; write "
            f'source = "task:{task}"',
            where,
            model.source,
        )


def _measure_faults(measure: MeasureSpec, where: Location) -> Iterator[InitErrorDetails]:
    for key in OF_SAMPLES:
        if key in measure.model_fields_set:
            yield fault(
                f"{key!r} has no place in a suite of modality 'tasks', whose networks are fed the "
                "examples of their task",
                (*where, key),
                None,
            )
    for key, why in _OF_COMPUTING.items():
        if key in measure.model_fields_set:
            yield fault(
                f"{key!r} has no place in a suite of modality 'tasks': {why}", (*where, key), None
            )


def _check_faults(checks: Mapping[str, CheckSpec], where: Location) -> Iterator[InitErrorDetails]:
    for name, check in checks.items():
        # Of a bound on collapse it is said in every suite but those of stacks.
        if not isinstance(check, MetricCheck | CollapseBoundCheck):
            yield fault(
                f"check {name!r} is about the layers of a model or block, and a suite of modality "
                "'tasks' observes none; judge its metrics with 'max', 'min', 'trend' or 'minus'",
                (*where, "checks", name),
                None,
            )
