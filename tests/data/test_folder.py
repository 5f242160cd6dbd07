from __future__ import annotations

import json
from pathlib import Path

import pytest

from isotest.data import open_data
from isotest.errors import MissingError, SourceError
from tests.data.images import grey_of, write_images


def metadata(folder: Path, *rows: object) -> None:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (folder / "metadata.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def origins(source: str, base: Path) -> list[str]:
    return [
        Path(sample.origin).relative_to(base).as_posix() for sample in open_data(source, base=base)
    ]


def test_images_are_sorted_by_their_path_whatever_the_system_lists_first(tmp_path: Path) -> None:
    write_images(tmp_path, ["b.png", "a/z.JPG", "a b.png", "ä/x.webp", "B.png"])
    assert origins("folder:.", tmp_path) == ["B.png", "a b.png", "a/z.JPG", "b.png", "ä/x.webp"]


def test_what_is_no_image_is_left_out(tmp_path: Path) -> None:
    write_images(tmp_path, ["a.png", ".hidden.png", ".cache/b.png"])
    (tmp_path / "notes.txt").write_text("x")
    assert origins("folder:.", tmp_path) == ["a.png"]


def test_pattern(tmp_path: Path) -> None:
    write_images(tmp_path, ["val/a.png", "val/b.jpg", "train/a.png"])
    assert origins("folder:.?pattern=val/*", tmp_path) == ["val/a.png", "val/b.jpg"]
    assert origins("folder:.?pattern=*.png", tmp_path) == ["train/a.png", "val/a.png"]


def test_no_images_says_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"expected images \(.*\.png.*\), found no files"):
        open_data(f"folder:{tmp_path}")
    for name in ("a.txt", "b.TXT", "c.npy", "README"):
        (tmp_path / name).write_text("x")
    with pytest.raises(SourceError, match=r"found 2 × \.txt, 1 × no suffix, 1 × \.npy"):
        open_data(f"folder:{tmp_path}")
    write_images(tmp_path, ["a.png"])
    with pytest.raises(SourceError, match=r"that match '\*\.jpg', found .*1 × \.png"):
        open_data(f"folder:{tmp_path}?pattern=*.jpg")


def test_missing_folder_and_file_in_its_place(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"the folder \S*/nowhere does not exist"):
        open_data("folder:nowhere", base=tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(SourceError, match="expected a folder, found a file"):
        open_data("folder:file", base=tmp_path)


def test_unknown_option(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="unknown option 'patern'; did you mean 'pattern'"):
        open_data("folder:.?patern=x", base=tmp_path)


def test_damaged_image_names_the_file(tmp_path: Path) -> None:
    write_images(tmp_path, ["a.png", "b.png"])
    (tmp_path / "b.png").write_bytes(b"")
    data = iter(open_data("folder:.", base=tmp_path))
    next(data)
    with pytest.raises(SourceError, match=r"b\.png: the file is empty"):
        next(data)


def test_groups_become_units_by_first_appearance(tmp_path: Path) -> None:
    write_images(tmp_path, ["a.png", "b.png", "c.png", "d.png", "e.png"])
    metadata(
        tmp_path,
        {"file_name": "e.png", "group": "night"},
        {"file_name": "d.png", "group": None},
        {"file_name": "c.png", "group": "night"},
        {"file_name": "b.png"},
        {"file_name": "a.png", "group": 7},
    )
    data = open_data("folder:.", base=tmp_path)
    assert [(sample.index, sample.unit) for sample in data] == [
        (0, 0),
        (1, 1),
        (2, 2),
        (3, 3),
        (4, 2),
    ]
    assert data.grouped
    assert len(data) == 5


def test_without_metadata_every_image_is_its_own_unit(tmp_path: Path) -> None:
    write_images(tmp_path, ["a.png", "b.png"])
    data = open_data("folder:.", base=tmp_path)
    assert [sample.unit for sample in data] == [0, 1]
    assert not data.grouped


def test_metadata_in_a_subfolder_counts_from_there(tmp_path: Path) -> None:
    write_images(tmp_path, ["x/a.png", "x/b.png", "y/a.png"])
    metadata(
        tmp_path / "x", {"file_name": "a.png", "group": "g"}, {"file_name": "b.png", "group": "g"}
    )
    assert [sample.unit for sample in open_data("folder:.", base=tmp_path)] == [0, 0, 1]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"file_name": "gone.png"}, r"metadata\.jsonl:2: names 'gone\.png', which is not in"),
        ({"file_name": "../a.png"}, r"metadata\.jsonl:2: '\.\./a\.png' leads out of the folder"),
        ({"file_name": "/etc/a.png"}, r"metadata\.jsonl:2: '/etc/a\.png' leads out of the folder"),
        ({"file_name": "a.png"}, r"metadata\.jsonl:2: names 'a\.png' a second time"),
        ({"file": "a.png"}, r"metadata\.jsonl:2: expected \{\"file_name\""),
        (["a.png"], r"metadata\.jsonl:2: expected an object, found \[\"a\.png\"\]"),
        ('{"file_name": ', r"metadata\.jsonl:2: is not JSON"),
        ({"file_name": "b.png", "group": ""}, r"metadata\.jsonl:2: expected a group that is"),
        ({"file_name": "b.png", "group": [1]}, r"metadata\.jsonl:2: expected a group that is"),
    ],
)
def test_bad_metadata(tmp_path: Path, row: object, message: str) -> None:
    write_images(tmp_path, ["a.png", "b.png"])
    metadata(tmp_path, {"file_name": "a.png", "group": "g"}, row)
    with pytest.raises(SourceError, match=message):
        open_data("folder:.", base=tmp_path)


def test_an_image_that_the_metadata_forget_is_refused(tmp_path: Path) -> None:
    write_images(tmp_path, ["a.png", "b.png"])
    metadata(tmp_path, {"file_name": "a.png", "group": "g"})
    with pytest.raises(SourceError, match=r"metadata\.jsonl: has no row for 'b\.png'"):
        open_data("folder:.", base=tmp_path)


def test_metadata_that_are_not_read_are_refused(tmp_path: Path) -> None:
    write_images(tmp_path, ["a.png"])
    (tmp_path / "metadata.csv").write_text("file_name,group\n")
    with pytest.raises(SourceError, match=r"metadata\.csv: is not read here"):
        open_data("folder:.", base=tmp_path)


def test_metadata_in_another_encoding(tmp_path: Path) -> None:
    write_images(tmp_path, ["a.png"])
    (tmp_path / "metadata.jsonl").write_bytes('{"file_name": "ä.png"}'.encode("latin-1"))
    with pytest.raises(SourceError, match=r"metadata\.jsonl: cannot be read as UTF-8"):
        open_data("folder:.", base=tmp_path)


def test_description_holds_no_path_of_this_machine(tmp_path: Path) -> None:
    write_images(tmp_path / "my data" / "val", ["a.png"])
    for source in ("folder:my data/val", f"folder:{tmp_path}/my data/val"):
        described = open_data(source, base=tmp_path).describe()
        assert described["source"] == "folder:my data/val"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    described = open_data(f"folder:{tmp_path}/my data/val", base=elsewhere).describe()
    assert described["source"] == "folder:val"


def test_pixels_arrive(tmp_path: Path) -> None:
    write_images(tmp_path, ["a.png", "b.png"])
    assert [grey_of(sample.content) for sample in open_data("folder:.", base=tmp_path)] == [0, 1]
