"""An entry of a suite of modality ``tasks``: its network read from a file, then measured.

What is drawn or trained anew is the unit of the error bars: of paths a *repeat* (paths, and fresh
examples where a task draws them), of the recurrence a *training* (a network of its own). Each is a
block of the profile, so that a standard error is sd / √n over them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal

from isotest.blocks.replicates import mean_of
from isotest.blocks.tasks.circle import starting_pairs
from isotest.blocks.tasks.circle_training import load_circle
from isotest.blocks.tasks.config import COORDINATES
from isotest.blocks.tasks.effectiveness import measure_paths
from isotest.blocks.tasks.identity import PAIRS, SCHEME, SENTENCES, task_of, task_source
from isotest.blocks.tasks.recurrence import measure_recurrence
from isotest.blocks.tasks.stored import load_network
from isotest.blocks.tasks.task import TASKS
from isotest.errors import SourceError
from isotest.estimate import Estimate
from isotest.models.architecture import architecture, weights_fingerprint
from isotest.profile import LayerProfile, Profile, Provenance
from isotest.source import DATA_SCHEMES, MODEL_SCHEMES, parse_source

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from isotest.blocks.tasks.examples import Examples
    from isotest.blocks.tasks.identity import TaskSource, Variant
    from isotest.measurement import Progress
    from isotest.suite import ModelSpec, Suite

    Protocol = Mapping[str, str | int | float | bool | None]


@dataclass(frozen=True)
class TasksEntry:
    """An entry of a suite of modality ``"tasks"``, as it is to be measured, on the CPU.

    Attributes:
        suite, spec: what it is an entry of, and itself.
        source: what is read: the entry's source, or that of what stands in for it.
        base: what relative paths in it start from.
        samples: examples of a repeat, or starting pairs.
        metrics: names from the registry, of the suite's experiment.
    """

    suite: Suite
    spec: ModelSpec
    source: str
    base: Path
    samples: int | Literal["all"]
    metrics: tuple[str, ...]

    @property
    def passes(self) -> int:
        """Examples that are measured in all, for a progress display."""
        if self.suite.paths is None:
            return PAIRS if self.samples == "all" else self.samples
        of_each = SENTENCES if self.samples == "all" else self.samples
        return self.suite.paths.repeats * of_each

    def measure(self, progress: Progress | None = None) -> Profile:
        """Read the network, or networks, and run the suite's experiment on it.

        Raises:
            MissingError: the file of weights is not here.
            IsotestError: the file is at fault, or the network misbehaves.
        """
        named = self._named()
        if named.variant is None:
            return self._paths(named, progress)
        return self._recurrence(named, named.variant, progress)

    def _named(self) -> TaskSource:
        """The network; a stand-in has been read by nobody until now."""
        source = parse_source(self.source, MODEL_SCHEMES)
        task = task_of(parse_source(self.suite.data.source, DATA_SCHEMES))
        if source.scheme != SCHEME or task_of(source) != task:
            raise SourceError(
                f"source {self.source!r}: a suite of modality 'tasks' about {task} measures "
                f"networks of that task: name a source such as {SCHEME}:{task}?weights=FILE"
            )
        return task_source(source)

    def _paths(self, named: TaskSource, progress: Progress | None) -> Profile:
        paths, seed = self.suite.paths, self.suite.data.seed
        assert paths is not None  # or the suite is about another task
        network = load_network(named.existing_file(self.base), task=named.task, design=named.design)
        task = TASKS[named.task]
        digest = hashlib.sha256()
        sizes: list[int] = []

        def examples_of(repeat: int) -> Examples:
            count = None if self.samples == "all" else self.samples
            examples = task.test(count, seed=seed, repeat=repeat)
            sizes.append(len(examples))
            for part in (examples.inputs, examples.labels, examples.valid):
                digest.update(f"{list(part.shape)} {part.dtype}".encode())
                digest.update(part.contiguous().numpy().tobytes())
            return examples

        measured = measure_paths(
            network,
            examples_of,
            counts=paths.counts,
            repeats=paths.repeats,
            seed=seed,
            progress=None if progress is None else lambda _: progress(sizes[-1]),
        )
        layers = [
            LayerProfile(
                name=layer.name,
                module="",
                width=network.config.block.width,
                representations=sum(layer.positions),
                zero_length=0,
                block_representations=tuple(layer.positions),
                estimates={name: mean_of(layer.estimates[name]) for name in self.metrics},
            )
            for layer in measured.values()
        ]
        return self._profile(
            layers,
            block_sequences=tuple(sizes),
            units=min(sum(sizes), SENTENCES) if task.whole else sum(sizes),
            provenance=self._provenance(
                named,
                architecture=architecture(network),
                protocol={
                    "paths.counts": ", ".join(map(str, paths.counts)),
                    "paths.repeats": paths.repeats,
                    "data.examples": self.samples,
                    "data.seed": seed,
                    "dtype": "float32",
                },
                data=digest.hexdigest(),
                weights=weights_fingerprint(network),
            ),
        )

    def _recurrence(
        self, named: TaskSource, variant: Variant, progress: Progress | None
    ) -> Profile:
        recurrence = self.suite.recurrence
        assert recurrence is not None  # or the suite is about another task
        networks = load_circle(named.existing_file(self.base), design=named.design, variant=variant)
        starts = starting_pairs(PAIRS if self.samples == "all" else self.samples)
        pairs, trainings = len(starts), len(networks)
        measured = measure_recurrence(networks, starts, recurrence.steps, name=variant)
        if progress is not None:
            progress(pairs)
        layers = [
            LayerProfile(
                name=step.layer,
                module="",
                width=COORDINATES,
                representations=2 * pairs * trainings,
                zero_length=0,
                block_representations=(2 * pairs,) * trainings,
                estimates={
                    name: mean_of([Estimate(value) for value in getattr(step, name)])
                    for name in self.metrics
                },
            )
            for step in measured
        ]
        weights = [weights_fingerprint(network) for network in networks.values()]
        return self._profile(
            layers,
            block_sequences=(pairs,) * trainings,
            units=trainings,
            provenance=self._provenance(
                named,
                architecture=architecture(next(iter(networks.values()))),
                protocol={
                    "recurrence.steps": ", ".join(map(str, recurrence.steps)),
                    "data.pairs": pairs,
                    "weights": f"of {trainings} trainings",
                    "dtype": "float64",
                },
                data=hashlib.sha256(starts.numpy().tobytes()).hexdigest(),
                weights=hashlib.sha256(repr(weights).encode()).hexdigest(),
            ),
        )

    def _profile(
        self,
        layers: list[LayerProfile],
        *,
        block_sequences: tuple[int, ...],
        units: int,
        provenance: Provenance,
    ) -> Profile:
        return Profile(
            suite=self.suite.id,
            model=self.spec.name,
            modality=self.suite.modality,
            sequences=sum(block_sequences),
            units=units,
            block_sequences=block_sequences,
            layers=tuple(layers),
            provenance=provenance,
        )

    def _provenance(
        self,
        named: TaskSource,
        *,
        architecture: Mapping[str, str],
        protocol: Protocol,
        data: str,
        weights: str,
    ) -> Provenance:
        return Provenance(
            source=self.source,
            architecture={
                **architecture,
                "design": named.design,
                **({} if named.variant is None else {"variant": named.variant}),
            },
            protocol={
                "data.source": self.suite.data.source,
                **protocol,
                "representation": "positions",
            },
            data=data,
            weights=weights,
            commit=None,
            device="cpu",
            versions={name: version(name) for name in ("torch", "numpy", "isotest")},
            created=datetime.now(UTC).isoformat(timespec="microseconds"),
        )
