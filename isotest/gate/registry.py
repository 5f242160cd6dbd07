"""The kinds of check, and where the evaluator of each is: one entry here adds a check."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from isotest.gate.checks import (
    BlockPropertiesCheck,
    CollapseBoundCheck,
    CollapseExponentCheck,
    DriftCorrelationCheck,
    FiniteCheck,
    FixedPointCheck,
    MetricCheck,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

    from isotest.gate.part import Case
    from isotest.gate.verdict import Verdict

Evaluator = Callable[["Case", Any], "Verdict"]
"""Judges a case by a check of its kind."""

EVALUATORS: dict[type[BaseModel], str] = {
    MetricCheck: "isotest.gate.metric:evaluate_metric",
    DriftCorrelationCheck: "isotest.gate.drift_check:evaluate_drift_correlation",
    FixedPointCheck: "isotest.gate.fixed_point:evaluate_fixed_point",
    BlockPropertiesCheck: "isotest.gate.block_properties:evaluate_block_properties",
    CollapseExponentCheck: "isotest.gate.collapse:evaluate_collapse_exponent",
    CollapseBoundCheck: "isotest.gate.collapse_bound:evaluate_collapse_bound",
    FiniteCheck: "isotest.gate.finite:evaluate_finite",
}
"""Object reference of the evaluator by check model; resolved when such a check is judged."""


def evaluator_of(check: BaseModel) -> Evaluator:
    """The evaluator of a check.

    Raises:
        TypeError: the kind of check is not registered.
    """
    reference = EVALUATORS.get(type(check))
    if reference is None:
        known = ", ".join(kind.__name__ for kind in EVALUATORS)
        raise TypeError(f"no evaluator for {type(check).__name__}; registered: {known}")
    module, _, name = reference.partition(":")
    return cast("Evaluator", getattr(import_module(module), name))
