"""Where the check ``collapse_bound`` has a place: stacks of blocks, measured layer by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.gate.checks import CollapseBoundCheck
from isotest.source import MODEL_SCHEMES, parse_source
from isotest.suite.checks import fault
from isotest.suite.experiments import EMBEDDINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_core import InitErrorDetails

    from isotest.suite.spec import SuiteFile


def bound_faults(suite: SuiteFile) -> Iterator[InitErrorDetails]:
    """The check in another suite, or of models that are no stack of blocks."""
    why = None
    if suite.modality != EMBEDDINGS:
        why = f"this suite's modality is {suite.modality!r}"
    elif suite.drift is not None:
        why = "this suite has a table [drift], which studies one block"
    asked = {name for name, check in suite.checks.items() if isinstance(check, CollapseBoundCheck)}
    for name in asked:
        if why is not None:
            yield fault(f"{_about(name)}; {why}", ("checks", name), None)
    for index, model in enumerate(suite.models):
        own = {n for n, check in model.checks.items() if isinstance(check, CollapseBoundCheck)}
        for name in own:
            if why is not None:
                yield fault(f"{_about(name)}; {why}", ("models", index, "checks", name), None)
        source = parse_source(model.source, MODEL_SCHEMES)
        if why is None and source.scheme != "block":
            for name in asked | own:
                yield fault(
                    f"{_about(name)}; this source is {source.scheme}:, so that it belongs into "
                    "another suite, or the check into the entries that are meant",
                    ("models", index, "source"),
                    model.source,
                )


def _about(name: str) -> str:
    return (
        f"check {name!r} is about a stack of blocks (block:) in a suite of modality 'embeddings' "
        "without a table [drift]"
    )
