"""Why a metric changed: named causes with shares that are computed and add up (``docs/diagnosis``).

Each module holds one decomposition (:mod:`.similarity`, :mod:`.spectra`, :mod:`.centered`,
:mod:`.heads`); :mod:`.diagnose` chooses among them and finds where causes
start, :mod:`.text` says it.
"""

from __future__ import annotations

from isotest.gate.diagnosis.diagnose import Cause, Diagnosis, diagnose
from isotest.gate.diagnosis.text import diagnosis_document, diagnosis_lines

__all__ = ["Cause", "Diagnosis", "diagnose", "diagnosis_document", "diagnosis_lines"]
