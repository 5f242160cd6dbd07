"""``hub:`` without a hub: a prepared copy in a cache, and a stream in place of the network."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from isotest.data import hub, open_data
from isotest.errors import MissingError, SourceError
from tests.data.images import encoded, grey_of, plain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

datasets = pytest.importorskip("datasets")

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ROWS = 12


def write_parquet(folder: Path, images: list[Any] | None = None) -> dict[str, str]:
    """Two splits of images with grey values 0 … 11, in scenes of two."""
    whole, text = datasets.Value("int64"), datasets.Value("string")
    features = datasets.Features({"image": datasets.Image(), "scene": whole, "name": text})
    rows = {
        "image": images or [plain(grey) for grey in range(ROWS)],
        "scene": [row // 2 for row in range(ROWS)],
        "name": [f"{row}" for row in range(ROWS)],
    }
    files = {}
    for split in ("train", "validation"):
        files[split] = str(folder / f"{split}.parquet")
        datasets.Dataset.from_dict(rows, features=features).to_parquet(files[split])
    return files


@pytest.fixture
def prepare(cache: Path, tmp_path: Path) -> Callable[[str], None]:
    """Leaves what ``datasets.load_dataset("mine/scenes", config)`` leaves."""

    def _prepare(config: str) -> None:
        target = cache / "mine___scenes" / config / "0.0.0" / COMMIT
        builder = datasets.load_dataset_builder(
            "parquet", config, data_files=write_parquet(tmp_path), cache_dir=tmp_path / "work"
        )
        builder.download_and_prepare()
        target.parent.mkdir(parents=True)
        shutil.copytree(builder.cache_dir, target)
        for file in target.glob("parquet-*.arrow"):
            file.rename(file.with_name(file.name.replace("parquet-", "scenes-")))
        info = target / "dataset_info.json"
        text = info.read_text().replace('"dataset_name": "parquet"', '"dataset_name": "scenes"')
        info.write_text(text.replace(str(builder.config.name), config))

    return _prepare


@pytest.fixture
def remote(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[list[Any] | None], None]:
    """Serves a Parquet file as if it were mine/scenes on the hub."""
    local = datasets.load_dataset_builder

    def _remote(images: list[Any] | None = None) -> None:
        files = write_parquet(tmp_path, images)

        def _load(path: str, name: str | None = None, **options: Any) -> Any:
            if datasets.config.HF_HUB_OFFLINE:
                return local(path, name, **options)
            assert (path, options) == ("mine/scenes", {"revision": None})
            return local("parquet", data_files=files, cache_dir=tmp_path / "work")

        monkeypatch.setattr(datasets, "load_dataset_builder", _load)
        monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(hub, "require_access", lambda *_: None)

    return _remote


def test_without_a_copy_and_without_download_it_is_missing(cache: Path) -> None:
    with pytest.raises(MissingError, match=r"not on this machine; add --isotest-download"):
        open_data("hub:mine/scenes?split=validation")


def test_a_prepared_copy_needs_no_download(prepare: Callable[[str], None]) -> None:
    prepare("default")
    data = open_data("hub:mine/scenes?split=validation&group=scene", samples=8, seed=1)
    greys = [grey_of(sample.content) for sample in data]
    assert greys == sorted(greys)
    assert len(set(greys)) == 8
    units = {grey // 2: sample.unit for grey, sample in zip(greys, data, strict=True)}
    assert len(set(units.values())) == len(units)
    assert data.describe() == {
        "source": "hub:mine/scenes?split=validation&group=scene",
        "samples": 8,
        "seed": 1,
        "selection": "subset",
    }
    assert len(open_data(f"hub:mine/scenes@{COMMIT}?split=train")) == ROWS


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", r"expected '\?split=NAME'; its splits: train, validation"),
        ("?split=valid", "no split 'valid'; its splits: train, validation"),
        ("?split=train&image=img", "no column 'img'.*its columns: image, scene, name"),
        ("?split=train&group=scenes", r"no column 'scenes'; did you mean 'scene'\?"),
        ("?splt=train", "unknown option 'splt'; did you mean 'split'"),
    ],
)
def test_bad_options(prepare: Callable[[str], None], options: str, message: str) -> None:
    prepare("default")
    with pytest.raises(SourceError, match=message):
        open_data(f"hub:mine/scenes{options}")


def test_a_column_of_something_else(prepare: Callable[[str], None]) -> None:
    prepare("default")
    with pytest.raises(SourceError, match="row 0: column 'name' holds str, expected images"):
        list(open_data("hub:mine/scenes?split=train&image=name"))


def test_a_copy_of_another_revision_does_not_count(prepare: Callable[[str], None]) -> None:
    prepare("default")
    with pytest.raises(MissingError, match="mine/scenes at fedcba is not on this machine"):
        open_data("hub:mine/scenes@fedcba?split=train")


def test_several_prepared_configurations(prepare: Callable[[str], None]) -> None:
    prepare("day")
    prepare("night")
    with pytest.raises(SourceError, match=r"multiple .*day.*name one with config="):
        open_data("hub:mine/scenes?split=train")
    assert len(open_data("hub:mine/scenes?split=train&config=night")) == ROWS
    with pytest.raises(MissingError, match="not on this machine"):
        open_data("hub:mine/scenes?split=train&config=dusk")


def test_a_stream_is_shuffled_by_the_seed_and_repeats(remote: Callable[..., None]) -> None:
    remote()
    source = "hub:mine/scenes?split=validation&group=scene"
    data = open_data(source, samples=5, seed=1, download=True)
    greys = [grey_of(sample.content) for sample in data]
    assert greys == [grey_of(sample.content) for sample in data]
    assert len(set(greys)) == 5
    assert greys != sorted(greys)
    other = open_data(source, samples=5, seed=2, download=True)
    assert greys != [grey_of(sample.content) for sample in other]
    assert data.describe()["selection"] == "stream, shuffled in a buffer of 1000"
    assert data.grouped


def test_a_stream_that_ends_early_says_how_many_there_were(remote: Callable[..., None]) -> None:
    remote()
    data = open_data("hub:mine/scenes?split=train", samples=13, download=True)
    with pytest.raises(SourceError, match="13 samples are asked for, but there are only 12"):
        list(data)


def test_a_stream_of_unknown_size_needs_a_number(remote: Callable[..., None]) -> None:
    remote()
    with pytest.raises(SourceError, match="not known beforehand; say how many samples"):
        open_data("hub:mine/scenes?split=train", download=True)


def test_bad_split_of_a_stream(remote: Callable[..., None]) -> None:
    remote()
    with pytest.raises(SourceError, match=r"no split 'valid'; .*train.*validation"):
        open_data("hub:mine/scenes?split=valid", samples=2, download=True)
    with pytest.raises(SourceError, match=r"no column 'img'"):
        list(open_data("hub:mine/scenes?split=train&image=img", samples=2, download=True))


def test_damaged_image_in_a_stream(remote: Callable[..., None]) -> None:
    good = {"bytes": encoded(plain(0)), "path": None}
    remote([*([good] * (ROWS - 1)), {"bytes": b"no image", "path": None}])
    data = open_data("hub:mine/scenes?split=train", samples=12, download=True)
    with pytest.raises(SourceError, match=r"row \d+ of the shuffled stream: cannot be read"):
        list(data)


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (ConnectionError("no route"), MissingError, r"failed .*no route\); check the network"),
        (RuntimeError("Dataset scripts are no longer supported"), SourceError, "scripts are no"),
        (ValueError("Config name is missing"), SourceError, "Config name is missing"),
    ],
)
def test_what_the_hub_answers(
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    kind: type[SourceError],
    message: str,
) -> None:
    local = datasets.load_dataset_builder

    def _load(*arguments: Any, **options: Any) -> Any:
        if datasets.config.HF_HUB_OFFLINE:
            return local(*arguments, **options)
        raise error

    monkeypatch.setattr(datasets, "load_dataset_builder", _load)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(hub, "require_access", lambda *_: None)
    with pytest.raises(kind, match=message):
        open_data("hub:mine/scenes?split=train", samples=2, download=True)


@pytest.mark.parametrize("name", ["scenes", "a/b/c", "../scenes", "hf://x/y"])
def test_bad_names(cache: Path, name: str) -> None:
    with pytest.raises(SourceError, match="expected 'hub:organisation/name'"):
        open_data(f"hub:{name}?split=train")


def test_a_local_folder_never_stands_in_for_the_hub(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "mine" / "scenes").mkdir(parents=True)
    with pytest.raises(SourceError, match="mine/scenes is a folder in the working directory"):
        open_data("hub:mine/scenes?split=train")
