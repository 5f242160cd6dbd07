"""``isotest selftest``: plant faults in a suite's models and demand red, then green without them.

A gate that cannot fail gates nothing. Each fault of :mod:`isotest.faults` is planted in each entry,
the entry is measured, and the suite's own checks, against its own baselines, must object.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from isotest.baselines import BaselineStore
from isotest.comparability import comparable
from isotest.entry import Settings, measure_entry
from isotest.errors import IsotestError, MissingError, NonFiniteError
from isotest.faults import FAULTS, Alteration
from isotest.gate.checks import FiniteCheck
from isotest.gate.evaluate import evaluate
from isotest.gate.message import MessageContext
from isotest.gate.verdict import Outcome
from isotest.source import did_you_mean
from isotest.suite import load_suite

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isotest.profile import Profile
    from isotest.suite import ModelSpec, Suite

UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Trial:
    """One entry measured with one fault, or with none.

    Attributes:
        model: the entry.
        fault: what was planted; ``"unchanged"`` for none.
        red: the checks that objected; what was demanded is in :attr:`right`.
    """

    model: str
    fault: str
    red: tuple[str, ...]

    @property
    def right(self) -> bool:
        """Red with a fault, green without."""
        return bool(self.red) is (self.fault != UNCHANGED)


def trials(
    suite: Suite,
    store: BaselineStore,
    settings: Settings,
    models: Sequence[ModelSpec],
) -> list[Trial]:
    """Every fault on every model, then the unchanged model.

    Raises:
        MissingError: an entry's weights or data are not here.
        IsotestError: a model or its data is at fault without any fault planted.
    """
    alterations: dict[str, Alteration | None] = {fault.name: fault.plant for fault in FAULTS}
    # Unchanged comes last: it also shows that planting left nothing behind.
    alterations[UNCHANGED] = None
    return [
        Trial(spec.name, name, _objections(suite, spec, store, settings, alteration))
        for spec in models
        for name, alteration in alterations.items()
    ]


def _objections(
    suite: Suite,
    spec: ModelSpec,
    store: BaselineStore,
    settings: Settings,
    alteration: Alteration | None,
) -> tuple[str, ...]:
    try:
        profile = measure_entry(suite, spec, settings, alter=alteration).profile
    except NonFiniteError:
        if alteration is None:
            raise
        return ("finite",)
    baseline = store.find(suite.id, spec.name)
    checks = {"finite": FiniteCheck(), **suite.checks_of(spec)}
    return tuple(
        name
        for name, check in checks.items()
        if evaluate(
            profile,
            baseline,
            name,
            check,
            differences=_differences(profile, baseline),
            context=MessageContext.for_library(suite.id, spec.name),
        ).outcome
        is not Outcome.PASSED
    )


def _differences(profile: Profile, baseline: Profile | None) -> list[str]:
    return [] if baseline is None else comparable(profile, baseline)


def run(
    path: Path,
    *,
    suites: Path,
    baselines: Path,
    models: Sequence[str] = (),
    settings: Settings | None = None,
    write: Callable[[str], object] = print,
) -> int:
    """Run the self-test of the suite in ``path`` and print the matrix entry × fault.

    Args:
        path: the suite file.
        suites: the suites folder, which gives the suite its id.
        baselines: the baselines folder.
        models: names of the entries to test; all of them by default.
        settings: device, download and so on.
        write: takes one line at a time.

    Returns:
        0 if every fault was red and every unchanged entry green, else 1.

    Raises:
        IsotestError: the suite cannot be read, or nothing in it can be tested.
    """
    root = suites if path.resolve().is_relative_to(suites.resolve()) else Path.cwd()
    suite = load_suite(path, root=root)
    known = [spec.name for spec in suite.models]
    for name in models:
        if name not in known:
            raise IsotestError(f"{path}: no entry is named {name!r}{did_you_mean(name, known)}")
    chosen = [spec for spec in suite.models if not models or spec.name in models]
    names = [fault.name for fault in FAULTS] + [UNCHANGED]
    label = max(len(spec.name) for spec in chosen)
    write(f"{'':{label}}  " + "  ".join(names))
    results: list[Trial] = []
    skipped: list[str] = []
    for spec in chosen:
        try:
            row = trials(suite, BaselineStore(baselines), settings or Settings(), [spec])
        except MissingError as error:
            if not spec.optional:
                raise
            skipped.append(f"{spec.name}: skipped: {error}")
            continue
        cells = ("red" if trial.red else "green" for trial in row)
        cells = (f"{cell:^{len(name)}}" for cell, name in zip(cells, names, strict=True))
        write(f"{spec.name:{label}}  " + "  ".join(cells))
        results.extend(row)
    for line in skipped:
        write(line)
    if not results:
        raise IsotestError(f"{path}: nothing was tested: every entry was skipped")
    wrong = [trial for trial in results if not trial.right]
    for trial in wrong:
        if trial.fault == UNCHANGED:
            write(f"{trial.model}: red without a fault: {', '.join(trial.red)}")
        else:
            write(f"{trial.model}: '{trial.fault}' went unnoticed: no check of the suite objects")
    planted = sum(trial.fault != UNCHANGED for trial in results)
    write(
        f"{planted} faults planted in {len(results) - planted} entries: "
        + ("all red, and green without them" if not wrong else f"{len(wrong)} wrong")
    )
    return 1 if wrong else 0
