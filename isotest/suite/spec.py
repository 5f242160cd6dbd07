"""The validated form of a suite file, table by table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path  # noqa: TC003 - pydantic resolves it
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    JsonValue,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from isotest.errors import SourceError
from isotest.gate.checks import without_baseline
from isotest.source import DATA_SCHEMES, MODEL_SCHEMES, did_you_mean, parse_source
from isotest.statistics.registry import METRICS
from isotest.suite.ablate import EXPECTED, AblationName, Switches, ablation_faults
from isotest.suite.bound import bound_faults
from isotest.suite.checks import Checks, CheckSpec, fault
from isotest.suite.drift import DriftSpec, embeddings_faults
from isotest.suite.experiments import experiment_faults
from isotest.suite.names import NAME_PATTERN, folded, name_fault
from isotest.suite.tasks import PathsSpec, RecurrenceSpec, tasks_faults

Modality = Literal["vision", "text", "characters", "speech", "embeddings", "tasks"]
MODALITIES: tuple[str, ...] = get_args(Modality)

_LARGEST_SEED = 2**63 - 1

_Pixels = Annotated[int, Field(ge=1)]
_Positive = Annotated[FiniteFloat, Field(gt=0)]


def _expected(what: str) -> WrapValidator:
    """One message for a type with alternatives, in place of one for each of them."""

    def validate(value: object, handler: ValidatorFunctionWrapHandler) -> object:
        try:
            return handler(value)
        except ValidationError:
            raise PydanticCustomError("expected", "expected {what}", {"what": what}) from None

    return WrapValidator(validate)


def _source_of(schemes: Collection[str]) -> AfterValidator:
    def validate(text: str) -> str:
        try:
            parse_source(text, schemes)
        except SourceError as error:
            raise PydanticCustomError("fault", "{text}", {"text": str(error)}) from None
        return text

    return AfterValidator(validate)


def _named(name: str) -> str:
    if problem := name_fault(name):
        raise PydanticCustomError("fault", "{text}", {"text": problem})
    return name


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class DataSpec(_Table):
    """The ``[data]`` table: what is fed through every model."""

    source: Annotated[str, _source_of(DATA_SCHEMES)] = Field(
        description="where the samples come from, as scheme:location; relative paths start at the "
        "suite's folder",
        examples=[
            "sample:photographs",
            "folder:data/val",
            "embeddings:normal?length=512",
            "task:sorting",
        ],
    )
    samples: Annotated[
        Annotated[int, Field(ge=2)] | Literal["all"],
        _expected('a whole number of at least 2, or "all"'),
    ] = Field("all", description="how many samples to measure")
    seed: int = Field(
        0, ge=0, le=_LARGEST_SEED, description="which samples, where fewer than all are measured"
    )


class MeasureSpec(_Table):
    """A ``[measure]`` table: what counts as a representation, and in which precision."""

    representation: Literal["positions", "flattened"] | None = Field(
        None,
        description="'positions': every token or map position is a representation; 'flattened': "
        "one input, one representation; by the kind of architecture unless given (tokens: "
        "positions, feature maps: flattened)",
    )
    special_tokens: Literal["include", "exclude"] = Field(
        "exclude",
        description="whether tokens count that a tokenizer or a model adds (CLS, SEP, registers)",
    )
    batch_size: int = Field(
        8, ge=1, description="inputs per forward pass; the numbers do not depend on it"
    )
    dtype: Literal["float32", "float64", "bfloat16", "float16"] = Field(
        "float32", description="of the model; sums are always kept in float64"
    )
    tokenizer: str | None = Field(
        None,
        min_length=1,
        description="what turns texts into ids: a source such as 'sample:tokenizer' (for untrained "
        "models) or 'hub:OWNER/NAME', or 'bytes', 'codepoints', 'words'; the model's own unless "
        "given",
    )
    packing: Literal["windows", "documents"] = Field(
        "windows",
        description="'windows': texts are joined and cut into sequences of exactly 'length'; "
        "'documents': one text, one sequence, cut off after 'length'",
    )
    length: int = Field(
        128,
        ge=1,
        description="of a text's sequences, in the model's units (tokens, characters, bytes, "
        "words), special ones included",
    )
    decoder: Literal["input", "transcript", "random"] | None = Field(
        None,
        description="what the decoder of an encoder-decoder model reads: 'input': the text, "
        "shifted right; 'transcript': of a recording; 'random': ids drawn by the number of the "
        "sequence, for untrained models; by the modality unless given (text: input, speech: "
        "transcript)",
    )
    metrics: Annotated[
        Literal["default", "all"] | Annotated[tuple[str, ...], Field(strict=False)],
        _expected('"default", "all", or a list of metrics'),
    ] = Field(
        "default",
        description="what is measured beside the metrics that the checks judge, which always are: "
        "'default': all that cost next to nothing; 'all': also spectra, neighbours and attention; "
        "or a list of names",
    )

    @model_validator(mode="after")
    def _metrics_exist(self) -> Self:
        if isinstance(self.metrics, str):
            return self
        faults = [
            fault(f"unknown metric {name!r}{did_you_mean(name, METRICS)}", ("metrics", index), name)
            for index, name in enumerate(self.metrics)
            if name not in METRICS
        ]
        if faults:
            raise ValidationError.from_exception_data("measure", faults)
        return self


class PreprocessSpec(TypedDict, total=False):
    """A ``preprocess`` table: how images become input; it replaces the model's own whole."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]

    size: Annotated[
        _Pixels | Annotated[list[_Pixels], Field(min_length=2, max_length=2)],
        _expected("a whole number of pixels, or [height, width]"),
        Field(description="of the input, in pixels: the side of a square, or [height, width]"),
    ]
    resize: Annotated[
        _Pixels,
        Field(
            description="length of the shorter edge before the centre is cut out, in pixels; an "
            "image is stretched to 'size' unless given"
        ),
    ]
    interpolation: Annotated[
        Literal["nearest", "bilinear", "bicubic"], Field(description="of the resizing")
    ]
    mean: Annotated[
        FiniteFloat | Annotated[list[FiniteFloat], Field(min_length=1)],
        _expected("a finite number, or one for each channel"),
        Field(description="subtracted, on the scale 0…1: a number, or one for each channel"),
    ]
    std: Annotated[
        _Positive | Annotated[list[_Positive], Field(min_length=1)],
        _expected("a positive number, or one for each channel"),
        Field(description="divided by, on the scale 0…1: a number, or one for each channel"),
    ]
    channels: Annotated[Literal[1, 3], Field(description="3 for RGB, 1 for grey")]


