"""The JSON Schema of suite files, for editors that complete and check TOML."""

from __future__ import annotations

from typing import Any

from isotest.statistics.registry import METRICS
from isotest.suite.checks import FINITE, KINDS, METRIC_DEMANDS
from isotest.suite.names import NAME_PATTERN
from isotest.suite.spec import SuiteFile


def suite_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) that every valid suite satisfies.

    It refuses unknown keys, checks, metrics and values of a wrong type; what needs more than one
    look (two models of one name, a source's options) only :func:`~isotest.suite.load_suite` finds.

    >>> sorted(suite_schema()["required"])
    ['checks', 'data', 'modality', 'models']
    """
    schema: dict[str, Any] = _tidy(SuiteFile.model_json_schema())
    schema["title"] = "isotest suite"
    schema["$defs"]["ChecksTable"] = _checks(schema["$defs"].pop("ChecksTable"))
    schema["properties"]["checks"]["minProperties"] = 1
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _checks(table: dict[str, Any]) -> dict[str, Any]:
    """Which names mean which check: enumerated, so that editors can offer and refuse them."""
    metric_check = {
        "$ref": "#/$defs/MetricCheck",
        "anyOf": [{"required": [key]} for key in METRIC_DEMANDS],
    }
    kinds = {name: dict(table["properties"][name]) for name in KINDS}
    kinds["drift_correlation"]["anyOf"] = [{"required": [key]} for key in ("expect", "baseline")]
    kinds["fixed_point"]["properties"] = {"metric": {"enum": list(METRICS)}}
    named = {
        name: {
            "description": metric.summary,
            "properties": {"metric": {"const": name}},
            **metric_check,
        }
        for name, metric in METRICS.items()
    }
    return {
        "type": "object",
        "description": table["description"],
        "properties": {**named, **kinds, FINITE: False},
        "propertyNames": {"pattern": NAME_PATTERN},
        "additionalProperties": {
            **metric_check,
            "description": "a check of another name says which metric it judges",
            "required": ["metric"],
            "properties": {"metric": {"enum": list(METRICS)}},
        },
    }


def _tidy(node: Any) -> Any:
    """Without ``null`` (TOML has none) and without titles that only repeat the key."""
    if isinstance(node, list):
        return [_tidy(each) for each in node]
    if not isinstance(node, dict):
        return node
    tidy = {
        key: {name: _tidy(each) for name, each in value.items()}
        if key in ("properties", "$defs")
        else _tidy(value)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str))
        and not (key == "default" and value is None)
    }
    if isinstance(description := tidy.get("description"), str):
        tidy["description"] = " ".join(description.replace("``", "'").split())
    options = tidy.get("anyOf")
    if isinstance(options, list) and {"type": "null"} in options:
        options = [option for option in options if option != {"type": "null"}]
        del tidy["anyOf"]
        tidy = {**options[0], **tidy} if len(options) == 1 else {**tidy, "anyOf": options}
    return tidy
