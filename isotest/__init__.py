"""isotest: gate model training on the geometry of hidden representations.

The public names; each is loaded on first use, so that ``import isotest`` costs nothing.

>>> import isotest
>>> profile = isotest.measure("sample:digits", "sample:digits?split=held-out", samples=20)
>>> [layer.name for layer in profile.layers]
['0', '1', '2', '3', '4', '5', '6', 'final']
>>> verdicts = isotest.compare(profile, None, {"anisotropy": isotest.MetricCheck(max=0.95)})
>>> verdicts[0].outcome
<Outcome.PASSED: 'passed'>
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isotest.errors import IsotestError as IsotestError
    from isotest.estimate import Estimate as Estimate
    from isotest.gate.checks import BlockPropertiesCheck as BlockPropertiesCheck
    from isotest.gate.checks import CollapseExponentCheck as CollapseExponentCheck
    from isotest.gate.checks import DriftCorrelationCheck as DriftCorrelationCheck
    from isotest.gate.checks import FixedPointCheck as FixedPointCheck
    from isotest.gate.checks import MetricCheck as MetricCheck
    from isotest.gate.checks import Regression as Regression
    from isotest.gate.evaluate import compare as compare
    from isotest.gate.verdict import Outcome as Outcome
    from isotest.gate.verdict import Verdict as Verdict
    from isotest.measurement import measure as measure
    from isotest.profile import LayerProfile as LayerProfile
    from isotest.profile import Profile as Profile
    from isotest.profile_json import read_profile as read_profile
    from isotest.profile_json import write_profile as write_profile
    from isotest.suite import load_suite as load_suite

__version__ = "0.1.0"

_HOME = {
    "BlockPropertiesCheck": "gate.checks",
    "CollapseExponentCheck": "gate.checks",
    "DriftCorrelationCheck": "gate.checks",
    "Estimate": "estimate",
    "FixedPointCheck": "gate.checks",
    "IsotestError": "errors",
    "LayerProfile": "profile",
    "MetricCheck": "gate.checks",
    "Outcome": "gate.verdict",
    "Profile": "profile",
    "Regression": "gate.checks",
    "Verdict": "gate.verdict",
    "compare": "gate.evaluate",
    "load_suite": "suite",
    "measure": "measurement",
    "read_profile": "profile_json",
    "write_profile": "profile_json",
}

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'isotest' has no attribute {name!r}")
    return getattr(import_module(f"isotest.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