LayerPaths = Annotated[
    Annotated[tuple[str, ...], Field(strict=False, min_length=1)]
    | Annotated[Mapping[str, str], Field(min_length=1)],
    _expected("a list of module paths, or a table of layer names and module paths; not empty"),
]


class ModelSpec(_Table):
    """A ``[[models]]`` entry: one model, measured once, judged by every check."""

    name: Annotated[str, AfterValidator(_named)] = Field(
        description="of the entry in node ids, reports and the baseline's file name",
        json_schema_extra={"pattern": NAME_PATTERN},
    )
    source: Annotated[str, _source_of(MODEL_SCHEMES)] = Field(
        description="where the model comes from, as scheme:location; relative paths start at the "
        "suite's folder",
        examples=["init:vit?seed=0", "hub:google/vit-base-patch16-224", "task:sorting"],
    )
    optional: bool = Field(
        False, description="skip the entry, naming what is missing, where it cannot be had"
    )
    baseline: bool = Field(
        True,
        description="false: there is no baseline of this entry, and of its checks only what they "
        "demand without one applies (limits, 'expect')",
    )
    config: Annotated[
        dict[str, JsonValue], _expected("a table of strings, numbers, booleans, arrays, tables")
    ] = Field(
        default_factory=dict,
        description="overrides of the library's default configuration; for init:, block:, and for "
        "path: with architecture=",
    )
    preprocess: PreprocessSpec | None = Field(
        None, description="how images become input; the model's own preprocessing unless given"
    )
    layers: LayerPaths | None = Field(
        None,
        description="modules to observe, by dotted path, which become layers 0, 1, …; or a table "
        "of layer names and paths; by the architecture unless given",
    )
    block: Annotated[str, Field(min_length=1)] | None = Field(
        None,
        description="in suites of modality 'embeddings': dotted path of the block inside the "
        "model; the whole model unless given",
        examples=["encoder.layer.0"],
    )
    width: Annotated[int, Field(ge=1)] | None = Field(
        None,
        description="in suites of modality 'embeddings': entries of a vector that the block takes; "
        "found in the block unless given",
    )
    ablate: Annotated[AblationName | Switches, _expected(EXPECTED)] | None = Field(
        None,
        description="parts switched off in every block of a transformer: a variant of Dong et al. "
        "(2021), 'full', 'san', 'san+mlp', 'san+skip' or 'authors-san+mlp', or a table of switches",
        examples=["san", {"layer_norm": False}],
    )
    measure: MeasureSpec | None = Field(
        None, description="overrides of [measure], key by key, for this entry"
    )
    checks: Checks = Field(
        default_factory=dict,
        description="checks of this entry; one of the suite's with the same name is replaced whole",
    )

    @model_validator(mode="after")
    def _config_is_used(self) -> Self:
        source = parse_source(self.source, MODEL_SCHEMES)
        builds = source.scheme in ("init", "block") or (
            source.scheme == "path" and "architecture" in source.options
        )
        if self.config and not builds:
            raise PydanticCustomError(
                "fault",
                "{text}",
                {
                    "text": "'config' only applies where a model is built: to init:, block:, and "
                    f"path: with architecture=; {source.scheme}: brings its own configuration"
                },
            )
        return self


