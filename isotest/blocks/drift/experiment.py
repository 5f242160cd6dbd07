"""The drift experiment: what a block makes of inputs that a common bias moves away from zero.

Godey, de la Clergerie and Sagot 2023, section 4: sequences x are drawn uniformly from an embedding
table with entries N(0, std²), a bias b = N · b_u / ‖b_u‖ with b_u ~ N(0, I) is added to every
vector, and T(x + b) is compared with x + b over a range of N.

What is drawn at random is the unit of the error bars: a *replicate* has a table, sequences and a
direction of its own, and weights of its own where the block can be made anew. Every metric is
computed within each replicate, over all its sequences, positions, heads and queries, and averaged
over replicates; the blocks of the profile are the replicates, so that a pseudo-value is the
replicate's value and a standard error is sd / √S.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from itertools import pairwise
from typing import TYPE_CHECKING

from torch import nn

from isotest.blocks.drift.block import StudiedBlock, width_of
from isotest.blocks.drift.profile import layer_profile
from isotest.blocks.drift.replicate import Replicate, Side
from isotest.data.embeddings import Draw, EmbeddingTable, draw
from isotest.errors import IsotestError, MeasurementError
from isotest.models.architecture import architecture, weights_fingerprint
from isotest.profile import Profile, Provenance
from isotest.source import did_you_mean
from isotest.statistics.registry import METRICS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isotest.measurement import Progress

FIGURES = (
    "anisotropy",
    "mean_norm",
    "drift_norm",
    "attention_score_mean",
    "attention_score_std",
    "attention_row_max",
    "attention_row_median",
    "attention_row_min",
    "attention_sequence_max",
    "attention_sequence_min",
    "attention_query_norm",
    "attention_key_norm",
    "attention_query_cosine",
    "attention_key_cosine",
    "score_offset",
    "score_sign",
    "query_expectation_gap",
    "key_expectation_gap",
)
"""The metrics that figures 6 to 10 of the paper show, and the equations (1)."""


@dataclass(frozen=True)
class Experiment:
    """What is drawn, how often, and how far it is moved.

    Attributes:
        norms: N, ascending, in the unit of the representations.
        replicates: S, how often everything random is drawn anew.
        sequences: of each replicate.
        table: what they are drawn from.
        seed: of all of it.

    Raises:
        MeasurementError: numbers that cannot be.
    """

    norms: tuple[float, ...]
    replicates: int = 8
    sequences: int = 16
    table: EmbeddingTable = field(default_factory=EmbeddingTable)
    seed: int = 0

    def __post_init__(self) -> None:
        rising = all(low < high for low, high in pairwise(self.norms))
        finite = all(0 <= norm < math.inf for norm in self.norms)
        if not self.norms or not rising or not finite:
            raise MeasurementError(
                f"drift: expected norms from 0, ascending, found {list(self.norms)}"
            )
        if self.replicates < 1 or self.sequences < 2 or self.seed < 0:
            raise MeasurementError(
                "drift: expected at least 1 replicate of at least 2 sequences and a seed from 0, "
                f"found {self.replicates}, {self.sequences} and {self.seed}"
            )

    def draw(self, width: int, replicate: int) -> Draw:
        """The sequences and the direction of a replicate."""
        return draw(
            self.table,
            sequences=self.sequences,
            width=width,
            seed=self.seed,
            replicate=replicate,
        )

    def describe(self) -> Mapping[str, str | int | float]:
        """As it stands in a protocol."""
        return {
            "drift.norms": ", ".join(f"{norm:g}" for norm in self.norms),
            "drift.replicates": self.replicates,
            "data.source": "embeddings:normal",
            "data.sequences": self.sequences,
            "data.std": self.table.std,
            "data.vocabulary": self.table.vocabulary,
            "data.length": self.table.length,
            "data.seed": self.seed,
        }


BlockOf = Callable[[int], nn.Module]
"""From the number of a replicate to its block."""


def drift(
    block: nn.Module | BlockOf,
    *,
    norms: Sequence[float],
    width: int | None = None,
    replicates: int = 8,
    sequences: int = 16,
    length: int = 512,
    vocabulary: int = 30522,
    std: float = 0.02,
    seed: int = 0,
    metrics: Sequence[str] = FIGURES,
    batch_size: int = 8,
    name: str = "block",
    progress: Progress | None = None,
) -> Profile:
    """Run the drift experiment on any block, outside of any suite.

    Args:
        block: takes (batch, length, width) and returns as much; or a function from the number of a
            replicate to such a module, so that each has weights of its own. It is run in eval mode
            and given back in the mode that it was in.
        norms: N, ascending from 0 or more.
        width: of the block's input; found by itself where possible.
        replicates: S, how often table, sequences and direction are drawn.
        sequences: of each replicate.
        length: tokens of a sequence.
        vocabulary: rows of the embedding table.
        std: of its entries.
        seed: of all draws.
        metrics: names from the registry.
        batch_size: sequences per forward pass; the numbers do not depend on it.
        name: what the block is called in the profile and in messages.
        progress: called after each forward pass with the number of its sequences.

    Returns:
        Layers ``input.k`` and ``output.k`` for the k-th norm, which is their ``at``; blocks are
        replicates.

    Raises:
        IsotestError: the block fails, returns something else, yields NaN, or an argument is at
            fault; the text says what to do.

    >>> from isotest.blocks import BlockConfig, TransformerBlock
    >>> config = BlockConfig(width=16, heads=2, hidden=32)
    >>> profile = drift(
    ...     lambda replicate: TransformerBlock(config, seed=replicate),
    ...     norms=[0, 8], replicates=2, sequences=4, length=8, vocabulary=64,
    ... )
    >>> [(layer.name, layer.at) for layer in profile.layers]
    [('input.0', 0.0), ('input.1', 8.0), ('output.0', 0.0), ('output.1', 8.0)]
    >>> round(profile.layers[-1].estimates["mean_norm"].value, 3)  # √16, by the LayerNorm
    4.0
    """
    experiment = Experiment(
        tuple(float(norm) for norm in norms),
        replicates,
        sequences,
        EmbeddingTable(std, vocabulary, length),
        seed,
    )

    def of(replicate: int) -> StudiedBlock:
        module = block if isinstance(block, nn.Module) else block(replicate)
        if not isinstance(module, nn.Module):
            raise MeasurementError(
                f"drift: expected a module for replicate {replicate}, found {type(module).__name__}"
            )
        found = width_of(module, "drift") if width is None else width
        return StudiedBlock(module, found, "drift")

    return measure_drift(
        of,
        experiment,
        metrics,
        source=name,
        model=name,
        anew=not isinstance(block, nn.Module),
        batch_size=batch_size,
        progress=progress,
    )


def measure_drift(
    block_of: Callable[[int], StudiedBlock],
    experiment: Experiment,
    metrics: Sequence[str],
    *,
    source: str,
    model: str,
    anew: bool,
    path: str = "",
    suite: str = "",
    config: str | None = None,
    commit: str | None = None,
    versions: Mapping[str, str] | None = None,
    batch_size: int = 8,
    progress: Progress | None = None,
) -> Profile:
    """Run the experiment on the block of each replicate.

    Args:
        block_of: from the number of a replicate to its block.
        experiment: what is drawn.
        metrics: names from the registry.
        source: where the block is from, for the provenance.
        model: the entry's name.
        anew: whether each replicate has weights of its own.
        path: of the block inside its model.
        suite: the suite's id; empty outside a suite.
        config: digest of the configuration of the model around the block, where it has one.
        commit: resolved commit of a ``hub:`` source.
        versions: of the libraries that built the block.
        batch_size: sequences per forward pass.
        progress: called after each forward pass.

    Raises:
        IsotestError: as :func:`drift`.
    """
    for name in metrics:
        if name not in METRICS:
            raise IsotestError(f"unknown metric {name!r}{did_you_mean(name, METRICS)}")
    if not metrics or batch_size < 1:
        found = "no metric" if not metrics else f"batch_size = {batch_size}"
        raise MeasurementError(f"drift: expected a metric and batches of at least 1, found {found}")
    sides: list[list[tuple[Side, Side]]] = []
    weights: list[str] = []
    ids = hashlib.sha256()
    studied = block_of(0)
    for number in range(experiment.replicates):
        if anew and number:
            studied = block_of(number)
        if anew or not number:
            weights.append(weights_fingerprint(studied.module))
        drawn = experiment.draw(studied.width, number)
        ids.update(drawn.ids.astype("<i8").tobytes())
        with studied.running():
            replicate = Replicate(
                studied,
                drawn,
                metrics,
                batch_size=batch_size,
                number=number,
                name=model,
                progress=progress or (lambda _count: None),
            )
            sides.append([replicate.at(norm) for norm in experiment.norms])
    layer = partial(layer_profile, module=path, width=studied.width)
    return Profile(
        suite=suite,
        model=model,
        modality="embeddings",
        sequences=experiment.replicates * experiment.sequences,
        units=experiment.replicates * experiment.sequences,
        block_sequences=(experiment.sequences,) * experiment.replicates,
        layers=tuple(
            layer(f"{stack}.{k}", norm, [of_replicate[k][side] for of_replicate in sides])
            for side, stack in enumerate(("input", "output"))
            for k, norm in enumerate(experiment.norms)
        ),
        provenance=Provenance(
            source=source,
            architecture={
                **architecture(studied.module),
                **({} if config is None else {"config": config}),
            },
            protocol={
                **experiment.describe(),
                "block": path,
                "representation": "positions",
                "weights": "of each replicate" if anew else "the same",
                "dtype": str(studied.dtype).removeprefix("torch."),
            },
            data=ids.hexdigest(),
            weights=weights[0] if not anew else hashlib.sha256(repr(weights).encode()).hexdigest(),
            commit=commit,
            device=studied.device.type,
            versions={
                "torch": version("torch"),
                **(versions or {}),
                "isotest": version("isotest"),
            },
            created=datetime.now(UTC).isoformat(timespec="microseconds"),
        ),
    )
