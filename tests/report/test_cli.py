"""The command as a user types it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import jsonschema
import pytest

from isotest.cli import main
from isotest.profile_json import write_profile
from tests.report.examples import profile

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    write_profile(profile([0.1, 0.2, None], norms=[1.0, 2.0, 3.0]), before)
    write_profile(profile([0.1, 0.25, None], norms=[1.0, 2.0, 3.0], seed=1), after)
    return str(before), str(after)


def test_show(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", files[0]]) == 0
    text = capsys.readouterr().out
    # The spread of the four pseudo-values, 0.01·√(5/12) = 0.0065, is the error bar.
    assert "0.2000 ± 0.0065" in text
    assert "anisotropy is undefined at layer final: no direction" in text
    for words in (
        "init:vit?seed=0",
        "data.source = sample:photographs",
        "torch = 2.14.1",
        "mean_norm",
    ):
        assert words in text


def test_show_one_metric(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", files[0], "--metric", "mean_norm"]) == 0
    assert "anisotropy" not in capsys.readouterr().out


def test_show_is_as_wide_as_the_terminal(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    assert main(["show", files[0]]) == 0
    parts = capsys.readouterr().out.split("\n\n")
    tables = [part for part in parts if part.startswith("layer")]
    assert len(tables) == 2
    assert max(len(line) for line in tables[0].splitlines()) <= 50


def test_diff(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *files]) == 0
    text = capsys.readouterr().out
    assert "mean_norm: the same at all 3 layers" in text
    assert "+0.05" in text


def test_diff_as_json(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *files, "--json", "--metric", "anisotropy"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document["changes"]) == ["anisotropy"]
    assert document["changes"]["anisotropy"][1]["change"] == pytest.approx(0.05)


def test_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    jsonschema.Draft202012Validator.check_schema(json.loads(capsys.readouterr().out))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["show", "gone.json"],
            "gone.json: cannot be read: No such file or directory; name a file",
        ),
        (["show"], "arguments are required: FILE.json; see 'isotest show --help'"),
        (["shw"], "invalid choice: 'shw'"),
        ([], "arguments are required: COMMAND; see 'isotest --help'"),
        (["selftest", "gone.toml"], "gone.toml: cannot be read"),
        (["schema", "--nonsense"], "unrecognized arguments: --nonsense"),
    ],
)
def test_a_fault_is_one_line_on_stderr(
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        code: object = main(arguments)
    except SystemExit as error:
        code = error.code
    captured = capsys.readouterr()
    assert code == 2
    assert captured.out == ""
    assert captured.err.startswith("isotest: ")
    assert captured.err.count("\n") == 1
    assert words in captured.err


def test_an_unknown_metric_is_named(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in (["show", files[0]], ["diff", *files]):
        assert main([*arguments, "--metric", "anisotropi"]) == 2
        assert "did you mean 'anisotropy'?" in capsys.readouterr().err


def test_an_edited_file_is_refused(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edited = tmp_path / "edited.json"
    edited.write_text((tmp_path / "before.json").read_text().replace("0.2", "0.1", 1))
    assert main(["show", str(edited)]) == 2
    assert "edited.json" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["show", "diff", "schema", "--help"])
def test_never_imports_torch(files: tuple[str, str], command: str) -> None:
    arguments = {"show": files[:1], "diff": files}.get(command, ())
    code = (
        "import sys, contextlib, io; from isotest.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        f"    main({[command, *arguments]!r})\n"
        "heavy = ('torch', 'transformers', 'timm', 'datasets', 'torchvision')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n", done.stderr


def test_a_reader_that_stops_reading_is_no_fault(files: tuple[str, str]) -> None:
    command = f"{sys.executable} -m isotest.cli schema | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_ascii_terminal_gets_no_traceback(files: tuple[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "isotest.cli", "show", files[0]],
        capture_output=True,
        env={"PYTHONIOENCODING": "ascii", "PATH": ""},
        check=False,
    )
    assert done.returncode == 0
    assert b"0.2000 ? 0.0065" in done.stdout
