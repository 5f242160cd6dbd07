"""The ``[checks.*]`` tables: which name means which kind of check, and what makes one senseless."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from isotest.errors import IsotestError
from isotest.gate.checks import (
    NO_RELATIVE_MARGIN,
    BlockPropertiesCheck,
    CollapseBoundCheck,
    CollapseExponentCheck,
    DriftCorrelationCheck,
    FixedPointCheck,
    MetricCheck,
    subtracted_from_itself,
)
from isotest.gate.layers import PART, SINGLE, parse_selectors
from isotest.source import did_you_mean
from isotest.statistics.registry import METRICS
from isotest.suite.names import name_fault

CheckSpec = (
    MetricCheck
    | DriftCorrelationCheck
    | FixedPointCheck
    | BlockPropertiesCheck
    | CollapseExponentCheck
    | CollapseBoundCheck
)

FINITE = "finite"

KINDS: Mapping[str, type[CheckSpec]] = {
    "drift_correlation": DriftCorrelationCheck,
    "fixed_point": FixedPointCheck,
    "block_properties": BlockPropertiesCheck,
    "collapse_exponent": CollapseExponentCheck,
    "collapse_bound": CollapseBoundCheck,
}
"""The tables that are a kind of check by their name; all others judge a metric."""

METRIC_DEMANDS = ("max", "min", "reach", "trend", "baseline")
"""The keys of a metric's check of which one at least must be there."""

Location = tuple[str | int, ...]


def check_class(name: str) -> type[CheckSpec]:
    """The kind of check that a table of this name describes."""
    return KINDS.get(name, MetricCheck)


def fault(text: str, location: Location, value: object) -> InitErrorDetails:
    """A fault in our own words, for ``ValidationError.from_exception_data``."""
    return InitErrorDetails(
        type=PydanticCustomError("fault", "{text}", {"text": text}), loc=location, input=value
    )


def _validate(tables: object) -> Mapping[str, CheckSpec]:
    if not isinstance(tables, dict):
        raise PydanticCustomError("dict_type", "expected tables [checks.NAME]")
    checks: dict[str, CheckSpec] = {}
    faults: list[InitErrorDetails] = []
    for name, table in tables.items():
        faults.extend(_name_faults(name, table))
        if name == FINITE:
            continue
        try:
            check = check_class(name).model_validate(table)
        except ValidationError as error:
            faults.extend(_below(name, error))
            continue
        faults.extend(_senseless(name, check))
        checks[name] = check
    if faults:
        raise ValidationError.from_exception_data("checks", faults)
    return checks


def _below(name: str, error: ValidationError) -> Iterator[InitErrorDetails]:
    for each in error.errors(include_url=False):
        location = (name, *each["loc"])
        if each["type"] == "fault":
            yield fault(each["msg"], location, each["input"])
        else:
            yield InitErrorDetails(
                type=PydanticCustomError(each["type"], "{msg}", {"msg": each["msg"]}),
                loc=location,
                input=each["input"],
            )


def _name_faults(name: str, table: Any) -> Iterator[InitErrorDetails]:
    if name == FINITE:
        yield fault(
            "'finite' is always checked, on every entry and layer; leave [checks.finite] out",
            (name,),
            table,
        )
        return
    if problem := name_fault(name):
        yield fault(f"check: {problem}", (name,), table)
    metric = table.get("metric") if isinstance(table, dict) else None
    if name in KINDS or metric == name:
        return
    if isinstance(metric, str):
        if metric not in METRICS:
            yield fault(
                f"unknown metric {metric!r}{did_you_mean(metric, METRICS)}",
                (name, "metric"),
                metric,
            )
        elif name in METRICS:
            yield fault(
                f"check {name!r} would judge {metric!r}: give it a name that is no other metric's",
                (name, "metric"),
                metric,
            )
    elif metric is None and name not in METRICS:
        hint = did_you_mean(name, [*METRICS, *KINDS])
        yield fault(
            f'unknown check {name!r}{hint} (a check of another name says: metric = "…")',
            (name,),
            table,
        )


def _senseless(name: str, check: CheckSpec) -> Iterator[InitErrorDetails]:
    """A check that could only ever be green, or only ever red."""
    if isinstance(check, DriftCorrelationCheck):
        if check.expect is None and check.baseline is None:
            yield fault(
                f"check {name!r} demands nothing; give it 'expect' or 'baseline'", (name,), None
            )
    elif isinstance(check, FixedPointCheck):
        yield from _senseless_fixed_point(name, check)
    elif isinstance(check, CollapseExponentCheck):
        yield from _senseless_collapse(name, check)
    elif isinstance(check, MetricCheck):
        yield from _senseless_metric(name, check)


