from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from isotest.data import open_data
from isotest.errors import MissingError, SourceError
from tests.data.images import encoded, grey_of, plain, write_images

if TYPE_CHECKING:
    from pathlib import Path


def parquet(path: Path, columns: dict[str, list[Any]], row_group_size: int = 100) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(columns), path, row_group_size=row_group_size)


def images(count: int) -> list[bytes]:
    return [encoded(plain(grey)) for grey in range(count)]


def greys(source: str, base: Path, samples: int | None = None) -> list[int]:
    data = open_data(source, base=base, samples=samples or "all", seed=1)
    return [grey_of(sample.content) for sample in data]


def test_parquet_of_bytes_over_several_row_groups(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", {"image": images(7)}, row_group_size=3)
    assert greys("file:a.parquet", tmp_path) == list(range(7))
    subset = greys("file:a.parquet", tmp_path, samples=4)
    assert len(subset) == 4
    assert subset == sorted(subset)


def test_parquet_as_datasets_writes_it(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"picture": datasets.Image(), "scene": datasets.Value("string")})
    rows = {"picture": [plain(grey) for grey in range(3)], "scene": ["x", "y", "x"]}
    datasets.Dataset.from_dict(rows, features=features).to_parquet(tmp_path / "a.parquet")
    data = open_data("file:a.parquet?image=picture&group=scene", base=tmp_path)
    assert [(grey_of(sample.content), sample.unit) for sample in data] == [(0, 0), (1, 1), (2, 0)]
    assert data.grouped


def test_parquet_of_paths(tmp_path: Path) -> None:
    write_images(tmp_path, ["x/a.png", "x/b.png"])
    parquet(tmp_path / "a.parquet", {"file": ["x/b.png", "x/a.png"]})
    assert greys("file:a.parquet?image=file", tmp_path) == [1, 0]


def test_missing_column_lists_those_there_are(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", {"images": images(1), "label": [1]})
    with pytest.raises(
        SourceError, match=r"no column 'image'; did you mean 'images'\?; its columns: images, label"
    ):
        open_data("file:a.parquet", base=tmp_path)
    with pytest.raises(SourceError, match="no column 'scene'"):
        open_data("file:a.parquet?image=images&group=scene", base=tmp_path)


@pytest.mark.parametrize("value", [None, 3, "../a.png", b"", b"no image"])
def test_bad_value_names_the_row(tmp_path: Path, value: object) -> None:
    write_images(tmp_path, ["a.png"])
    parquet(tmp_path / "a.parquet", {"image": [value]})
    with pytest.raises(SourceError, match=r"a\.parquet, row 0: "):
        list(open_data("file:a.parquet", base=tmp_path))


def test_damaged_and_empty_parquet(tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", {"image": images(2)})
    content = (tmp_path / "a.parquet").read_bytes()
    for kept in (0, 10, len(content) - 4):
        (tmp_path / "b.parquet").write_bytes(content[:kept])
        with pytest.raises(SourceError, match=r"b\.parquet: cannot be read as Parquet"):
            open_data("file:b.parquet", base=tmp_path)
    # Damage within the pages, behind an intact footer.
    (tmp_path / "c.parquet").write_bytes(content[:4] + bytes(60) + content[64:])
    with pytest.raises(SourceError, match=r"c\.parquet"):
        list(open_data("file:c.parquet", base=tmp_path))
    parquet(tmp_path / "d.parquet", {"image": []})
    with pytest.raises(SourceError, match=r"d\.parquet: has no rows"):
        open_data("file:d.parquet", base=tmp_path)


def test_json_lines(tmp_path: Path) -> None:
    write_images(tmp_path, ["a.png", "b.png", "c.png"])
    rows = [{"path": "c.png", "scene": "x"}, {"path": "a.png", "scene": None}]
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(row) for row in rows) + "\n\n")
    data = open_data("file:a.jsonl?group=scene", base=tmp_path)
    assert [grey_of(sample.content) for sample in data] == [2, 0]
    assert data.describe()["source"] == "file:a.jsonl?group=scene"


def test_a_line_ends_at_a_newline_only(tmp_path: Path) -> None:
    """U+2028 and U+0085 separate lines for str.splitlines, and may stand inside a JSON string."""
    write_images(tmp_path, ["a\u2028b\u0085c.png"])
    (tmp_path / "a.jsonl").write_text('{"path": "a\u2028b\u0085c.png"}\r\n', encoding="utf-8")
    assert len(list(open_data("file:a.jsonl", base=tmp_path))) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"a\.jsonl: has no rows"),
        ("{", r"a\.jsonl:1: is not JSON"),
        ("[1]", r"a\.jsonl:1: expected an object, found \[1\]"),
        pytest.param("[" * 100_000, r"a\.jsonl:1: is not JSON", id="nested"),
        ('{"file": "a.png"}', r"a\.jsonl:1: no column 'path'; .*its columns: file"),
        ('{"path": 3}', r"a\.jsonl:1: expected a path as 'path', found 3"),
        ('{"path": "/a.png"}', r"a\.jsonl:1: '/a\.png' leads out of the folder"),
        ('{"path": "x/../../a.png"}', r"a\.jsonl:1: .* leads out of the folder"),
    ],
)
def test_bad_json_lines(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(SourceError, match=message):
        open_data("file:a.jsonl", base=tmp_path)


def test_json_lines_naming_a_file_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"path": "gone.png"}')
    with pytest.raises(SourceError, match=r"gone\.png .*a\.jsonl:1"):
        list(open_data("file:a.jsonl", base=tmp_path))


def test_missing_file_and_unknown_kind(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"gone\.parquet does not exist"):
        open_data("file:gone.parquet", base=tmp_path)
    (tmp_path / "a.csv").write_text("x")
    with pytest.raises(SourceError, match=r"expected a \.parquet or \.jsonl file, found 'a\.csv'"):
        open_data("file:a.csv", base=tmp_path)
