"""The trajectories of the circle as an SVG: one small picture for each network, over the two arcs.

Written by hand rather than by a plotting library, of which isotest needs none: the same
trajectories give the same bytes, and colours follow the reader's light or dark mode. There is no
script, font or image in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from isotest.blocks.tasks.circle import RADIUS, circle_points
from isotest.blocks.tasks.identity import PAIRS
from isotest.blocks.tasks.recurrence import pair_distances
from isotest.errors import BlockError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torch import Tensor

_REACH = 0.45
"""Coordinate at the edge of a panel, in all four directions."""

_SIDE, _GAP, _LINE, _CAPTION, _HEADING, _TOP, _MARGIN = 200, 18, 16, 64, 34, 84, 20
"""Pixels: of a panel, between two, of a line below one, of all of these, above a row, above all
rows, around everything."""

_STYLE = """
  .paper { fill: #ffffff } .frame { fill: none; stroke: #c4c9d0 }
  .arc { fill: none; stroke: #9aa3ad; stroke-width: 6; stroke-linecap: round; opacity: .45 }
  text { font-family: system-ui, sans-serif; font-size: 13px; fill: #1f2328 }
  .title { font-size: 17px; font-weight: 600 } .heading { font-size: 14px; font-weight: 600 }
  .note { font-size: 12px; fill: #57606a }
  .first { stroke: #0b62c4 } .second { stroke: #b3480b }
  .first.trail { stroke-width: 5; stroke-linecap: round }
  .second.trail { stroke-width: 2.5; stroke-linecap: square }
  .start { fill: #ffffff; stroke-width: 2 } .end { stroke-width: 2 }
  .first.end { fill: #0b62c4 } .second.end { fill: #b3480b }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117 } .frame { stroke: #3d444d } .arc { stroke: #768390 }
    text { fill: #e6edf3 } .note { fill: #9ba6b2 }
    .first { stroke: #6cb6ff } .second { stroke: #f69d50 } .start { fill: #0d1117 }
    .first.end { fill: #6cb6ff } .second.end { fill: #f69d50 }
  }
"""


@dataclass(frozen=True)
class Panel:
    """One network's two trajectories.

    Attributes:
        title: what the network is, such as its variant.
        trajectories: (steps + 1, 2, 2): step, which point of the pair, coordinate; finite.
        note: one more line below it.

    Raises:
        BlockError: another shape, or no step.
    """

    title: str
    trajectories: Tensor
    note: str = ""

    def __post_init__(self) -> None:
        shape = tuple(self.trajectories.shape)
        if len(shape) != 3 or shape[0] < 2 or shape[1:] != (2, 2):
            raise BlockError(
                "picture: expected trajectories of one pair, (steps + 1, 2, 2), of at least one "
                f"step, found {shape}"
            )
        if not self.trajectories.isfinite().all():
            raise BlockError(f"picture: the trajectories of {self.title!r} are not finite")

    @property
    def caption(self) -> tuple[str, ...]:
        """What happens in it, and the note: one to three lines."""
        distances = pair_distances(self.trajectories)
        last = len(distances) - 1
        lines = [f"apart: {distances[0]:.2f} → {_brief(distances[-1].item())} at step {last}"]
        together = (distances == 0).nonzero()
        outside = (self.trajectories.abs() > _REACH).flatten(1).any(1).nonzero()
        if len(together):
            lines.append(f"the same point from step {int(together[0])} on")
        elif len(outside):
            lines.append(f"out of the picture at step {int(outside[0])}")
        return (*lines, self.note) if self.note else tuple(lines)


@dataclass(frozen=True)
class Row:
    """Panels side by side under one heading."""

    heading: str
    panels: tuple[Panel, ...]


def picture(rows: Sequence[Row], *, title: str = "Two points on a circle, step after step") -> str:
    """Draw.

    Args:
        rows: from top to bottom, each of at least one panel.
        title: of the whole.

    Returns:
        A whole SVG document, about 7 KB a panel.

    Raises:
        BlockError: nothing to draw.
    """
    if not rows or not all(row.panels for row in rows):
        raise BlockError("picture: expected rows of at least one panel each, found an empty one")
    columns = max(len(row.panels) for row in rows)
    of_row = _HEADING + _SIDE + _CAPTION
    width = 2 * _MARGIN + columns * _SIDE + (columns - 1) * _GAP
    height = _TOP + len(rows) * of_row + _MARGIN
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    names = 'role="img" aria-labelledby="circle-title circle-description"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {names}>',
        f'<title id="circle-title">{escape(title)}</title>',
        f'<desc id="circle-description">{escape(_description(rows))}</desc>',
        f"<style>{_STYLE}</style>",
        f'<clipPath id="panel"><rect width="{_SIDE}" height="{_SIDE}"/></clipPath>',
        f'<rect class="paper" width="{width}" height="{height}"/>',
        f'<text class="title" x="{_MARGIN}" y="34">{escape(title)}</text>',
        *_legend(),
    ]
    for number, row in enumerate(rows):
        top = _TOP + number * of_row
        lines.append(
            f'<text class="heading" x="{_MARGIN}" y="{top + 18}">{escape(row.heading)}</text>'
        )
        for column, panel in enumerate(row.panels):
            left = _MARGIN + column * (_SIDE + _GAP)
            lines += [f'<g transform="translate({left} {top + _HEADING})">', *_panel(panel), "</g>"]
    lines.append("</svg>\n")
    return "\n".join(lines)


def _panel(panel: Panel) -> Iterable[str]:
    points = circle_points()
    yield f"<title>{escape(panel.title + ': ' + ', '.join(panel.caption))}</title>"
    yield f'<rect class="frame" width="{_SIDE}" height="{_SIDE}"/>'
    yield '<g clip-path="url(#panel)">'
    for start in (0, PAIRS):
        # Every tenth point of an arc, and its last.
        chosen = [*range(start, start + PAIRS, 10), start + PAIRS]
        yield f'<polyline class="arc" points="{_polyline(points[chosen])}"/>'
    for number, name in enumerate(("first", "second")):
        path = panel.trajectories[:, number]
        yield f'<path class="{name} trail" d="{_dots(path)}"/>'
        yield _mark(name, "start", path[0])
        yield _mark(name, "end", path[-1])
    yield "</g>"
    yield f'<text x="8" y="20">{escape(panel.title)}</text>'
    for line, text in enumerate(panel.caption):
        yield f'<text class="note" x="0" y="{_SIDE + _LINE * (line + 1)}">{escape(text)}</text>'


def _legend() -> Iterable[str]:
    drawn = (
        (0, "first trail", "h0m9 0h0m9 0h0m9 0h0", "first point, a dot a step"),
        (220, "second trail", "h0m9 0h0m9 0h0m9 0h0", "second point"),
        (360, "arc", "h28", "the arcs it learnt"),
    )
    for left, name, path, text in drawn:
        x = _MARGIN + left
        yield f'<path class="{name}" d="M{x} 58{path}"/>'
        yield f'<text class="note" x="{x + 38}" y="62">{text}</text>'
    x = _MARGIN + 550
    yield f'<circle class="first start" cx="{x}" cy="58" r="4"/>'
    yield f'<text class="note" x="{x + 12}" y="62">start</text>'
    yield f'<circle class="first end" cx="{x + 62}" cy="58" r="4"/>'
    yield f'<text class="note" x="{x + 74}" y="62">end</text>'


def _mark(name: str, place: str, point: Tensor) -> str:
    """A disc for the first point, a square for the second, since not everyone sees the colours."""
    x, y = _pixel(point)
    if name == "first":
        return f'<circle class="{name} {place}" cx="{x}" cy="{y}" r="4"/>'
    corner = f'x="{float(x) - 4:.1f}" y="{float(y) - 4:.1f}"'
    return f'<rect class="{name} {place}" {corner} width="8" height="8"/>'


def _polyline(points: Tensor) -> str:
    return " ".join(",".join(_pixel(point)) for point in points)


def _dots(points: Tensor) -> str:
    """A line of no length at each, of which only the caps are seen; in no place twice."""
    places = dict.fromkeys(",".join(_pixel(point)) for point in points)
    return "".join(f"M{place}h0" for place in places)


def _pixel(point: Tensor) -> tuple[str, str]:
    """Where a point is in its panel, to a tenth of a pixel; y grows downwards in an SVG."""
    x, y = (_bounded(number) for number in point.tolist())
    scale = _SIDE / (2 * _REACH)
    return f"{(x + _REACH) * scale:.1f}", f"{(_REACH - y) * scale:.1f}"


def _bounded(coordinate: float) -> float:
    # Far outside the panel nothing is seen, and a renderer need not cope with 1e30 pixels.
    return math.copysign(min(abs(coordinate), 100 * RADIUS), coordinate)


def _brief(distance: float) -> str:
    return "0" if distance == 0 else f"{distance:.2f}" if distance >= 0.01 else f"{distance:.0e}"


def _description(rows: Sequence[Row]) -> str:
    said = (
        f"{row.heading}, {panel.title}: {', '.join(panel.caption)}."
        for row in rows
        for panel in row.panels
    )
    return (
        "Each panel shows where a network that was trained to predict the next pair of points on a "
        "circle takes the first pair when it is fed with its own predictions. " + " ".join(said)
    )
