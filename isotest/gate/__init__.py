"""The gate: profile, baseline and checks in, verdicts out (no torch, nothing loaded unasked)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isotest.gate.evaluate import compare as compare
    from isotest.gate.verdict import Outcome as Outcome
    from isotest.gate.verdict import Verdict as Verdict

_WHERE = {
    "Outcome": "isotest.gate.verdict",
    "Verdict": "isotest.gate.verdict",
    "compare": "isotest.gate.evaluate",
}

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> object:
    if name in _WHERE:
        from importlib import import_module

        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
