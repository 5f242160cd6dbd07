"""``hub:`` for texts and recordings: a prepared copy in a cache, and streams of local files."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from isotest.data import hub, open_data
from isotest.errors import SourceError
from isotest.source import DATA_SCHEMES, parse_source
from tests.data.recordings import RATE, encoded, number_of, ramp

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

datasets = pytest.importorskip("datasets")

COMMIT = "0123456789abcdef0123456789abcdef01234567"
ROWS = 6


def write_parquet(path: Path, contents: list[Any] | None = None) -> str:
    """Six rows of what Common Voice has: recordings that ``datasets`` knows as such, sentences."""
    import pyarrow as pa
    from pyarrow import parquet

    recordings = [{"bytes": encoded(ramp(row)), "path": f"{row}.wav"} for row in range(ROWS)]
    # What `datasets` itself writes; writing it this way needs no torchcodec.
    features = datasets.Features(
        {
            "audio": datasets.Audio(sampling_rate=48_000),
            "sentence": datasets.Value("string"),
            "speaker": datasets.Value("int64"),
        }
    )
    columns = {
        "audio": contents or recordings,
        "sentence": [f"sentence {row}" if row % 2 else "" for row in range(ROWS)],
        "speaker": [row // 3 for row in range(ROWS)],
    }
    parquet.write_table(pa.table(columns, schema=features.arrow_schema), path)
    return str(path)


@pytest.fixture
def prepare(cache: Path, tmp_path: Path) -> Callable[..., None]:
    """Leaves what ``datasets.load_dataset("mine/voices")`` leaves."""

    def _prepare(contents: list[Any] | None = None) -> None:
        target = cache / "mine___voices" / "default" / "0.0.0" / COMMIT
        files = {"test": write_parquet(tmp_path / "test.parquet", contents)}
        builder = datasets.load_dataset_builder(
            "parquet", "default", data_files=files, cache_dir=tmp_path / "work"
        )
        builder.download_and_prepare()
        target.parent.mkdir(parents=True)
        shutil.copytree(builder.cache_dir, target)
        for file in target.glob("parquet-*.arrow"):
            file.rename(file.with_name(file.name.replace("parquet-", "voices-")))
        info = target / "dataset_info.json"
        text = info.read_text().replace('"dataset_name": "parquet"', '"dataset_name": "voices"')
        info.write_text(text.replace(str(builder.config.name), "default"))

    return _prepare


@pytest.fixture
def remote(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Serves local files as if they were mine/voices on the hub."""
    local = datasets.load_dataset_builder

    def _remote(kind: str, file: str) -> None:
        def _load(path: str, name: str | None = None, **options: Any) -> Any:
            if datasets.config.HF_HUB_OFFLINE:
                return local(path, name, **options)
            return local(kind, data_files={"test": file}, cache_dir=tmp_path / "work")

        monkeypatch.setattr(datasets, "load_dataset_builder", _load)
        monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(hub, "require_access", lambda *_: None)

    return _remote


SPEECH = "hub:mine/voices?split=test&transcript=sentence&group=speaker"


