"""What experiments share: ascending places, data of their own, metrics that they alone measure."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from pydantic_core import PydanticCustomError

from isotest.gate.checks import FixedPointCheck, MetricCheck
from isotest.source import DATA_SCHEMES, parse_source
from isotest.statistics.registry import METRICS, ON_TASKS
from isotest.suite.checks import fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic_core import InitErrorDetails

    from isotest.statistics.metric import Experiment
    from isotest.suite.checks import CheckSpec, Location
    from isotest.suite.spec import MeasureSpec, SuiteFile

EMBEDDINGS = "embeddings"
"""The modality of suites whose inputs are drawn vectors, and the scheme of their data source."""

TASKS = "tasks"
"""The modality of suites about the networks of tasks."""

EXPERIMENTS: Mapping[Experiment, str] = {"drift": EMBEDDINGS, "paths": TASKS, "recurrence": TASKS}
"""The tables that make a suite an experiment, each with the modality that it is for."""

OF_SAMPLES = ("representation", "special_tokens", "tokenizer", "packing", "length", "decoder")
"""Keys of ``[measure]`` about how samples become representations; experiments have no samples."""

_OWN_DATA = {
    EMBEDDINGS: (
        "embeddings",
        "modality 'embeddings' has no samples, but {scheme}: does",
        "embeddings:normal?std=0.02&vocabulary=30522&length=512",
    ),
    TASKS: (
        "task",
        "modality 'tasks' feeds networks examples of their task, which {scheme}: has not",
        "task:sorting",
    ),
}
"""Modalities with data of their own: its scheme, what is wrong with another one, an example."""


def ascending(name: str, numbers: Sequence[float]) -> None:
    """Refuse numbers of which one is not above the one before it."""
    for before, after in pairwise(numbers):
        if after <= before:
            raise PydanticCustomError(
                "fault",
                "{text}",
                {"text": f"{name}: {after:g} comes after {before:g}: expected an ascending list"},
            )


def experiment_of(suite: SuiteFile) -> Experiment | None:
    """The experiment that a suite describes: the first of its tables."""
    return next((name for name in EXPERIMENTS if getattr(suite, name) is not None), None)


def experiment_faults(suite: SuiteFile) -> Iterator[InitErrorDetails]:
    """Tables, data and metrics that belong to another modality or experiment than the suite's."""
    for name, modality in EXPERIMENTS.items():
        if getattr(suite, name) is not None and suite.modality != modality:
            yield fault(
                f"[{name}] is the experiment of modality {modality!r}; this suite's is "
                f"{suite.modality!r}",
                (name,),
                None,
            )
    yield from _data_faults(suite)
    yield from _metric_faults(suite, suite.measure, suite.checks, ())
    for index, model in enumerate(suite.models):
        yield from _metric_faults(suite, model.measure, model.checks, ("models", index))


def _data_faults(suite: SuiteFile) -> Iterator[InitErrorDetails]:
    scheme = parse_source(suite.data.source, DATA_SCHEMES).scheme
    where = ("data", "source")
    if suite.modality in _OWN_DATA:
        own, problem, example = _OWN_DATA[suite.modality]
        if scheme != own:
            text = f'{problem.format(scheme=scheme)}; write source = "{example}"'
            yield fault(text, where, suite.data.source)
        return
    for modality, (own, _, _) in _OWN_DATA.items():
        if scheme == own:
            yield fault(
                f"{scheme}: is the data of modality {modality!r}; this suite's is "
                f"{suite.modality!r}",
                where,
                suite.data.source,
            )


def _metric_faults(
    suite: SuiteFile,
    measure: MeasureSpec | None,
    checks: Mapping[str, CheckSpec],
    here: Location,
) -> Iterator[InitErrorDetails]:
    """Metrics that are not measured in the suite: of another experiment, or of layers."""
    experiment = experiment_of(suite)
    if suite.modality == TASKS and experiment not in ON_TASKS:
        return  # without a table that says what is measured, no metric is right
    for metric, where in _named_metrics(measure, checks, here):
        own = METRICS[metric].experiment
        if own is not None and own != experiment:
            modality = EXPERIMENTS[own]
            but = f"has no table [{own}]"
            if modality != suite.modality:
                but = f"is of modality {suite.modality!r}"
            yield fault(
                f"{metric!r} is measured by the {own} experiment alone, in suites of modality "
                f"{modality!r} with a table [{own}]; this suite {but}",
                where,
                metric,
            )
        elif own is None and experiment in ON_TASKS:
            measured = ", ".join(n for n, each in METRICS.items() if each.experiment == experiment)
            yield fault(
                f"{metric!r} is not measured in a suite with a table [{experiment}], which "
                f"observes no layers; it measures {measured}",
                where,
                metric,
            )


def _named_metrics(
    measure: MeasureSpec | None, checks: Mapping[str, CheckSpec], here: Location
) -> Iterator[tuple[str, Location]]:
    """Every metric that is asked for by name, and where."""
    if measure is not None and not isinstance(measure.metrics, str):
        for index, name in enumerate(measure.metrics):
            yield name, (*here, "measure", "metrics", index)
    for name, check in checks.items():
        if isinstance(check, FixedPointCheck | MetricCheck):
            key = ("metric",) if "metric" in check.model_fields_set else ()
            yield check.metric or name, (*here, "checks", name, *key)
