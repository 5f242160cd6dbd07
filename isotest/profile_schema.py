"""What a profile file must look like, and what in it must agree with what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, NonNegativeInt, PositiveInt

from isotest.statistics.attention.histogram import BINS

if TYPE_CHECKING:
    from collections.abc import Iterator

Name = Annotated[str, Field(min_length=1)]
Share = Annotated[FiniteFloat, Field(ge=0, le=1)]


class _Strict(BaseModel):
    """No conversions: a ``"3"`` is not a 3, and a key that is not known is a fault."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class EstimateFile(_Strict):
    """``isotest.estimate.Estimate`` in a file."""

    value: FiniteFloat | None
    se: Annotated[FiniteFloat, Field(ge=0)] | None
    blocks: list[FiniteFloat]
    undefined: Name | None
    vacuous: bool
    isotropic: FiniteFloat | None
    basis: Name | None
    dropped: NonNegativeInt | None


class ModuleFile(_Strict):
    """An attention module of a layer, and how many heads it has."""

    path: str
    heads: PositiveInt


class AttentionFile(_Strict):
    """``isotest.attention_heads.AttentionHeads`` in a file."""

    modules: Annotated[list[ModuleFile], Field(min_length=1)]
    entropy: list[Share | None]
    row_max: list[Share]
    histogram: list[NonNegativeInt]


class LayerFile(_Strict):
    """``isotest.profile.LayerProfile`` in a file."""

    name: Name
    module: str
    width: PositiveInt
    representations: NonNegativeInt
    zero_length: NonNegativeInt
    block_representations: list[NonNegativeInt]
    estimates: dict[Name, EstimateFile]
    attention: dict[Literal["self", "cross"], AttentionFile] = {}
    at: FiniteFloat | None = None


class PropertyFile(_Strict):
    """``isotest.profile.BlockProperty`` in a file."""

    name: Name
    result: Literal["holds", "violated", "not applicable"]
    text: str
    reproduce: str


class BoundFile(_Strict):
    """``isotest.profile.SequenceBound`` in a file."""

    outcome: Literal["holds", "violated", "vacuous", "precondition failed"]
    reason: str
    heads: PositiveInt
    head_width: PositiveInt
    beta: Annotated[FiniteFloat, Field(ge=0)] | None
    gamma: Annotated[FiniteFloat, Field(ge=1)] | None
    score_range: Annotated[FiniteFloat, Field(ge=0)] | None
    contraction: Annotated[FiniteFloat, Field(ge=0)] | None
    residuals: list[Annotated[FiniteFloat, Field(ge=0)]]
    log10_bounds: list[FiniteFloat]


class ProvenanceFile(_Strict):
    """``isotest.profile.Provenance`` in a file."""

    source: str
    architecture: dict[str, str]
    protocol: dict[str, str | bool | int | FiniteFloat | None]
    data: Name
    weights: Name
    commit: str | None
    device: str
    versions: dict[str, str]
    created: str


class ProfileFile(_Strict):
    """``isotest.profile.Profile`` in a file, with its format and the digest of all the rest."""

    format: Literal["isotest-profile"]
    format_version: Literal[2]
    digest: str
    suite: str
    model: Name
    modality: Name
    sequences: PositiveInt
    units: PositiveInt
    block_sequences: Annotated[list[NonNegativeInt], Field(min_length=1)]
    layers: Annotated[list[LayerFile], Field(min_length=1)]
    provenance: ProvenanceFile
    properties: list[PropertyFile] = []
    bounds: list[BoundFile] = []


def inconsistencies(file: ProfileFile) -> Iterator[str]:
    """Everything in ``file`` that contradicts something else in it.

    Whether a value follows from its blocks is not checked: for most metrics the jackknife's
    pseudo-values average to the value only nearly. The digest guards the numbers instead.
    """
    if sum(file.block_sequences) != file.sequences:
        yield (
            f"block_sequences add up to {sum(file.block_sequences)}, but sequences is "
            f"{file.sequences}"
        )
    if file.units > file.sequences:
        yield f"units is {file.units}, more than the {file.sequences} sequences they group"
    names = [layer.name for layer in file.layers]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"two layers are called {name!r}"
    tried = [each.name for each in file.properties]
    for name in sorted({name for name in tried if tried.count(name) > 1}):
        yield f"two properties are called {name!r}"
    if file.bounds and len(file.bounds) != file.sequences:
        yield f"bounds are those of {len(file.bounds)} sequences, but sequences is {file.sequences}"
    for number, bound in enumerate(file.bounds):
        yield from _bound_inconsistencies(bound, number)
    for layer in file.layers:
        yield from _layer_inconsistencies(layer, blocks=len(file.block_sequences))


def _bound_inconsistencies(bound: BoundFile, number: int) -> Iterator[str]:
    at = f"the bound of sequence {number}"
    known = [bound.beta, bound.gamma, bound.score_range, bound.contraction]
    if any((each is None) != (not bound.residuals) for each in known):
        yield f"{at} has some of β, γ, scores, contraction and residuals, and lacks others"
    if bound.outcome != "precondition failed" and not bound.residuals:
        yield f"{at} is called {bound.outcome!r}, and yet it has no residuals"
    if bound.log10_bounds and len(bound.log10_bounds) != len(bound.residuals) - 1:
        yield (
            f"{at} is known behind {len(bound.log10_bounds)} layers, and the residual at "
            f"{len(bound.residuals)}, the input included"
        )


def _layer_inconsistencies(layer: LayerFile, blocks: int) -> Iterator[str]:
    at = f"at layer {layer.name!r}:"
    if len(layer.block_representations) != blocks:
        yield (
            f"{at} block_representations has {len(layer.block_representations)} blocks, "
            f"block_sequences has {blocks}"
        )
    if sum(layer.block_representations) != layer.representations:
        yield (
            f"{at} block_representations add up to {sum(layer.block_representations)}, but "
            f"representations is {layer.representations}"
        )
    if layer.zero_length > layer.representations:
        yield (
            f"{at} zero_length is {layer.zero_length}, more than the {layer.representations} "
            "representations"
        )
    for metric, estimate in layer.estimates.items():
        if (estimate.value is None) == (estimate.undefined is None):
            yield f"{at} {metric} must have either a value or the reason why it is undefined"
        if estimate.value is None and (estimate.se is not None or estimate.blocks):
            yield f"{at} {metric} has no value, and yet a standard error or blocks"
        if estimate.value is None and estimate.isotropic is not None:
            yield f"{at} {metric} has no value, and yet that of isotropic data"
        if estimate.vacuous and estimate.undefined is None:
            yield f"{at} {metric} has a value, and yet is called vacuous"
        if estimate.blocks and len(estimate.blocks) != blocks:
            yield (f"{at} {metric} has {len(estimate.blocks)} blocks, block_sequences has {blocks}")
    for kind, heads in layer.attention.items():
        count = sum(module.heads for module in heads.modules)
        for name, values in (("entropy", heads.entropy), ("row_max", heads.row_max)):
            if len(values) != count:
                yield f"{at} {name} of {kind}-attention has {len(values)} of {count} heads"
        if len(heads.histogram) != BINS:
            yield (
                f"{at} the histogram of {kind}-attention has {len(heads.histogram)} bins, expected "
                f"{BINS}"
            )