def test_recordings_of_a_prepared_copy(prepare: Callable[..., None]) -> None:
    prepare()
    data = open_data(SPEECH, modality="speech")
    found = [(number_of(s.content.samples), s.content.transcript, s.unit) for s in data]
    assert found == [(row, f"sentence {row}" if row % 2 else "", row // 3) for row in range(ROWS)]
    # As recorded, not as the feature's sampling rate asks for.
    assert {sample.content.rate for sample in data} == {RATE}


def test_texts_beside_recordings_of_a_prepared_copy(prepare: Callable[..., None]) -> None:
    """Only the wanted columns are read: decoding the recordings would need torchcodec."""
    prepare()
    source = "hub:mine/voices?split=test&text=sentence"
    with pytest.raises(SourceError, match=r"row 0: is empty; .*'empty=skip'"):
        list(open_data(source, modality="text"))
    data = open_data(f"{source}&empty=skip", modality="characters")
    assert [sample.content for sample in data] == ["sentence 1", "sentence 3", "sentence 5"]


def test_recordings_of_a_stream(remote: Callable[..., None], tmp_path: Path) -> None:
    remote("parquet", write_parquet(tmp_path / "test.parquet"))
    data = open_data(SPEECH, modality="speech", samples=ROWS, seed=1, download=True)
    for _ in range(2):
        found = {number_of(s.content.samples): s.content.transcript for s in data}
        assert found == {row: f"sentence {row}" if row % 2 else "" for row in range(ROWS)}


def test_texts_of_a_stream(remote: Callable[..., None], tmp_path: Path) -> None:
    remote("parquet", write_parquet(tmp_path / "test.parquet"))
    source = "hub:mine/voices?split=test&text=sentence&empty=skip"
    with pytest.raises(SourceError, match="not known beforehand; say how many samples"):
        open_data(source, modality="text", download=True)
    data = open_data(source, modality="text", samples=3, download=True)
    assert {sample.content for sample in data} == {"sentence 1", "sentence 3", "sentence 5"}
    with pytest.raises(SourceError, match="4 samples are asked for, but there are only 3"):
        list(open_data(source, modality="text", samples=4, download=True))


def test_a_stream_whose_columns_are_not_known_beforehand(
    remote: Callable[..., None], tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text('{"line": "one"}\n{"line": "two"}\n')
    remote("json", str(tmp_path / "a.jsonl"))
    source = "hub:mine/voices?split=test"
    data = open_data(f"{source}&text=line", modality="text", samples=2, download=True)
    assert {sample.content for sample in data} == {"one", "two"}
    with pytest.raises(SourceError, match=r"no column 'text'; .*its columns: line"):
        list(open_data(source, modality="text", samples=2, download=True))


@pytest.mark.parametrize(
    ("options", "modality", "message"),
    [
        ("?split=train", "text", "no split 'train'"),
        ("?split=test", "text", "no column 'text'; .*its columns: audio, sentence, speaker"),
        ("?split=test&text=sentense", "text", "no column 'sentense'; did you mean 'sentence'"),
        ("?split=test&text=speaker", "text", "row 0: column 'speaker' holds int, expected texts$"),
        ("?split=test&audio=voice", "speech", "no column 'voice'"),
        ("?split=test&audio=sentence", "speech", "column 'sentence' holds str, expected record"),
        ("?split=test&transcript=said", "speech", "no column 'said'"),
        ("?split=test&transcript=speaker", "speech", "expected a transcript that is text, found 0"),
        ("?split=test&image=audio", "speech", "unknown option 'image'"),
        ("?split=test&channels=left", "speech", "expected 'channels=mean' or 'channels=first'"),
    ],
)
def test_bad_options(
    prepare: Callable[..., None], options: str, modality: str, message: str
) -> None:
    prepare()
    with pytest.raises(SourceError, match=message):
        list(open_data(f"hub:mine/voices{options}", modality=modality))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"bytes": b"no sound", "path": None}, "row 0: cannot be decoded"),
        ({"bytes": None, "path": None}, "row 0: column 'audio' holds dict, expected recordings"),
        ({"bytes": None, "path": "/dev/zero"}, "row 0: expected a file, found something else"),
        ({"bytes": None, "path": "gone.wav"}, "row 0: cannot be decoded .*No such file"),
        ({"bytes": encoded(np.zeros((9, 2))), "path": None}, "row 0: has 2 channels"),
    ],
    ids=["text", "nothing", "device", "gone", "stereo"],
)
def test_bad_recordings(prepare: Callable[..., None], value: Any, message: str) -> None:
    prepare([value] * ROWS)
    with pytest.raises(SourceError, match=message):
        list(open_data("hub:mine/voices?split=test", modality="speech"))


def test_a_stream_reads_no_file_of_this_machine(
    remote: Callable[..., None], tmp_path: Path
) -> None:
    (tmp_path / "secret.wav").write_bytes(encoded(ramp(0)))
    rows = [{"bytes": None, "path": str(tmp_path / "secret.wav")}] * ROWS
    remote("parquet", write_parquet(tmp_path / "test.parquet", rows))
    data = open_data("hub:mine/voices?split=test", modality="speech", samples=1, download=True)
    with pytest.raises(SourceError, match=r"holds dict, expected recordings$"):
        list(data)


def test_opening_texts_imports_neither_torch_nor_audio_libraries() -> None:
    code = (
        "import sys; from isotest.data import open_data; "
        "next(iter(open_data('sample:passages', modality='text'))); "
        "unwanted = ('torch', 'transformers', 'datasets', 'soundfile', 'torchaudio'); "
        "print([name for name in unwanted if name in sys.modules]); "
        "next(iter(open_data('sample:speech', modality='speech'))); "
        "print([name for name in unwanted if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "['soundfile']"]


def test_recordings_that_are_files_of_their_own_need_the_copy_in_parquet(
    remote: Callable[..., None], tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.wav").write_bytes(encoded(ramp(0)))
    remote("audiofolder", str(tmp_path / "folder" / "a.wav"))
    message = r"files of their own \(audiofolder\), .*: hub:mine/voices@refs/convert/parquet$"
    with pytest.raises(SourceError, match=message):
        open_data("hub:mine/voices?split=test", modality="speech", samples=1, download=True)


def test_the_branch_of_parquet_copies_is_a_revision() -> None:
    source = parse_source(
        "hub:mozilla-foundation/common_voice_11_0@refs/convert/parquet"
        "?config=en&split=validation&transcript=sentence",
        DATA_SCHEMES,
    )
    assert source.location == "mozilla-foundation/common_voice_11_0"
    assert source.revision == "refs/convert/parquet"
    assert source.options == {"config": "en", "split": "validation", "transcript": "sentence"}
