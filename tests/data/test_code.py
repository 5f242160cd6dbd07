"""``python:`` and ``package:``: data that installed code brings."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from isotest.data import open_data
from isotest.errors import MissingError, SourceError
from tests.data.images import grey_of, write_images

if TYPE_CHECKING:
    from pathlib import Path

MODULE = """
from PIL import Image

def image(grey): return Image.new("L", (2, 2), grey)
def listed(): return [image(grey) for grey in range(5)]
def generated():
    for grey in range(5): yield image(grey)
def grouped(): return [(image(0), "x"), (image(1), "y"), (image(2), "x")]
class Lazy:
    def __len__(self): return 5
    def __getitem__(self, index):
        if index >= 3: raise OSError("disk gone")
        return image(index)
def mixed(): return [image(0), (image(1), "x")]
def arrays(): return [[1, 2]]
def triples(): return [(image(0), "x", 3)]
def badly_grouped(): return [(image(0), 1.5)]
def nothing(): return []
def number(): return 3
def raising(): raise ValueError("no such split")
def raising_late():
    yield image(0)
    raise ValueError("half way")
def exits(): raise SystemExit(3)
constant = 3
"""


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_images.py").write_text(MODULE)
    (tmp_path / "my_broken.py").write_text("import a_package_that_is_missing")
    (tmp_path / "my_exit.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("my_images", "my_broken", "my_exit"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize("function", ["listed", "generated"])
def test_images_of_a_function(function: str) -> None:
    data = open_data(f"python:my_images:{function}")
    for _ in range(2):
        assert [grey_of(sample.content) for sample in data] == [0, 1, 2, 3, 4]
    assert not data.grouped
    assert len(open_data(f"python:my_images:{function}", samples=3)) == 3


def test_groups_of_a_function() -> None:
    data = open_data("python:my_images:grouped")
    assert [sample.unit for sample in data] == [0, 1, 0]
    assert data.grouped


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("my_images", "expected python:MODULE:FUNCTION"),
        ("my_images:list", "my_images has no 'list'; did you mean 'listed'"),
        ("my_images:constant", "expected a callable, found my_images:constant to be int"),
        ("..my_images:listed", "expected python:MODULE:FUNCTION"),
        ("my_exit:listed", "importing my_exit raised SystemExit: 3"),
        ("my_images:exits", "raised SystemExit: 3"),
        ("my_images:number", "returned int, expected an iterable of PIL images"),
        ("my_images:nothing", "returned nothing"),
        ("my_images:raising", "raised ValueError: no such split"),
        ("my_images:raising_late", "raised ValueError: half way"),
        ("my_images:arrays", "item 0: found list, expected PIL images"),
        ("my_images:triples", r"item 0: found \(Image, str, int\), expected PIL images"),
        ("my_images:mixed", "item 1: expected all items with a group or none"),
        ("my_images:badly_grouped", "item 0: expected a group that is"),
        ("my_images:Lazy", "item 3: raised OSError: disk gone"),
        ("my_broken:listed", "importing my_broken raised ModuleNotFoundError: .*missing"),
        ("my_images:listed?x=1", "unknown option 'x'; python: takes none"),
    ],
)
def test_bad_functions(source: str, message: str) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        list(open_data(f"python:{source}"))
    assert not isinstance(caught.value, MissingError)


def test_missing_module() -> None:
    with pytest.raises(MissingError, match="no module named 'my_imagse'; install it, or put its f"):
        open_data("python:my_imagse:listed")


@pytest.fixture
def _distribution(tmp_path: Path) -> None:
    """An installed distribution, my-data, whose package my_data holds a folder of images."""
    names = ["my_data/val/a.png", "my_data/val/b.png"]
    write_images(tmp_path, names)
    (tmp_path / "secret").mkdir()
    info = tmp_path / "my_data-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-data\nVersion: 1.0\n")
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in [*names, "../secret/a"]))


@pytest.mark.usefixtures("_distribution")
@pytest.mark.parametrize("path", ["val", "my_data/val", "my_data/val/"])
def test_folder_of_a_distribution(path: str) -> None:
    data = open_data(f"package:my-data/{path}")
    assert [grey_of(sample.content) for sample in data] == [0, 1]
    assert data.describe()["source"] == f"package:my-data/{path}"


@pytest.mark.usefixtures("_distribution")
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("my-data", "expected package:DISTRIBUTION/PATH"),
        ("my-data/", "expected package:DISTRIBUTION/PATH"),
        ("my-data/train", "my-data 1.0 has no folder 'train'"),
        ("my-data/../secret", "a path inside the distribution"),
        ("my-data//etc", "a path inside the distribution"),
        ("my-data/val?patern=x", "unknown option 'patern'; did you mean 'pattern'"),
    ],
)
def test_bad_packages(source: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        open_data(f"package:{source}")


def test_package_that_is_not_installed() -> None:
    with pytest.raises(MissingError, match="my-date is not installed; pip install --no-deps"):
        open_data("package:my-date/val")


def test_folder_of_an_editable_distribution() -> None:
    """isotest itself is often installed so while it is being developed."""
    assert len(open_data("package:isotest/samples/photographs")) == 45
