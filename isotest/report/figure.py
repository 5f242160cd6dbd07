"""Figures 5 and 11 of Godey et al. (2023): what reports and profiles say of each model."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from isotest.errors import IsotestError
from isotest.report.drift import ALPHA, DriftRecord, drift_record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from isotest.gate.correlation import Statistic
    from isotest.profile import Profile

Figure = Literal[5, 11]
FIGURES: Mapping[Figure, Statistic] = {5: "spearman", 11: "pearson"}
"""The statistic that each figure plots the p-value of."""

_REMEDY = (
    "name a report of 'pytest --isotest --isotest-json FILE.json', a profile, or a folder of "
    "baselines"
)
_MAX_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class Row:
    """One measured model.

    Attributes:
        suite: as its file or report calls the suite.
        model: the entry's name.
        modality: of its data.
        drift: what its profile says.
    """

    suite: str
    model: str
    modality: str
    drift: DriftRecord


@dataclass(frozen=True)
class Rows:
    """What was found in a file or folder.

    Attributes:
        rows: by modality, model and suite.
        unmeasured: entries of a report of which nothing was measured, as ``suite::model``.
    """

    rows: tuple[Row, ...]
    unmeasured: tuple[str, ...] = ()


class _Measured(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    modality: str
    drift: DriftRecord


class _Entry(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    suite: str
    model: str
    profile: _Measured | None


class _Report(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    format: Literal["isotest-results"]
    format_version: Literal[1]
    entries: list[_Entry]


class _Format(BaseModel):
    """Which of our files it is."""

    model_config = ConfigDict(extra="ignore")

    format: str = Field(max_length=100)


def read_rows(path: Path) -> Rows:
    """The rows of a report, of a profile, or of every profile below a folder.

    Nothing is measured, and torch is not imported.

    Raises:
        IsotestError: ``path`` is none of these, holds no profile, or one that cannot be used.
    """
    if path.is_dir():
        files = sorted(file for file in path.rglob("*.json") if not file.name.startswith("."))
        if not files:
            raise IsotestError(
                f"{path}: expected profiles (*.json) in this folder or below, found none; {_REMEDY}"
            )
        return Rows(_ordered([_row(_profile(file)) for file in files]))
    content = _content(path)
    try:
        kind = _Format.model_validate_json(content).format
    except ValidationError as error:
        raise IsotestError(
            f"{path}: expected JSON that isotest wrote, found something else "
            f"({_first_fault(error)}); {_REMEDY}"
        ) from None
    if kind == "isotest-profile":
        return Rows((_row(_profile(path)),))
    return _of_report(path, content)


def _of_report(path: Path, content: bytes) -> Rows:
    try:
        report = _Report.model_validate_json(content)
    except ValidationError as error:
        raise IsotestError(
            f"{path}: not a report that this isotest can read: {_first_fault(error)}; {_REMEDY}"
        ) from None
    rows = [
        Row(entry.suite, entry.model, entry.profile.modality, entry.profile.drift)
        for entry in report.entries
        if entry.profile is not None
    ]
    unmeasured = [f"{e.suite}::{e.model}" for e in report.entries if e.profile is None]
    if not rows:
        skipped = f"; not measured: {', '.join(unmeasured[:5])}" if unmeasured else ""
        raise IsotestError(f"{path}: nothing was measured in this run{skipped}; {_REMEDY}")
    return Rows(_ordered(rows), tuple(unmeasured))


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise IsotestError(f"{path}: expected at most {_MAX_BYTES >> 20} MB, found more")
        return path.read_bytes()
    except OSError as error:
        raise IsotestError(
            f"{path}: cannot be read: {error.strerror or error}; {_REMEDY}"
        ) from None


def _first_fault(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(map(str, first["loc"]))[:200]
    known = first["type"] in ("missing", "json_invalid")
    found = "" if known else f", found {reprlib.repr(first['input'])}"
    return f"{f'at {where}: ' if where else ''}{first['msg']}{found}"


def _profile(path: Path) -> Profile:
    from isotest.profile_json import read_profile

    return read_profile(path, remedy=_REMEDY)


def _row(profile: Profile) -> Row:
    return Row(profile.suite, profile.model, profile.modality, drift_record(profile))


def _ordered(rows: Sequence[Row]) -> tuple[Row, ...]:
    return tuple(
        sorted(rows, key=lambda row: (row.modality, row.model.casefold(), row.model, row.suite))
    )


def figure_document(found: Rows, figure: Figure) -> dict[str, Any]:
    """The table for programs: each row with both statistics, and which one the figure plots."""
    return {
        "figure": figure,
        "statistic": FIGURES[figure],
        "alpha": ALPHA,
        "rows": [
            {
                "suite": row.suite,
                "model": row.model,
                "modality": row.modality,
                **row.drift.model_dump(mode="json"),
            }
            for row in found.rows
        ],
        "unmeasured": list(found.unmeasured),
    }
