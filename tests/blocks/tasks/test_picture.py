"""The picture of the circle: what is in it, that it is safe to show, and what it refuses."""

from __future__ import annotations

import math
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from torch import Tensor

from isotest.blocks.tasks.__main__ import main
from isotest.blocks.tasks.circle import CircleNetwork, starting_pairs
from isotest.blocks.tasks.circle_training import CircleFit
from isotest.blocks.tasks.identity import VARIANTS
from isotest.blocks.tasks.picture import Panel, Row, picture
from isotest.errors import BlockError

SVG = "{http://www.w3.org/2000/svg}"
KEPT = Path(__file__).parents[3] / "docs" / "circle.svg"


def walk(steps: int = 10) -> Tensor:
    """The first point stays; the second goes from −0.3 to it."""
    first = torch.tensor([0.3, 0.0]).expand(steps + 1, 2)
    second = torch.stack((torch.linspace(-0.3, 0.3, steps + 1), torch.zeros(steps + 1)), -1)
    return torch.stack((first, second), 1).double()


def panels() -> tuple[Panel, ...]:
    return tuple(Panel(variant, walk()) for variant in VARIANTS)


def paths(root: ElementTree.Element) -> list[str]:
    """All trajectories; those of the legend are in no group."""
    return [
        path.attrib["d"] for group in root.iter(f"{SVG}g") for path in group.findall(f"{SVG}path")
    ]


def test_both_trajectories_of_each_variant() -> None:
    root = ElementTree.fromstring(picture([Row("bert", panels()), Row("modern", panels())]))
    assert len(paths(root)) == 2 * 2 * len(VARIANTS)
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"bert", "modern", *VARIANTS} <= set(texts)


def test_a_trajectory_is_where_it_is_said_to_be() -> None:
    """200 pixels are 0.9 wide, the middle is 0, and y grows upwards."""
    up = torch.tensor([[[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.225], [0.45, -0.45]]])
    root = ElementTree.fromstring(picture([Row("row", (Panel("x", up),))]))
    assert paths(root) == ["M100.0,100.0h0M100.0,50.0h0", "M100.0,100.0h0M200.0,200.0h0"]


def test_what_a_reader_who_sees_nothing_is_told() -> None:
    root = ElementTree.fromstring(picture([Row("bert", panels())], title="Circle"))
    assert root.attrib["role"] == "img"
    named = {part.attrib["id"]: part.text for part in root if "id" in part.attrib and part.text}
    assert [*root.attrib["aria-labelledby"].split()] == list(named)
    assert named["circle-title"] == "Circle"
    said = named["circle-description"] or ""
    for variant in VARIANTS:
        assert f"bert, {variant}: apart: 0.60 → 0 at step 10, the same point from step 10" in said


def test_captions() -> None:
    assert Panel("x", walk()).caption == (
        "apart: 0.60 → 0 at step 10",
        "the same point from step 10 on",
    )
    away = walk(4)
    away[2:, 1, 1] = 5
    assert Panel("x", away).caption[1] == "out of the picture at step 2"
    assert Panel("x", away, "and so on").caption[2] == "and so on"
    near = walk(4)[:-1]
    near[-1, 1, 0] = 0.2999
    assert Panel("x", near).caption == ("apart: 0.60 → 1e-04 at step 3",)


def test_nothing_is_run_or_fetched() -> None:
    for text in (picture([Row("bert", panels())]), KEPT.read_text(encoding="utf-8")):
        root = ElementTree.fromstring(text)
        names = {element.tag.removeprefix(SVG) for element in root.iter()}
        assert names <= {
            *("svg", "title", "desc", "style", "clipPath", "rect", "text", "g", "polyline"),
            *("circle", "path"),
        }
        for element in root.iter():
            assert not any(key.startswith("on") or "href" in key for key in element.attrib)
        addresses = re.findall(r"(?:https?:|url\(|@import)[^\s\"]*", text)
        assert set(addresses) <= {"http://www.w3.org/2000/svg", "url(#panel)"}


def test_light_and_dark() -> None:
    assert "@media (prefers-color-scheme: dark)" in picture([Row("bert", panels())])


def test_titles_are_escaped() -> None:
    text = picture([Row("<script>", (Panel("a & b", walk()),))], title="1 < 2")
    root = ElementTree.fromstring(text)
    assert root.find(f"{SVG}script") is None
    assert "a & b" in [part.text for part in root.iter(f"{SVG}text")]


def test_the_same_trajectories_give_the_same_bytes() -> None:
    assert picture([Row("bert", panels())]) == picture([Row("bert", panels())])


def test_a_trajectory_far_outside_stays_a_number_of_pixels() -> None:
    far = walk()
    far[-1] = 1e300
    root = ElementTree.fromstring(picture([Row("bert", (Panel("x", far),))]))
    numbers = [float(number) for path in paths(root) for number in re.findall(r"[-\d.]+", path)]
    assert max(map(abs, numbers)) < 1e4


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_trajectory_that_is_not_finite(number: float) -> None:
    broken = walk()
    broken[3, 0, 0] = number
    with pytest.raises(BlockError, match="trajectories of 'x' are not finite"):
        Panel("x", broken)


def test_nothing_to_draw() -> None:
    with pytest.raises(BlockError, match="found an empty one"):
        picture([])
    with pytest.raises(BlockError, match="found an empty one"):
        picture([Row("bert", ())])
    with pytest.raises(BlockError, match=r"found \(1, 2, 2\)"):
        Panel("x", starting_pairs(1))


def test_the_picture_in_the_docs_has_every_variant() -> None:
    text = KEPT.read_text(encoding="utf-8")
    assert len(text.encode()) < 300_000
    root = ElementTree.fromstring(text)
    headings = [part for part in root.iter(f"{SVG}text") if part.attrib.get("class") == "heading"]
    assert len(paths(root)) == 2 * len(VARIANTS) * len(headings)


def a_file(folder: Path) -> Path:
    networks = {
        variant: {0: CircleNetwork("bert", variant, initialisation="bert").eval()}
        for variant in VARIANTS
    }
    file = folder / "circle.safetensors"
    CircleFit("bert", "authors", networks, {variant: [0.1] for variant in VARIANTS}).save(file)
    return file


def test_drawn_from_a_file_without_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, drawn = a_file(tmp_path), tmp_path / "circle.svg"
    before = sorted(tmp_path.iterdir())
    assert main(["circle", "--picture", str(drawn), "--from", str(file), "--from", str(file)]) == 0
    root = ElementTree.fromstring(drawn.read_text(encoding="utf-8"))
    assert len(paths(root)) == 2 * 2 * len(VARIANTS)
    assert sorted(tmp_path.iterdir()) == sorted([*before, drawn])
    assert capsys.readouterr().out == f"drawn into {drawn}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--picture", "circle.png"], "expected a file that ends in .svg, found circle.png"),
        (["--from", "x.safetensors"], "say where to with --picture FILE.svg"),
        (["--picture", "x.svg", "--from", "none.safetensors"], "there is no such file"),
        (["--design", "brt"], "invalid choice: 'brt'"),
    ],
)
def test_one_line_says_what_is_wrong(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code: object
    try:
        code = main(["circle", *arguments])
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
