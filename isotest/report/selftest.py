"""What a self-test found: the matrix entry × fault, and what the gate would miss."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from isotest.faults import FAULTS, fraction
from isotest.report.show import aligned, side_by_side, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isotest.selftest import EntryTest, Objections, SuiteTest, Trial


def selftest_document(found: SuiteTest) -> dict[str, object]:
    """A self-test for programs: every measurement, and what it comes to."""
    return {
        "suite": found.suite,
        "passed": found.passed,
        "strengths": list(found.strengths),
        "faults": {fault.name: fault.at() for fault in FAULTS},
        "entries": {entry.model: _entry_document(entry) for entry in found.entries},
        "skipped": dict(found.skipped),
    }


def _entry_document(entry: EntryTest) -> dict[str, object]:
    return {
        "unchanged": {"red": bool(entry.unchanged), "objections": dict(entry.unchanged)},
        "weights": entry.weights,
        "faults": {trial.fault.name: _trial_document(trial) for trial in entry.trials},
    }


def _trial_document(trial: Trial) -> dict[str, object]:
    if trial.inapplicable is not None:
        return {"result": "inapplicable", "reason": trial.inapplicable}
    weakest = trial.weakest
    return {
        "result": "missed" if weakest is None else "noticed",
        "smallest": None if weakest is None else weakest.strength,
        "measured": [
            {"strength": probe.strength, "objections": dict(probe.objections)}
            for probe in trial.probes
        ],
    }


def selftest_lines(found: SuiteTest, *, width: int) -> list[str]:
    """A self-test for people: the matrix, what its numbers mean, and how to read each row.

    Args:
        found: the self-test.
        width: of the terminal, in cells; columns that do not fit stand in a table below.
    """
    lines = [*wrapped(_title(found), width), ""]
    for table in side_by_side([_names(found.entries)], list(_columns(found)), width):
        lines += [*aligned(table), ""]
    lines += _legend(found, width)
    lines += [""] if found.entries else []
    for entry in found.entries:
        lines += [line for text in _readings(entry) for line in wrapped(text, width)]
    for name, reason in found.skipped.items():
        lines += wrapped(f"{name}: skipped: {reason}", width)
    return [*lines, *wrapped(_conclusion(found), width)]


def _title(found: SuiteTest) -> str:
    if len(found.strengths) == 1:
        return f"{found.suite}: what the suite's own checks say of each full fault"
    return (
        f"{found.suite}: the smallest strength of each fault that the suite's own checks notice, "
        f"of {', '.join(map(fraction, found.strengths))}"
    )


def _names(entries: Sequence[EntryTest]) -> list[str]:
    return ["", "", *(entry.model for entry in entries)]


def _columns(found: SuiteTest) -> Iterator[list[str]]:
    searched = len(found.strengths) > 1
    yield ["no", "fault", *("red" if entry.unchanged else "green" for entry in found.entries)]
    for number, fault in enumerate(FAULTS):
        tried = [entry.trials[number] for entry in found.entries if entry.trials]
        if tried and all(trial.inapplicable for trial in tried):
            continue  # the legend says why
        first, _, second = fault.name.rpartition(" ")
        cells = (
            _cell(entry.trials[number], searched) if entry.trials else "not tried"
            for entry in found.entries
        )
        yield [first, second, *cells]


def _cell(trial: Trial, searched: bool) -> str:
    if trial.inapplicable is not None:
        return "-"
    weakest = trial.weakest
    if weakest is None:
        return "missed"
    text = fraction(weakest.strength) if searched and trial.fault.graded else "red"
    return f"{text} ?" if weakest.unsure else text


def _legend(found: SuiteTest, width: int) -> list[str]:
    """What the marks of this matrix mean, and only those."""
    trials = [trial for entry in found.entries for trial in entry.trials]
    strength = None if len(found.strengths) > 1 else 1.0
    rows = {
        trial.fault.name: trial.fault.at(strength) for trial in trials if trial.inapplicable is None
    }
    if any(trial.weakest is not None and trial.weakest.unsure for trial in trials):
        rows["?"] = (
            "red only because a check cannot tell whether the change is within its margin; that is "
            "red in a run, too, but more data may turn it green"
        )
    if any(trial.missed for trial in trials):
        rows["missed"] = "green with the full fault in the model"
    label = max(map(len, rows), default=0)
    head = ["A strength of s means:" if strength is None else "A full fault means:"] if rows else []
    lines = [
        line
        for name, text in rows.items()
        for line in textwrap.wrap(
            f"  {name:{label}}  {text}", width, subsequent_indent=" " * (label + 4)
        )
    ]
    for reason, names in _inapplicable(trials).items():
        lines += wrapped(f"Not planted: {', '.join(names)}: {reason}", width)
    return head + lines


def _inapplicable(trials: Sequence[Trial]) -> dict[str, list[str]]:
    """Reasons why faults were not planted, with those faults."""
    found: dict[str, list[str]] = {}
    for trial in trials:
        if trial.inapplicable is not None:
            names = found.setdefault(trial.inapplicable, [])
            if trial.fault.name not in names:
                names.append(trial.fault.name)
    return found


def _readings(entry: EntryTest) -> Iterator[str]:
    """What an entry's row says, the worst first."""
    if entry.unchanged:
        yield f"{entry.model}: red without a fault: {_objections(entry.unchanged)}; {_next(entry)}"
    for trial in entry.missed:
        yield (
            f"{entry.model}: '{trial.fault.name}' went unnoticed: no check of the suite objects to "
            f"{trial.fault.at(1.0)}"
        )
    yield from _weakest(entry)