def _distinct(models: tuple[ModelSpec, ...]) -> tuple[ModelSpec, ...]:
    first: dict[str, int] = {}
    faults = []
    for index, model in enumerate(models):
        position = first.setdefault(folded(model.name), index)
        if position == index:
            continue
        earlier = models[position].name
        text = f"two models are named {model.name!r}"
        if earlier != model.name:
            text = (
                f"the names {earlier!r} and {model.name!r} differ only in case or accent encoding; "
                "their baselines would share a file where file names ignore that: rename one"
            )
        faults.append(fault(text, (index, "name"), model.name))
    if faults:
        raise ValidationError.from_exception_data("models", faults)
    return models


def _some(checks: Mapping[str, CheckSpec]) -> Mapping[str, CheckSpec]:
    if not checks:
        raise PydanticCustomError("too_short", "expected at least one")
    return checks


class SuiteFile(_Table):
    """A suite: models, the data they see, and what is demanded of their layer curves."""

    title: str | None = Field(None, description="what the suite is about, for reports")
    modality: Modality = Field(description="kind of data")
    data: DataSpec = Field(description="what is fed through every model")
    drift: DriftSpec | None = Field(
        None, description="the drift experiment, in suites of modality 'embeddings'"
    )
    paths: PathsSpec | None = Field(
        None,
        description="what the paths of a network are worth by themselves, in suites of modality "
        "'tasks' about memorization, sorting or convex-hull",
    )
    recurrence: RecurrenceSpec | None = Field(
        None,
        description="whether trajectories stay apart, in suites of modality 'tasks' about circle",
    )
    measure: MeasureSpec = Field(
        default_factory=MeasureSpec, description="what counts as a representation"
    )
    models: Annotated[
        tuple[ModelSpec, ...], Field(strict=False, min_length=1), AfterValidator(_distinct)
    ] = Field(description="the models, an entry each")
    checks: Annotated[Checks, AfterValidator(_some)] = Field(
        description="what is demanded of every model, a table for each check"
    )

    def checks_of(self, model: ModelSpec) -> Mapping[str, CheckSpec]:
        """The checks of an entry: the suite's, with the entry's own in their place or added.

        Of an entry without a baseline, what they demand without one.
        """
        checks = {**self.checks, **model.checks}
        if model.baseline:
            return checks
        remaining = {name: without_baseline(check) for name, check in checks.items()}
        return {name: check for name, check in remaining.items() if check is not None}

    @model_validator(mode="after")
    def _something_is_demanded(self) -> Self:
        faults = [
            fault(
                "'baseline = false' leaves no check that demands anything; "
                "give it one with 'max', 'min', 'reach', 'trend' or 'expect'",
                ("models", index, "baseline"),
                model.baseline,
            )
            for index, model in enumerate(self.models)
            if not self.checks_of(model)
        ]
        faults += [
            *experiment_faults(self),
            *embeddings_faults(self),
            *bound_faults(self),
            *tasks_faults(self),
            *ablation_faults(self),
        ]
        if faults:
            raise ValidationError.from_exception_data("suite", faults)
        return self


class Suite(SuiteFile):
    """A suite with its place.

    Attributes:
        path: the file; relative sources in it start at its folder.
        id: its path below the root, posix, without ``.toml``: the key of its baselines.
    """

    path: Path
    id: str

    def measure_of(self, model: ModelSpec) -> MeasureSpec:
        """How an entry is measured: the suite's table, with the keys the entry sets itself."""
        if model.measure is None:
            return self.measure
        own: dict[str, Any] = model.measure.model_dump(exclude_unset=True)
        return self.measure.model_copy(update=own)
