"""suite.toml ─► validated objects, and the JSON Schema that editors check it with."""

from isotest.suite.checks import CheckSpec
from isotest.suite.load import load_suite
from isotest.suite.schema import suite_schema
from isotest.suite.spec import (
    MODALITIES,
    DataSpec,
    MeasureSpec,
    ModelSpec,
    PreprocessSpec,
    Suite,
)

__all__ = [
    "MODALITIES",
    "CheckSpec",
    "DataSpec",
    "MeasureSpec",
    "ModelSpec",
    "PreprocessSpec",
    "Suite",
    "load_suite",
    "suite_schema",
]
