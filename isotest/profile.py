"""Profile: what was measured of one model on one data sample, and under which conditions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isotest.attention_heads import AttentionHeads, AttentionKind
    from isotest.estimate import Estimate

DECIDED = "decided by the model: positions of "
"""In front of a layer's name in the protocol: how many positions it has depends on the weights."""


@dataclass(frozen=True)
class LayerProfile:
    """One point of every curve.

    Attributes:
        name: ``"0"`` for the embedding output (the stem of a convolutional net), ``"k"`` for the
            output of block k, ``"final"`` for the final normalisation.
        module: dotted path of the observed module inside the model.
        width: length of one representation.
        representations: how many valid (unmasked) representations were seen.
        zero_length: how many of them have zero length and thus no direction.
        block_representations: valid representations in each block, in block order.
        estimates: metric name to estimate.
        attention: each head by itself, by kind of attention, where attention metrics were measured
            and the layer has some.
        at: where on the axis of an experiment the point stands (the norm N that was added to a
            block's input), in the unit of the representations; ``None`` where depth is the axis.
    """

    name: str
    module: str
    width: int
    representations: int
    zero_length: int
    block_representations: tuple[int, ...]
    estimates: Mapping[str, Estimate]
    attention: Mapping[AttentionKind, AttentionHeads] = field(default_factory=dict)
    at: float | None = None

    @property
    def label(self) -> str:
        """The name, with where the point stands: ``"output.5 (N = 16)"``."""
        return labelled(self.name, self.at)


def labelled(layer: str, at: float | None) -> str:
    """A layer's name, with where it stands on the axis of an experiment, if it does.

    >>> labelled("output.5", 16.0)
    'output.5 (N = 16)'
    """
    return layer if at is None else f"{layer} (N = {at:g})"


@dataclass(frozen=True)
class BlockProperty:
    """What became of one property that a block of the model was tried for.

    Attributes:
        name: the property's name, such as ``"causal"``.
        result: how it turned out.
        text: the smallest counterexample, or why it does not apply; of one that holds, on what it
            was tried.
        reproduce: one line of Python that shows a violation again; empty without one.
    """

    name: str
    result: Literal["holds", "violated", "not applicable"]
    text: str
    reproduce: str = ""


@dataclass(frozen=True)
class SequenceBound:
    """What the bound of rank collapse says of one sequence, and what happened to the sequence.

    The symbols are those of :mod:`isotest.blocks.bound`. Where a precondition fails before
    anything is computed (a skip, an MLP), only ``outcome``, ``reason``, H and d_qk are known.

    Attributes:
        outcome: "holds" or "violated" where the preconditions hold and the bound says something.
        reason: why, in words.
        heads: H.
        head_width: d_qk.
        beta: β, over all layers and heads.
        gamma: γ, over all layers, heads and queries.
        score_range: the widest span of a row of scores.
        contraction: c·‖res(X)‖² of the input; the bound contracts below 1.
        residuals: ‖res(X)‖ of the input and behind each layer.
        log10_bounds: log₁₀ of the bound behind each layer; empty where the bound is zero.
    """

    outcome: Literal["holds", "violated", "vacuous", "precondition failed"]
    reason: str
    heads: int
    head_width: int
    beta: float | None = None
    gamma: float | None = None
    score_range: float | None = None
    contraction: float | None = None
    residuals: tuple[float, ...] = ()
    log10_bounds: tuple[float, ...] = ()


@dataclass(frozen=True)
class Provenance:
    """The conditions of a measurement, split by what a difference in them means.

    Attributes:
        source: the model source as text.
        architecture: class name, digest of parameter shapes, digest of the configuration; a
            difference makes profiles not comparable.
        protocol: everything that decides which numbers come out beside weights and data (data
            source, samples, seed, representation, special tokens, preprocessing, layers, dtype);
            flat, JSON-able; a difference makes profiles not comparable.
        data: digest of the decoded samples and their groups; a difference makes profiles not
            comparable.
        commit: the resolved commit of a ``hub:`` source, which a baseline insists on.
        weights: digest of the parameters and buffers: identity, not a condition.
        device: ``"cpu"``, ``"cuda"``, …: recorded, not a condition.
        versions: of python, isotest, torch and the libraries that built the model: recorded.
        created: UTC, ISO 8601.
    """

    source: str
    architecture: Mapping[str, str]
    protocol: Mapping[str, str | int | float | bool | None]
    data: str
    weights: str
    commit: str | None
    device: str
    versions: Mapping[str, str]
    created: str


@dataclass(frozen=True)
class Profile:
    """All curves of one model on one data sample, with provenance.

    Attributes:
        suite: the suite's id (its path below the root, posix, without ``.toml``), or ``""``.
        model: the entry's name.
        modality: ``"vision"``, …
        sequences: how many inputs were measured; ``units``: how many independent groups they form.
        block_sequences: sequences in each block, in block order.
        layers: from embedding to final, in order.
        provenance: the conditions.
        properties: what a block of the model was tried for, where a check asks for it; findings
            about this measurement, no condition of a comparison.
        bounds: what the bound of rank collapse says of each sequence, in order, where a check asks
            for it; findings, too.
    """

    suite: str
    model: str
    modality: str
    sequences: int
    units: int
    block_sequences: tuple[int, ...]
    layers: tuple[LayerProfile, ...]
    provenance: Provenance
    properties: tuple[BlockProperty, ...] = ()
    bounds: tuple[SequenceBound, ...] = ()

    def decides_positions(self, layer: str) -> bool:
        """Whether the model itself decides how many representations there are at ``layer``.

        Where it does not (nearly everywhere), the number follows from data and protocol.
        """
        return self.provenance.protocol.get(f"{DECIDED}{layer}") is True

    def curve(self, metric: str) -> tuple[float | None, ...]:
        """The values of ``metric``, a layer each; ``None`` where undefined or not measured."""
        return tuple(
            layer.estimates[metric].value if metric in layer.estimates else None
            for layer in self.layers
        )
