"""What a ``task:`` source names, and what its network is, by content and torch-free.

``task:sorting`` is the network that comes with isotest, ``task:sorting?design=modern`` the one of
the other design, ``task:sorting?weights=FILE`` one that was trained anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

from isotest.blocks.tasks.config import DESIGNS
from isotest.errors import MissingError, SourceError
from isotest.source import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isotest.blocks.tasks.config import Design
    from isotest.source import Source

_Word = TypeVar("_Word", bound=str)

SCHEME = "task"
"""Of the sources of data and of networks alike."""

EXPERIMENTS: Mapping[str, Literal["paths", "recurrence"]] = {
    "memorization": "paths",
    "sorting": "paths",
    "convex-hull": "paths",
    "circle": "recurrence",
}
"""The experiment that is made with each task: the table that a suite about it has."""

WHOLE = "memorization"
"""The task whose examples are given: a network is judged by what it has learnt."""

SENTENCES = 500
"""That a network of :data:`WHOLE` has learnt."""

PAIRS = 499
"""Of the circle, from which trajectories can start."""

Variant = Literal["attention", "skip", "mlp", "both"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)
"""What a network of the circle consists of."""

KEPT = Path(__file__).parent / "weights"
"""Where the weights are that come with isotest."""

_RETRAIN = "python -m isotest.blocks.tasks"


@dataclass(frozen=True)
class TaskSource:
    """A ``task:`` source of a network, understood.

    Attributes:
        text: as it was written.
        task: a key of :data:`EXPERIMENTS`.
        design: how its blocks are built, one of :data:`DESIGNS`.
        variant: what a network of the circle consists of, one of :data:`VARIANTS`; ``None`` in
            every other task.
        weights: a file of weights, as it was written; ``None``: those that come with isotest.
    """

    text: str
    task: str
    design: Design
    variant: Variant | None
    weights: str | None

    def file(self, base: Path) -> Path:
        """The file of weights; nothing says that it is there.

        Args:
            base: what a relative path starts from.
        """
        if self.weights is not None:
            return base / Path(self.weights).expanduser()
        return KEPT / f"{self.task}-{self.design}.safetensors"

    def existing_file(self, base: Path) -> Path:
        """The file of weights.

        Raises:
            MissingError: it is not there.
        """
        file = self.file(base)
        if not file.is_file():
            command = f"'{_RETRAIN} {self.task}'"
            raise MissingError(
                f"source {self.text!r}: no weights at {file}",
                f"train them with {command}"
                if self.weights is None
                else f"name a file that {command} wrote, relative to the suite",
            )
        return file


def task_of(source: Source) -> str:
    """The task that a ``task:`` source names.

    Raises:
        SourceError: there is no such task.

    >>> from isotest.source import DATA_SCHEMES, parse_source
    >>> task_of(parse_source("task:sorting", DATA_SCHEMES))
    'sorting'
    """
    if source.location not in EXPERIMENTS:
        hint = did_you_mean(source.location, EXPERIMENTS)
        raise SourceError(f"source {str(source)!r}: unknown task {source.location!r}{hint}")
    return source.location


def task_source(source: Source) -> TaskSource:
    """The network that a ``task:`` source names.

    Raises:
        SourceError: an unknown task or option, or a value that cannot be.

    >>> from isotest.source import MODEL_SCHEMES, parse_source
    >>> task_source(parse_source("task:circle?variant=both", MODEL_SCHEMES)).variant
    'both'
    """
    task = task_of(source)
    varied = task == "circle"
    source.require_options({"design", "weights"} | ({"variant"} if varied else set()))
    weights = source.options.get("weights")
    if weights is not None and not weights.endswith(".safetensors"):
        raise SourceError(
            f"source {str(source)!r}: expected weights to be a .safetensors file, as "
            f"'{_RETRAIN} {task}' writes, found {weights!r}"
        )
    return TaskSource(
        text=str(source),
        task=task,
        design=_one_of(source, "design", DESIGNS),
        variant=_one_of(source, "variant", VARIANTS) if varied else None,
        weights=weights,
    )


def _one_of(source: Source, option: str, known: Sequence[_Word]) -> _Word:
    """The value of an option, the first of ``known`` by default."""
    text = source.options.get(option, known[0])
    for value in known:
        if value == text:
            return value
    hint = did_you_mean(text, known)
    raise SourceError(f"source {str(source)!r}: unknown {option} {text!r}{hint}")
