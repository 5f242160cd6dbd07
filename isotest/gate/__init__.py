"""The gate: profile, baseline and checks in, verdicts out (no torch, nothing loaded unasked)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.lazy import lazily

if TYPE_CHECKING:
    from isotest.gate.evaluate import compare as compare
    from isotest.gate.verdict import Outcome as Outcome
    from isotest.gate.verdict import Verdict as Verdict

_HOME = {"Outcome": "verdict", "Verdict": "verdict", "compare": "evaluate"}

__all__ = sorted(_HOME)

__getattr__ = lazily(__name__, _HOME)
