from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import pytest

from isotest.data import fingerprint, open_data
from isotest.data.digits import load_digits
from isotest.errors import SourceError
from tests.data.images import grey_of, plain, write_images

if TYPE_CHECKING:
    from pathlib import Path


def test_the_photographs_are_fifteen_groups_of_three() -> None:
    data = open_data("sample:photographs")
    units = [sample.unit for sample in data]
    assert len(data) == len(units) == 45
    assert sorted(units) == sorted(list(range(15)) * 3)
    assert data.describe() == {
        "source": "sample:photographs",
        "samples": 45,
        "seed": 0,
        "selection": "all",
    }


def test_a_subset_is_drawn_by_the_seed_and_keeps_the_order(tmp_path: Path) -> None:
    write_images(tmp_path, [f"{number:02d}.png" for number in range(20)])
    expected = np.sort(np.random.default_rng(3).permutation(20)[:6]).tolist()
    data = open_data("folder:.", base=tmp_path, samples=6, seed=3)
    assert [grey_of(sample.content) for sample in data] == expected
    assert [sample.index for sample in data] == list(range(6))
    assert data.describe()["selection"] == "subset"
    other = open_data("folder:.", base=tmp_path, samples=6, seed=4)
    assert [grey_of(sample.content) for sample in other] != expected


def test_iterating_twice_yields_the_same() -> None:
    data = open_data("sample:photographs", samples=5)
    first, second = ([sample.digest for sample in data] for _ in range(2))
    assert first == second


def test_more_samples_than_there_are() -> None:
    with pytest.raises(SourceError, match="46 samples are asked for, but there are only 45"):
        open_data("sample:photographs", samples=46)


@pytest.mark.parametrize("samples", [0, -1, True])
def test_senseless_number_of_samples(samples: int) -> None:
    with pytest.raises(SourceError, match="expected at least 1"):
        open_data("sample:photographs", samples=samples)


def test_negative_seed() -> None:
    with pytest.raises(SourceError, match="seed = -1"):
        open_data("sample:photographs", seed=-1)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("sample:photograph", "did you mean 'photographs'"),
        ("sample:digits?split=held", "unknown split 'held'; did you mean 'held-out'"),
        ("sample:digits?splitt=held-out", "unknown option 'splitt'; did you mean 'split'"),
        ("sample:photographs?split=x", "unknown option 'split'"),
        ("folders:x", "unknown scheme 'folders'; did you mean 'folder'"),
    ],
)
def test_misspelt_sources(source: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        open_data(source)


def test_unknown_modality() -> None:
    with pytest.raises(SourceError, match="unknown modality 'visoin'; did you mean 'vision'"):
        open_data("sample:photographs", modality="visoin")


def test_digest_is_of_content_not_of_the_file(tmp_path: Path) -> None:
    for name, kind in (("a", "png"), ("b", "bmp")):
        plain(9).save(tmp_path / f"{name}.{kind}")
    plain(9, (3, 4)).save(tmp_path / "c.png")
    plain(8).save(tmp_path / "d.png")
    first, same, other_size, other_pixels = (
        sample.digest for sample in open_data("folder:.", base=tmp_path)
    )
    assert first == same
    assert len({first, other_size, other_pixels}) == 3
    pixels = hashlib.sha256(b"RGB 4x3\n" + bytes([9] * 36)).digest()
    assert first == hashlib.sha256(pixels + b"without group").digest()


def test_regrouping_changes_the_fingerprint(tmp_path: Path) -> None:
    write_images(tmp_path, ["a.png", "b.png"])
    prints = set()
    for groups in (("x", "y"), ("x", "x"), (None, None)):
        rows = zip(("a.png", "b.png"), groups, strict=True)
        lines = [
            f'{{"file_name": "{name}"' + (f', "group": "{group}"}}' if group else "}")
            for name, group in rows
        ]
        (tmp_path / "metadata.jsonl").write_text("\n".join(lines))
        data = open_data("folder:.", base=tmp_path)
        prints.add(fingerprint([sample.digest for sample in data]))
    assert len(prints) == 3


def test_the_digits_are_scikit_learns() -> None:
    reference = pytest.importorskip("sklearn.datasets").load_digits()
    images, labels = load_digits()
    assert np.array_equal(np.rint(images * (16 / 255)), reference.images)
    assert np.array_equal(images, np.rint(reference.images * (255 / 16)))
    assert np.array_equal(labels, reference.target)


def test_the_splits_of_the_digits_are_disjoint_and_complete() -> None:
    everything, training, held_out = (
        [sample.digest for sample in open_data(f"sample:digits{split}")]
        for split in ("", "?split=training", "?split=held-out")
    )
    assert (len(everything), len(training), len(held_out)) == (1797, 1437, 360)
    assert everything[::5] == held_out
    assert [digest for index, digest in enumerate(everything) if index % 5] == training


def test_a_digit_is_an_eight_by_eight_rgb_image() -> None:
    (sample,) = open_data("sample:digits?split=held-out", samples=1)
    assert (sample.content.mode, sample.content.size) == ("RGB", (8, 8))
