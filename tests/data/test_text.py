"""Texts from files, and which texts are refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotest.data import open_data
from isotest.data.digest import text_digest
from isotest.data.load import as_data
from isotest.data.text import decode, paragraphs
from isotest.errors import MissingError, SourceError
from tests.data.test_file import parquet

if TYPE_CHECKING:
    from pathlib import Path


def texts(source: str, base: Path, modality: str = "text") -> list[str]:
    return [sample.content for sample in open_data(source, base=base, modality=modality)]


def write_lines(path: Path, *rows: object) -> None:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize("modality", ["text", "characters"])
def test_the_passages(modality: str) -> None:
    data = open_data("sample:passages", modality=modality)
    samples = list(data)
    assert len(data) == len(samples) == 256
    # 51 books of the King James Bible are long enough for a passage.
    assert {sample.unit for sample in samples} == set(range(51))
    assert all(len(sample.content.split()) == 260 for sample in samples)
    assert data.grouped
    assert data.describe() == {
        "source": "sample:passages",
        "samples": 256,
        "seed": 0,
        "selection": "all",
    }


def test_a_sample_of_another_modality() -> None:
    with pytest.raises(SourceError, match=r"no sample texts 'photographs'; known: .*passages"):
        open_data("sample:photographs", modality="text")
    with pytest.raises(SourceError, match="no sample texts 'passage'; did you mean 'passages'"):
        open_data("sample:passage", modality="text")
    with pytest.raises(SourceError, match="no sample images 'passages'"):
        open_data("sample:passages")


def test_json_lines(tmp_path: Path) -> None:
    write_lines(
        tmp_path / "a.jsonl",
        {"text": "one", "book": "x"},
        {"text": "zwei\u2028\x00ü", "book": None},
        {"text": "three", "book": "x"},
    )
    assert texts("file:a.jsonl", tmp_path) == ["one", "zwei\u2028\x00ü", "three"]
    data = open_data("file:a.jsonl?group=book", base=tmp_path, modality="text")
    assert [sample.unit for sample in data] == [0, 1, 0]
    assert [sample.origin for sample in data] == [f"{tmp_path}/a.jsonl:{n}" for n in (1, 2, 3)]


def test_parquet(tmp_path: Path) -> None:
    rows: dict[str, list[Any]] = {
        "line": ["one", "two", "three"],
        "book": [1, 2, 1],
        "text": ["x", "y", "z"],
    }
    parquet(tmp_path / "a.parquet", rows, row_group_size=2)
    assert texts("file:a.parquet?text=line", tmp_path) == ["one", "two", "three"]
    data = open_data("file:a.parquet?group=book", base=tmp_path, modality="text")
    assert [(sample.content, sample.unit) for sample in data] == [("x", 0), ("y", 1), ("z", 0)]


def test_folder(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "b.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\n\nthree")
    (tmp_path / "x" / "a.TXT").write_text("zwei ü", encoding="utf-8")
    (tmp_path / "notes.md").write_text("x")
    assert texts("folder:.", tmp_path) == ["one\ntwo\n\nthree", "zwei ü"]
    rows = [{"file_name": name, "group": "g"} for name in ("b.txt", "x/a.TXT")]
    write_lines(tmp_path / "metadata.jsonl", *rows)
    data = open_data("folder:.", base=tmp_path, modality="text")
    assert [sample.unit for sample in data] == [0, 0]


def test_paragraphs_of_a_text_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\r\none\r\n  two \r\n \t\r\n\r\nthree\x00\x85")
    with pytest.raises(
        SourceError, match=r"a\.txt: cannot be read as UTF-8: line 6, byte 28 is 0x85"
    ):
        open_data("file:a.txt", base=tmp_path, modality="text")
    (tmp_path / "a.txt").write_bytes(b"\r\none\r\n  two \r\n \t\r\n\r\nthree\x00")
    data = open_data("file:a.txt", base=tmp_path, modality="text")
    assert [(sample.content, sample.origin) for sample in data] == [
        ("one\n  two ", f"{tmp_path}/a.txt:2"),
        ("three\x00", f"{tmp_path}/a.txt:6"),
    ]
    with pytest.raises(SourceError, match="unknown option 'text'; file: takes none"):
        open_data("file:a.txt?text=x", base=tmp_path, modality="text")


@given(st.lists(st.text("ab\u2028 \t", min_size=1).filter(str.strip), max_size=5))
def test_paragraphs_come_back(written: list[str]) -> None:
    found = paragraphs("\n\n".join(written))
    assert [paragraph for _, paragraph in found] == written
    assert [line for line, _ in found] == [2 * number + 1 for number in range(len(written))]


@given(st.text(), st.text())
def test_digests_differ_iff_texts_do(one: str, other: str) -> None:
    assert (text_digest(one) == text_digest(other)) == (one == other)


@given(st.text(st.characters(codec="utf-8")))
def test_decoding_keeps_all_but_line_ends(text: str) -> None:
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    assert decode(b"\xef\xbb\xbf" + text.encode(), "a") == lines


@given(
    st.lists(
        st.tuples(st.text("abc", min_size=1), st.sampled_from(["x", "y", None])),
        min_size=1,
        max_size=12,
    )
)
def test_units_partition_the_samples_as_the_groups_do(pairs: list[tuple[str, str | None]]) -> None:
    units = [sample.unit for sample in as_data(pairs, "text")]
    for one, (_, group) in zip(units, pairs, strict=True):
        expected = 1 if group is None else [other for _, other in pairs].count(group)
        assert units.count(one) == expected
    assert list(dict.fromkeys(units)) == list(range(len(set(units))))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"texts": "a"}', r":1: no column 'text'; did you mean 'texts'\?; its columns: texts"),
        ('{"line": "a"}', ":1: no column 'text'; its columns: line; name the right one in the s"),
        ('{"text": 3}', ":1: expected text as 'text', found 3"),
        ('{"text": null}', ":1: expected text as 'text', found None"),
        ('{"text": ""}', ":1: is empty; remove it, or add 'empty=skip' to the source"),
        (r'{"text": " \n\t"}', ":1: is empty"),
        (r'{"text": "ab\ud800"}', r":1: character 3 is half of a surrogate pair \('.ud800'\)"),
        ("", ": has no rows"),
    ],
)
def test_bad_json_lines(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "a.jsonl").write_text(line)
    with pytest.raises(SourceError, match=rf"a\.jsonl{message}"):
        texts("file:a.jsonl", tmp_path)


def test_invalid_utf_8_names_line_and_byte(tmp_path: Path) -> None:
    """A Latin-1 é, 0xE9, is the start of a sequence in UTF-8."""
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "ok"}\n{"text": "caf\xe9"}\n')
    with pytest.raises(
        SourceError, match=r"a\.jsonl: cannot be read as UTF-8: line 2, byte 29 is 0xe9"
    ):
        texts("file:a.jsonl", tmp_path)
    (tmp_path / "a.txt").write_bytes(b"a\ncaf\xe9 x")
    with pytest.raises(
        SourceError, match=r"a\.txt: cannot be read as UTF-8: line 2, byte 6 is 0xe9"
    ):
        texts("folder:.", tmp_path)


@pytest.mark.parametrize(
    ("value", "message"),
    [("", "row 0: is empty"), (3, "row 0: column 'text' holds int, expected texts$")],
)
def test_bad_parquet_values(tmp_path: Path, value: object, message: str) -> None:
    parquet(tmp_path / "a.parquet", {"text": [value]})
    with pytest.raises(SourceError, match=message):
        texts("file:a.parquet", tmp_path)


def test_parquet_with_text_that_is_not_utf_8(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet as pq

    broken = pa.array([b"ok", b"caf\xe9"]).view(pa.string())
    pq.write_table(pa.table({"text": broken}), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match=r"a\.parquet, row 1: .*UTF-8"):
        texts("file:a.parquet", tmp_path)


def test_empty_texts_are_left_out_when_the_source_says_so(tmp_path: Path) -> None:
    rows = ["", "one", " ", "two", "", "three"]
    parquet(tmp_path / "a.parquet", {"text": rows})
    assert texts("file:a.parquet?empty=skip", tmp_path) == ["one", "two", "three"]
    data = open_data("file:a.parquet?empty=skip", base=tmp_path, modality="text", samples=2)
    assert len(list(data)) == len(data) == 2
    assert data.describe()["source"] == "file:a.parquet?empty=skip"
    with pytest.raises(SourceError, match="4 samples are asked for, but there are only 3"):
        open_data("file:a.parquet?empty=skip", base=tmp_path, modality="text", samples=4)
    parquet(tmp_path / "b.parquet", {"text": ["", " "]})
    with pytest.raises(SourceError, match=r"'file:b\.parquet\?empty=skip': all of its 2 texts are"):
        open_data("file:b.parquet?empty=skip", base=tmp_path, modality="text")
    with pytest.raises(SourceError, match="expected 'empty=skip', found 'empty=no'"):
        open_data("file:b.parquet?empty=no", base=tmp_path, modality="text")


def test_empty_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(SourceError, match=r"a\.txt: is empty, expected paragraphs"):
        texts("file:a.txt", tmp_path)
    with pytest.raises(SourceError, match=r"a\.txt: is empty; remove it, or add 'empty=skip'"):
        texts("folder:.", tmp_path)


def test_what_is_no_file_of_texts(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"gone\.txt does not exist"):
        texts("file:gone.txt", tmp_path)
    (tmp_path / "a.txt").symlink_to("/dev/zero")
    for source in ("file:a.txt", "folder:."):
        with pytest.raises(SourceError, match="expected a file, found something else"):
            texts(source, tmp_path)
    (tmp_path / "a.csv").write_text("x")
    with pytest.raises(SourceError, match=r"expected a \.parquet, \.jsonl or \.txt file, found 'a"):
        texts("file:a.csv", tmp_path)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "a.png").write_text("x")
    with pytest.raises(SourceError, match=r"expected texts \(\.txt\), found 1 × \.png"):
        texts("folder:b", tmp_path)
