"""``python -m isotest.blocks.tasks``: trains, says how well, and where the weights went."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from isotest.blocks.tasks import __main__ as command
from isotest.blocks.tasks.drawing import generator
from isotest.blocks.tasks.sorting import Sorting
from isotest.blocks.tasks.stored import load, load_network

if TYPE_CHECKING:
    from isotest.blocks.tasks.config import Design
    from isotest.blocks.tasks.examples import Examples
    from isotest.blocks.tasks.training import Settings


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training of a few steps."""
    settings = Sorting().settings

    def few(_: Sorting, design: Design) -> Settings:
        return replace(settings(design), epochs=2, warmup=1)

    def little(self: Sorting, *, seed: int) -> Examples:
        return self._drawn(generator("train", seed), 60)

    monkeypatch.setattr(Sorting, "settings", few)
    monkeypatch.setattr(Sorting, "train", little)


@pytest.mark.usefixtures("short")
def test_weights_of_both_designs_are_written_and_can_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new"
    assert command.main(["sorting", "--seed", "3", "--to", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    designs: tuple[Design, ...] = ("bert", "modern")
    for design, line in zip(designs, lines, strict=True):
        file = folder / f"sorting-{design}.safetensors"
        assert line.startswith(f"sorting {design}: accuracy 0.")
        assert "on fresh examples" in line
        assert str(file) in line
        assert load_network(file, task="sorting", design=design)
        metadata = load(file).metadata
        assert metadata["seed"] == 3
        assert metadata["settings"]["epochs"] == 2
        assert 0 < metadata["test_accuracy"] < 1


@pytest.mark.usefixtures("short")
def test_the_same_seed_writes_the_same_file(tmp_path: Path) -> None:
    files = []
    for folder, seed in (("a", "0"), ("b", "0"), ("c", "1")):
        options = ["--design", "bert", "--seed", seed, "--to", str(tmp_path / folder)]
        assert command.main(["sorting", *options]) == 0
        files.append((tmp_path / folder / "sorting-bert.safetensors").read_bytes())
    assert files[0] == files[1] != files[2]


def test_a_folder_that_cannot_be_made_is_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert command.main(["sorting", "--to", str(tmp_path / "file" / "below")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "name another folder with --to FOLDER" in error


def test_a_folder_that_cannot_be_written_to_is_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write anywhere
    assert command.main(["sorting", "--to", str(tmp_path)]) == 2
    assert f"{tmp_path}: cannot be written to" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "TASK"),
        (["sortng"], "sortng"),
        (["sorting", "--design", "gpt"], "gpt"),
        (["sorting", "--seed", "-1"], "whole number from 0"),
        (["sorting", "--seed", "x"], "whole number from 0"),
    ],
)
def test_what_is_misspelt_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main(arguments)
    assert caught.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error


def test_weights_go_where_isotest_reads_them() -> None:
    from isotest.blocks.tasks.identity import task_source
    from isotest.source import MODEL_SCHEMES, parse_source

    for name in ("sorting", "convex-hull", "memorization"):
        source = task_source(parse_source(f"task:{name}?design=modern", MODEL_SCHEMES))
        assert (
            source.file(Path("/nowhere"))
            == command._parser().parse_args([name]).to / f"{name}-modern.safetensors"
        )
