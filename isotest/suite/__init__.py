"""suite.toml ─► validated objects, and the JSON Schema that editors check it with."""

from isotest.suite.checks import CheckSpec
from isotest.suite.load import load_suite
from isotest.suite.schema import suite_schema
from isotest.suite.spec import DataSpec, MeasureSpec, ModelSpec, PreprocessSpec, Suite

__all__ = [
    "CheckSpec",
    "DataSpec",
    "MeasureSpec",
    "ModelSpec",
    "PreprocessSpec",
    "Suite",
    "load_suite",
    "suite_schema",
]
