"""A profile as text: what was measured under which conditions, and its curves."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isotest.errors import IsotestError
from isotest.gate.layers import describe_layers
from isotest.gate.numerals import decimals_for, number
from isotest.source import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isotest.estimate import Estimate
    from isotest.profile import Profile

_GAP = "  "


def metrics_of(profile: Profile, wanted: Sequence[str] = ()) -> list[str]:
    """The metrics of a profile, or those ``wanted``, which it must have.

    Raises:
        IsotestError: it has no such metric.
    """
    known = list(dict.fromkeys(name for layer in profile.layers for name in layer.estimates))
    for name in wanted:
        if name not in known:
            raise IsotestError(f"no metric {name!r} was measured{did_you_mean(name, known)}")
    return list(dict.fromkeys(wanted)) or known


def show_lines(profile: Profile, metrics: Sequence[str], *, width: int) -> list[str]:
    """A profile's conditions and its curves, ``value ± standard error``, a layer a line.

    Beside or above them stands what isotropic data would give, and what they were measured from, so
    that what few samples do is not taken for anisotropy.

    Args:
        profile: what was measured.
        metrics: which curves; as many stand side by side as fit.
        width: of the terminal, in cells.
    """
    lines = [*_conditions(profile), "", *_bases(profile, metrics, width)]
    # What is undefined everywhere needs no column, only its reason.
    curves = [_curve(profile, metric) for metric in metrics if not _nowhere(profile, metric)]
    compared = any(any(curve.isotropic) for curve in curves)
    if compared:
        lines += [*wrapped(_ISOTROPIC, width), ""]
    fixed = [
        ["layer", *(layer.name for layer in profile.layers)],
        *_axis(profile),
        ["width", *(str(layer.width) for layer in profile.layers)],
        ["representations", *(str(layer.representations) for layer in profile.layers)],
    ]
    if compared:
        fixed = [[title, "", *cells] for title, *cells in fixed]
    columns = [curve.column(compared) for curve in curves]
    for table in side_by_side(fixed, columns, width):
        if compared and not any(column[1].strip() for column in table):
            table = [[title, *cells] for title, _, *cells in table]
        lines += [*aligned(table), ""]
    lines += _undefined(profile, metrics, width) + _zero_length(profile)
    if profile.properties:
        lines += [*([""] if lines[-1] else []), *_properties(profile, width)]
    if profile.bounds:
        lines += [*([""] if lines[-1] else []), *_bounds(profile, width)]
    return lines if lines[-1] else lines[:-1]


def _axis(profile: Profile) -> list[list[str]]:
    """The column of where each layer stands on the axis of an experiment, if one does."""
    places = [layer.at for layer in profile.layers]
    if all(place is None for place in places):
        return []
    return [["N", *("" if place is None else f"{place:g}" for place in places)]]


def _properties(profile: Profile, width: int) -> list[str]:
    """What a block of the model was tried for."""
    return [
        "properties of the block:",
        *(
            line
            for each in profile.properties
            for line in wrapped(f"{each.name}: {each.result}: {each.text}", width)
        ),
    ]


def _bounds(profile: Profile, width: int) -> list[str]:
    """What became of the bound of rank collapse, with the first sequence of each outcome."""
    lines = ["bound of rank collapse:"]
    for outcome in dict.fromkeys(each.outcome for each in profile.bounds):
        alike = [each for each in profile.bounds if each.outcome == outcome]
        count = f"{len(alike)} of {len(profile.bounds)} sequences"
        lines += wrapped(f"{outcome}: {count}, the first: {alike[0].reason}", width)
    return lines


_ISOTROPIC = (
    "isotropic: what representations without any direction, drawn from N(0, I), give in the same "
    "number and width; a value as near to that as its error bar says nothing of the model"
)


@dataclass(frozen=True)
class _Curve:
    """A metric over the layers, as text; empty cells of ``isotropic`` where it says nothing."""

    metric: str
    values: Sequence[str]
    isotropic: Sequence[str]

    def column(self, compared: bool) -> list[str]:
        """Title, a line below it where any metric is ``compared`` with isotropic data, cells.

        What isotropic data give stands below the title, or, where layers differ in it, in each row.
        """
        if not compared:
            return [self.metric, *self.values]
        alike = {cell for cell in self.isotropic if cell}
        if len(alike) <= 1:
            below = f"isotropic {alike.pop()}" if alike else ""
            return [self.metric, below, *self.values]
        pair = ([self.metric, "", *self.values], ["", "isotropic", *self.isotropic])
        widths = [max(map(len, cells)) for cells in pair]
        return [
            _GAP.join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in zip(*pair, strict=True)
        ]


def side_by_side(
    fixed: Sequence[Sequence[str]], columns: Sequence[Sequence[str]], width: int
) -> list[list[Sequence[str]]]:
    """Tables of ``columns``, as many in each as fit into ``width``, each with ``fixed`` in front.

    >>> side_by_side([["a"]], [["bb"], ["cc"], ["dd"]], width=9)
    [[['a'], ['bb'], ['cc']], [['a'], ['dd']]]
    """
    tables: list[list[Sequence[str]]] = []
    for column in columns:
        if not tables or _width([*tables[-1], column]) > width:
            tables.append([*fixed])
        tables[-1].append(column)
    return tables


def aligned(columns: Sequence[Sequence[str]]) -> list[str]:
    """Columns of cells as lines: the first column to the left, all others to the right."""
    widths = [max(map(len, column)) for column in columns]
    return [
        _GAP.join(
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in zip(*columns, strict=True)
    ]


def _width(columns: Sequence[Sequence[str]]) -> int:
    return sum(max(map(len, column)) + len(_GAP) for column in columns) - len(_GAP)


def wrapped(text: str, width: int) -> list[str]:
    """A text in lines, all but the first indented."""
    return textwrap.wrap(
        text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _curve(profile: Profile, metric: str) -> _Curve:
    estimates = [layer.estimates.get(metric) for layer in profile.layers]
    return _Curve(
        metric,
        [_cell(estimate) for estimate in estimates],
        [
            "" if estimate is None or estimate.isotropic is None else number(estimate.isotropic)
            for estimate in estimates
        ],
    )


def _cell(estimate: Estimate | None) -> str:
    if estimate is None:
        return "not measured"
    if estimate.value is None:
        return "undefined"
    decimals = decimals_for(estimate.se, estimate.value)
    text = number(estimate.value, decimals)
    return text if estimate.se is None else f"{text} ± {number(estimate.se, decimals)}"


def _nowhere(profile: Profile, metric: str) -> bool:
    """Whether a metric has no value at any layer, and reasons for that."""
    estimates = [layer.estimates.get(metric) for layer in profile.layers]
    return all(estimate is not None and estimate.undefined for estimate in estimates)


def _bases(profile: Profile, metrics: Sequence[str], width: int) -> list[str]:
    """What values were measured from where that is a choice; metrics of one choice together."""
    alike: dict[str, list[str]] = {}
    for metric in metrics:
        layers: dict[str, list[str]] = {}
        for layer in profile.layers:
            estimate = layer.estimates.get(metric)
            if estimate is not None and estimate.basis is not None:
                dropped = f", {estimate.dropped} dropped" if estimate.dropped else ""
                layers.setdefault(estimate.basis + dropped, []).append(layer.name)
        basis = ", ".join(
            f"from {text}" if len(layers) == 1 else f"at layer {describe_layers(names)} from {text}"
            for text, names in layers.items()
        )
        if basis:
            alike.setdefault(basis, []).append(metric)
    lines = [
        line
        for basis, names in alike.items()
        for line in wrapped(f"{', '.join(names)}: {basis}", width)
    ]
    return [*lines, ""] if lines else []


def _undefined(profile: Profile, metrics: Sequence[str], width: int) -> list[str]:
    """Why there is no value; metrics that lack one at the same layers for one reason together."""
    where: dict[tuple[str, str], list[str]] = {}
    for layer in profile.layers:
        for metric in metrics:
            estimate = layer.estimates.get(metric)
            if estimate is not None and estimate.undefined is not None:
                where.setdefault((metric, estimate.undefined), []).append(layer.name)
    alike: dict[tuple[str, str], list[str]] = {}
    for (metric, reason), layers in where.items():
        every = len(layers) == len(profile.layers)
        place = "every layer" if every else f"layer {describe_layers(layers)}"
        alike.setdefault((place, reason), []).append(metric)
    return [
        line
        for (place, reason), names in alike.items()
        for line in wrapped(
            f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} undefined at {place}: "
            f"{reason}",
            width,
        )
    ]


def _zero_length(profile: Profile) -> list[str]:
    counted = [layer for layer in profile.layers if layer.zero_length]
    return [
        f"layer {layer.name}: {layer.zero_length} of {layer.representations} representations have "
        "zero length and no direction"
        for layer in counted
    ]


def _conditions(profile: Profile) -> list[str]:
    provenance = profile.provenance
    rows: dict[str, str] = {
        "model": profile.model,
        "suite": profile.suite or "none",
        "source": provenance.source,
        "commit": provenance.commit or "none",
        "weights": provenance.weights,
        "data": provenance.data,
        "sequences": f"{profile.sequences} {profile.modality} sequences in {profile.units} "
        f"independent groups, {len(profile.block_sequences)} blocks",
        "device": provenance.device,
        "measured": provenance.created,
        "architecture": _pairs(provenance.architecture),
        "protocol": _pairs(provenance.protocol),
        "versions": _pairs(provenance.versions),
    }
    label = max(map(len, rows))
    return [f"{name:{label}}  {text}" for name, text in rows.items()]


def _pairs(mapping: Mapping[str, object]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in mapping.items()) or "none"
