"""Reports as files: JSON for programs, Markdown for the summary page of a CI job."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from isotest.atomic import write_atomically
from isotest.report.drift import drift_record
from isotest.report.entry import (
    CheckSummary,
    EntrySummary,
    Finding,
    by_suite,
    conditions,
    effort,
    main_metric,
)
from isotest.report.sparkline import sparkline

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isotest.profile import Profile

FORMAT = "isotest-results"
FORMAT_VERSION = 1

_LONGEST_CURVE = 64
_SIGNS = {"passed": "✅", "failed": "❌", "inconclusive": "❔", "skipped": "⏭️"}


def write_json(entries: Sequence[EntrySummary], findings: Sequence[Finding], path: Path) -> None:
    """Write verdicts and curves as JSON; ``path`` is whole or as it was.

    Raises:
        OSError: ``path`` cannot be written.
    """
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "green": all(entry.green for entry in entries)
        and all(finding.problem is None for finding in findings),
        "entries": [_entry(entry) for entry in entries],
        "findings": [
            {
                "id": finding.nodeid,
                "green": finding.problem is None,
                "problem": finding.problem,
                "skipped": finding.skipped,
            }
            for finding in findings
        ],
    }
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    write_atomically(f"{text}\n".encode(), path)


def write_markdown(
    entries: Sequence[EntrySummary], findings: Sequence[Finding], path: Path
) -> None:
    """Write a table a suite, then every message that is not green, as Markdown.

    Raises:
        OSError: ``path`` cannot be written.
    """
    write_atomically(markdown(entries, findings).encode(), path)


def markdown(entries: Sequence[EntrySummary], findings: Sequence[Finding]) -> str:
    """The text of :func:`write_markdown`."""
    parts = ["# isotest\n"]
    for suite, group in by_suite(list(entries)).items():
        done = effort(group)
        parts.append(f"## {_escaped(suite)}\n")
        parts.append(f"{_escaped(conditions(group))}{f'; {done}' if done else ''}\n")
        metric = main_metric(group)
        parts.append(f"| model | result | {metric} (0…1) | baseline | checks |")
        parts.append("| --- | --- | --- | --- | --- |")
        parts += [_row(entry, metric) for entry in group]
        parts.append("")
        for entry in group:
            parts += [
                _details(entry, check)
                for check in entry.checks
                if check.result in ("failed", "inconclusive")
            ]
    if not entries:
        parts.append("No entry was run.\n")
    told = [f for f in findings if f.problem is not None or f.skipped is not None]
    if told:
        parts.append("## Suites\n")
        parts += [
            _folded(
                f"{_SIGNS['skipped' if f.problem is None else 'failed']} {_html(f.nodeid)}",
                f.problem or f.skipped or "",
            )
            for f in told
        ]
    return "\n".join(parts)


def _row(entry: EntrySummary, metric: str) -> str:
    counts = ", ".join(f"{count} {result}" for result, count in entry.counts.items())
    notes = [counts, "recorded" if entry.recorded else "", _escaped(entry.skipped or "")]
    cells = [
        _escaped(entry.model),
        f"{_SIGNS[entry.result]} {entry.result}",
        _curve(entry.profile, metric),
        _curve(entry.baseline, metric),
        "; ".join(note for note in notes if note),
    ]
    return f"| {' | '.join(cells)} |"


def _curve(profile: Profile | None, metric: str) -> str:
    if profile is None:
        return "–"
    curve = profile.curve(metric)
    defined = [value for value in curve if value is not None]
    reach = f" {min(defined):.3f}…{max(defined):.3f}" if defined else " undefined"
    return sparkline(curve, width=_LONGEST_CURVE) + reach


def _details(entry: EntrySummary, check: CheckSummary) -> str:
    title = f"{_SIGNS[check.result]} {_html(entry.model)} · {_html(check.name)}"
    return _folded(title, check.message or check.headline)


def _folded(title: str, text: str) -> str:
    """A message under a title that can be folded away; ``title`` is HTML."""
    # A fence must be longer than any in the text, which a suite's names can bring.
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return (
        f"<details open><summary>{title}</summary>\n\n{fence}text\n{text}\n{fence}\n\n</details>\n"
    )


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _escaped(text: str) -> str:
    """Text that Markdown takes as text, on one line."""
    escaped = re.sub(r"([\\`*_\[\]|#~])", r"\\\1", _html(text))
    return " ".join(escaped.split())


def _entry(entry: EntrySummary) -> dict[str, Any]:
    return {
        "suite": entry.suite,
        "model": entry.model,
        "result": entry.result,
        "green": entry.green,
        "skipped": entry.skipped,
        "recorded": entry.recorded,
        "cached": entry.cached,
        "seconds": entry.seconds,
        "checks": [
            {
                "name": check.name,
                "result": check.result,
                "green": check.green,
                "headline": check.headline,
                "message": check.message,
                "properties": dict(check.properties),
            }
            for check in entry.checks
        ],
        "profile": _profile(entry.profile),
        "baseline": _profile(entry.baseline),
    }


def _beside(profile: Profile, metric: str, attribute: str) -> list[float | None]:
    """What stands beside the values of a curve, a layer each."""
    return [
        getattr(layer.estimates[metric], attribute) if metric in layer.estimates else None
        for layer in profile.layers
    ]


def _of_an_experiment(profile: Profile) -> dict[str, Any]:
    """Where layers stand on an axis, what a block was tried for, bounds: what there is of them."""
    places = [layer.at for layer in profile.layers]
    properties = [asdict(each) for each in profile.properties]
    bounds = [asdict(each) for each in profile.bounds]
    return {
        **({} if all(place is None for place in places) else {"at": places}),
        **({"properties": properties} if properties else {}),
        **({"bounds": bounds} if bounds else {}),
    }


def _profile(profile: Profile | None) -> dict[str, Any] | None:
    """The curves, what they say about drift, and what they were measured on.

    Per-block values are the profile files' own.
    """
    if profile is None:
        return None
    metrics = list(dict.fromkeys(name for layer in profile.layers for name in layer.estimates))
    provenance = profile.provenance
    return {
        "modality": profile.modality,
        "sequences": profile.sequences,
        "units": profile.units,
        "layers": [layer.name for layer in profile.layers],
        **_of_an_experiment(profile),
        "curves": {name: profile.curve(name) for name in metrics},
        "standard_errors": {name: _beside(profile, name, "se") for name in metrics},
        "isotropic": {name: _beside(profile, name, "isotropic") for name in metrics},
        "drift": drift_record(profile).model_dump(mode="json"),
        "provenance": {
            "source": provenance.source,
            "architecture": dict(provenance.architecture),
            "protocol": dict(provenance.protocol),
            "data": provenance.data,
            "weights": provenance.weights,
            "commit": provenance.commit,
            "device": provenance.device,
            "versions": dict(provenance.versions),
            "created": provenance.created,
        },
    }