def _next(entry: EntryTest) -> str:
    if "no baseline" in entry.unchanged.values():
        return (
            "record a baseline first (pytest --isotest --isotest-update=missing); no fault was "
            "planted, as a gate that is red anyway notices none"
        )
    if not entry.trials:
        return (
            "no fault was planted, as a gate that is red anyway notices none; see what "
            "pytest --isotest says of it"
        )
    return "it was green before the faults were planted, and they are gone: measuring is unsteady"


def _weakest(entry: EntryTest) -> Iterator[str]:
    """The fault of which most passes, among those that are noticed."""
    graded = [
        (weakest, trial)
        for trial in entry.trials
        if trial.fault.graded and (weakest := trial.weakest) is not None and len(trial.probes) > 1
    ]
    if not graded:
        return
    weakest, trial = max(graded, key=lambda pair: pair[0].strength)
    unnoticed = trial.unnoticed
    if unnoticed is None:
        yield (
            f"{entry.model}: would miss none of the graded faults that were noticed, down to "
            f"{fraction(weakest.strength)}, the smallest strength tried"
        )
        return
    yield (
        f"{entry.model}: weakest on '{trial.fault.name}': would miss "
        f"{trial.fault.at(unnoticed.strength)}; from {fraction(weakest.strength)} on, "
        f"red: {_objections(weakest.objections)}"
    )


def _objections(objections: Objections) -> str:
    return ", ".join(f"{check} ({reason})" for check, reason in objections.items())


def _conclusion(found: SuiteTest) -> str:
    planted = sum(bool(trial.probes) for entry in found.entries for trial in entry.trials)
    probes = sum(len(trial.probes) for entry in found.entries for trial in entry.trials)
    entries = len(found.entries)
    text = (
        f"{planted} faults planted in {entries} {'entry' if entries == 1 else 'entries'}, "
        f"{probes} measurements: "
    )
    if found.passed:
        return f"{text}every full fault is red, and every entry is green without them"
    missed = sum(len(entry.missed) for entry in found.entries)
    red = sum(bool(entry.unchanged) for entry in found.entries)
    wrong = [f"{missed} went unnoticed"] * bool(missed)
    wrong += [f"{red} {'entry is' if red == 1 else 'entries are'} red without a fault"] * bool(red)
    return text + ", ".join(wrong)
