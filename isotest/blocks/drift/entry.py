"""The drift experiment as an entry of a suite: its block found and built, then measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from types import MappingProxyType
from typing import TYPE_CHECKING

from isotest.blocks.drift import Experiment, measure_drift
from isotest.blocks.drift.attention import heads_of_block
from isotest.blocks.drift.block import StudiedBlock, find_block, width_of
from isotest.data.embeddings import embedding_table
from isotest.errors import SourceError
from isotest.gate.checks import BlockPropertiesCheck
from isotest.models.architecture import architecture
from isotest.models.load import build_placed
from isotest.models.registry import Request, seed_of
from isotest.source import DATA_SCHEMES, MODEL_SCHEMES, parse_source

if TYPE_CHECKING:
    from pathlib import Path

    from isotest.measurement import Progress
    from isotest.models.registry import Built
    from isotest.profile import BlockProperty, Profile
    from isotest.source import Source
    from isotest.suite import ModelSpec, Suite

SEEDED = frozenset({"init", "block"})
"""Schemes whose weights follow from a seed: each replicate has its own."""


@dataclass(frozen=True)
class DriftEntry:
    """An entry of a suite of modality ``"embeddings"``, as it is to be measured.

    Attributes:
        suite, spec: what it is an entry of, and itself.
        source: what is loaded: the entry's source, or that of what stands in for it.
        base: what relative paths in it start from.
        like: the entry's own source, where another one stands in for it.
        samples: sequences of a replicate.
        metrics: names from the registry.
        batch_size: sequences per forward pass.
        device, dtype: where and in what the block runs.
        download: whether the hub may be reached.
        trust_remote_code: whether hub models may run their own code.
    """

    suite: Suite
    spec: ModelSpec
    source: str
    base: Path
    like: str | None
    samples: int
    metrics: tuple[str, ...]
    batch_size: int
    device: str
    dtype: str
    download: bool
    trust_remote_code: bool

    @property
    def experiment(self) -> Experiment:
        """What is drawn."""
        drift = self.suite.drift
        assert drift is not None  # or the suite is none of this modality
        return Experiment(
            norms=drift.norms,
            replicates=drift.replicates,
            sequences=self.samples,
            table=embedding_table(parse_source(self.suite.data.source, DATA_SCHEMES)),
            seed=self.suite.data.seed,
        )

    @cached_property
    def first(self) -> Built:
        """What the first replicate is made with, and every one where weights have no seed."""
        return self._built(parse_source(self.source, MODEL_SCHEMES))

    @property
    def passes(self) -> int:
        """Sequences that go through the block in all, for a progress display."""
        experiment = self.experiment
        return experiment.replicates * experiment.sequences * len(experiment.norms)

    def measure(self, progress: Progress | None = None) -> Profile:
        """Build the block, of each replicate where it has a seed, and run the experiment.

        Raises:
            MissingError: weights, a package or a device are not here.
            IsotestError: the source is at fault, or the block misbehaves.
        """
        anew = parse_source(self.source, MODEL_SCHEMES).scheme in SEEDED
        first = self.first
        studied = self._studied(first)
        profile = measure_drift(
            lambda number: studied if not number else self._studied(self._replicate(number)),
            self.experiment,
            self.metrics,
            source=self.source,
            model=self.spec.name,
            anew=anew,
            path=self.spec.block or "",
            suite=self.suite.id,
            config=architecture(first.module)["config"],
            commit=first.commit,
            versions=_versions(first),
            batch_size=self.batch_size,
            progress=progress,
        )
        return replace(profile, properties=self._properties(studied))

    def _replicate(self, number: int) -> Built:
        source = parse_source(self.source, MODEL_SCHEMES)
        options = {**source.options, "seed": str(seed_of(source) + number)}
        return self._built(replace(source, options=MappingProxyType(options)))

    def _built(self, source: Source) -> Built:
        request = Request(
            source=source,
            config=dict(self.spec.config),
            base=self.base,
            download=self.download,
            trust_remote_code=self.trust_remote_code,
            like=None if self.like is None else parse_source(self.like, MODEL_SCHEMES),
            like_base=self.suite.path.parent,
        )
        return build_placed(request, device=self.device, dtype=self.dtype)

    def _studied(self, built: Built) -> StudiedBlock:
        what = f"source {self.source!r}"
        block = find_block(built.module, self.spec.block, what)
        width = width_of(block, what) if self.spec.width is None else self.spec.width
        return StudiedBlock(block, width, what)

    def _properties(self, studied: StudiedBlock) -> tuple[BlockProperty, ...]:
        """What the block is tried for, where a check of the entry asks for it."""
        checks = self.suite.checks_of(self.spec).values()
        check = next((each for each in checks if isinstance(each, BlockPropertiesCheck)), None)
        if check is None:
            return ()
        from isotest.testing.of_entry import tried_properties

        heads = check.heads or heads_of_block(studied, self.spec.name)
        if heads is None:
            raise SourceError(
                f"model {self.spec.name!r}: cannot see how many heads the attention of "
                f"{type(studied.module).__name__} has; say it with 'heads' in "
                "[checks.block_properties]"
            )
        return tried_properties(
            studied.module,
            check,
            width=studied.width,
            heads=heads,
            source=self.source,
            whole=self.spec.block is None and not self.spec.config,
        )


def _versions(built: Built) -> dict[str, str]:
    return {name: version(name) for name in built.libraries}