def _senseless_collapse(name: str, check: CollapseExponentCheck) -> Iterator[InitErrorDetails]:
    if check.by >= check.exponent:
        yield fault(
            f"by = {check.by:g} reaches down from exponent = {check.exponent:g} to zero or below: "
            "every curve that falls would do",
            (name, "by"),
            check.by,
        )
    try:
        selectors = parse_selectors(check.layers)
    except IsotestError as error:
        yield fault(str(error), (name, "layers"), check.layers)
        return
    one = selectors[0]
    few = one.word in SINGLE or (not one.word and one.end - one.first < 2)
    if len(selectors) == 1 and few:
        yield fault(
            f"layers = {check.layers!r}: an exponent takes three layers in a row, such as '0-2'",
            (name, "layers"),
            check.layers,
        )


def _senseless_fixed_point(name: str, check: FixedPointCheck) -> Iterator[InitErrorDetails]:
    if check.metric not in METRICS:
        yield fault(
            f"unknown metric {check.metric!r}{did_you_mean(check.metric, METRICS)}",
            (name, "metric"),
            check.metric,
        )
    yield from _no_part(name, "of", check.of)
    yield from _no_part(name, "minus", check.minus)
    if check.of == check.minus:
        yield fault(
            f"of and minus are both {check.of!r}: a curve meets itself everywhere",
            (name, "minus"),
            check.minus,
        )
    yield from _no_room(name, check)


def _no_part(name: str, key: str, part: str) -> Iterator[InitErrorDetails]:
    if not PART.fullmatch(part):
        yield fault(
            f"{key} = {part!r}: expected the name of a part of the model, such as 'input' or "
            "'encoder'",
            (name, key),
            part,
        )


def _no_room(name: str, check: MetricCheck | FixedPointCheck) -> Iterator[InitErrorDetails]:
    if check.max is not None and check.min is not None and check.min > check.max:
        yield fault(
            f"min = {check.min:g} is above max = {check.max:g}: no value satisfies both",
            (name, "min"),
            check.min,
        )


def _senseless_metric(name: str, check: MetricCheck) -> Iterator[InitErrorDetails]:
    if all(getattr(check, demand) is None for demand in METRIC_DEMANDS):
        yield fault(
            f"check {name!r} demands nothing; give it 'max', 'min', 'reach', 'trend' or 'baseline'",
            (name,),
            None,
        )
    yield from _no_room(name, check)
    if check.max is not None and check.reach is not None and check.reach > check.max:
        yield fault(
            f"reach = {check.reach:g} is above max = {check.max:g}: no value satisfies both",
            (name, "reach"),
            check.reach,
        )
    try:
        selectors = parse_selectors(check.layers)
    except IsotestError as error:
        yield fault(str(error), (name, "layers"), check.layers)
        return
    if check.minus is not None:
        yield from _no_part(name, "minus", check.minus)
        if any(selector.stack == check.minus for selector in selectors):
            yield fault(
                subtracted_from_itself(check.layers, check.minus), (name, "layers"), check.layers
            )
        if check.baseline is not None and check.baseline.margin_relative is not None:
            yield fault(
                NO_RELATIVE_MARGIN,
                (name, "baseline", "margin_relative"),
                check.baseline.margin_relative,
            )
    one = selectors[0]
    single = one.word in SINGLE or (not one.word and one.first == one.end)
    if check.trend is not None and len(selectors) == 1 and single:
        yield fault(
            f"layers = {check.layers!r} is one layer, and a trend leads from one to another; write "
            "a range such as '3-7', or several with commas between, such as 'last,final'",
            (name, "layers"),
            check.layers,
        )


class ChecksTable(BaseModel):
    """The ``[checks]`` tables, as editors see them: any name, by name its kind."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, MetricCheck] = Field(init=False)

    drift_correlation: DriftCorrelationCheck | None = Field(
        None, description="is anisotropy explained by drift?"
    )
    fixed_point: FixedPointCheck | None = Field(
        None, description="where do what enters a block and what leaves it meet?"
    )
    block_properties: BlockPropertiesCheck | None = Field(
        None, description="does a block of the model do what every transformer block must?"
    )
    collapse_exponent: CollapseExponentCheck | None = Field(
        None, description="how fast do the representations of a sequence become equal?"
    )
    collapse_bound: CollapseBoundCheck | None = Field(
        None, description="what does the bound of rank collapse say of a stack of pure attention?"
    )


Checks = Annotated[
    Mapping[str, CheckSpec], PlainValidator(_validate, json_schema_input_type=ChecksTable)
]
