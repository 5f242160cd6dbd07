"""A suite file in, a validated suite or a list of its faults, each with its line, out."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from isotest.errors import SuiteError
from isotest.gate.checks import (
    BlockPropertiesCheck,
    DriftCorrelationCheck,
    FixedPointCheck,
    MetricCheck,
    Regression,
)
from isotest.suite import load_suite
from tests.suite.cases import MISTAKES, VALID, write

if TYPE_CHECKING:
    from pathlib import Path


def fault(folder: Path, text: str | bytes) -> str:
    """The message of a faulty suite, with the file's own path cut off."""
    path = write(folder, text)
    with pytest.raises(SuiteError) as caught:
        load_suite(path)
    return str(caught.value).replace(f"{path}", "FILE")


def test_a_full_suite_is_read_as_written(tmp_path: Path) -> None:
    suite = load_suite(
        write(
            tmp_path,
            """\
            title = "figure 3b"
            modality = "vision"
            [data]
            source = "folder:data/val?pattern=*.png"
            samples = 64
            seed = 7
            [measure]
            special_tokens = "include"
            batch_size = 4
            [[models]]
            name = "ViT-B/16 with a slash is refused, this is not"
            """.replace("/", "-").replace("folder:data-val", "folder:data/val")
            + """
            source = "init:vit"
            config = { num_hidden_layers = 3, nested = { a = [1, 2] } }
            layers = { 0 = "embeddings", 1 = "encoder.layer.0" }
            preprocess = { mean = [0.5, 0.5, 0.5], size = [32, 32] }
            [models.measure]
            dtype = "bfloat16"
            [models.checks.anisotropy]
            max = 0.5
            [models.checks.mean_norm]
            min = 1
            [[models]]
            name = "other"
            source = "python:mypkg.models:build"
            optional = true
            layers = ["stem", "body.0"]
            [checks.anisotropy]
            max = 0.95
            baseline = { margin = 0.02, margin_relative = 0.1, worse = "both" }
            [checks.drift_correlation]
            baseline = "same-verdict"
            [checks.deep]
            metric = "anisotropy"
            layers = "3-7"
            max = 1
            """,
            "suites/vision/x y.z.toml",
        ),
        root=tmp_path,
    )
    assert suite.title == "figure 3b"
    assert suite.id == "suites/vision/x y.z"
    assert suite.path == tmp_path / "suites/vision/x y.z.toml"
    assert (suite.data.samples, suite.data.seed) == (64, 7)
    assert list(suite.checks) == ["anisotropy", "drift_correlation", "deep"]
    assert isinstance(suite.checks["drift_correlation"], DriftCorrelationCheck)
    assert suite.checks["deep"] == MetricCheck(metric="anisotropy", layers="3-7", max=1)

    vit, other = suite.models
    assert vit.config == {"num_hidden_layers": 3, "nested": {"a": [1, 2]}}
    assert vit.layers == {"0": "embeddings", "1": "encoder.layer.0"}
    assert vit.preprocess == {"mean": [0.5, 0.5, 0.5], "size": [32, 32]}
    assert other.layers == ("stem", "body.0")
    assert other.optional
    assert not vit.optional

    # The entry's own anisotropy replaces the suite's whole: no margin is left over.
    assert suite.checks_of(vit)["anisotropy"] == MetricCheck(max=0.5)
    assert list(suite.checks_of(vit)) == ["anisotropy", "drift_correlation", "deep", "mean_norm"]
    assert suite.checks_of(other) == suite.checks
    measure = suite.measure_of(vit)
    assert (measure.dtype, measure.special_tokens, measure.batch_size) == ("bfloat16", "include", 4)
    assert suite.measure_of(other) == suite.measure


def test_checks_of_blocks_are_read_as_written(tmp_path: Path) -> None:
    text = """
        [checks.gap]
        metric = "anisotropy"
        minus = "input"
        baseline = { margin = 0.02 }
        [checks.fixed_point]
        max = 30
        [checks.block_properties]
        causal = true
        holds = ["causal", "shape"]
        """
    checks = load_suite(write(tmp_path, VALID + text)).checks
    assert checks["gap"] == MetricCheck(
        metric="anisotropy", minus="input", baseline=Regression(margin=0.02)
    )
    assert checks["fixed_point"] == FixedPointCheck(of="output", minus="input", max=30.0)
    assert checks["block_properties"] == BlockPropertiesCheck(
        causal=True, holds=("causal", "shape")
    )


def test_defaults(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, VALID.replace("samples = 16\n", "")))
    assert suite.data.samples == "all"
    assert suite.data.seed == 0
    assert suite.id == "a"
    assert suite.measure.representation is None
    assert suite.measure.special_tokens == "exclude"
    assert suite.measure.dtype == "float32"
    assert suite.models[0].preprocess is None


def test_a_suite_cannot_be_changed_after_loading(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, VALID))
    with pytest.raises(ValueError, match="frozen"):
        suite.models[0].name = "x"  # type: ignore[misc]


@pytest.mark.parametrize(("old", "new", "line", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, words: str
) -> None:
    assert VALID.count(old) >= 1
    message = fault(tmp_path, VALID.replace(old, new, 1))
    assert any(re.match(f"FILE:{line}: .*{words}", each) for each in message.splitlines()), message


def test_all_faults_of_a_file_are_said_at_once_in_its_order(tmp_path: Path) -> None:
    text = VALID.replace("samples", "sample").replace("init:", "int:").replace("0.95", "nan")
    lines = [each.split(":")[1] for each in fault(tmp_path, text).splitlines()]
    assert lines == ["5", "9", "12"]


def test_a_fault_behind_multi_line_arrays_and_comments_has_its_line(tmp_path: Path) -> None:
    layers = '[[models]]\nname = "b"\nsource = "init:vit"\nlayers = [\n  "a", # a\n\n  "b",\n]\n'
    text = f"{VALID}{layers}optional = 1\n"
    assert fault(tmp_path, text) == "FILE:21: model 'b': optional = 1: expected true or false"


SECOND = '\n[[models]]\nname = "{}"\nsource = "init:vit"\n'


def test_two_models_of_one_name(tmp_path: Path) -> None:
    assert (
        fault(tmp_path, VALID + SECOND.format("vit"))
        == "FILE:15: model 'vit': two models are named 'vit'"
    )


@pytest.mark.parametrize(
    ("first", "second"), [("vit", "ViT"), ("é", "e\u0301"), ("straße", "STRASSE")]
)
def test_names_that_would_share_a_file(tmp_path: Path, first: str, second: str) -> None:
    message = fault(tmp_path, VALID.replace('"vit"', f'"{first}"') + SECOND.format(second))
    assert message.startswith("FILE:15: ")
    assert "rename one" in message


@pytest.mark.parametrize(
    "name",
    [
        "",
        " a",
        "a ",
        "a::b",
        "a:b",
        "a[1]",
        "a]",
        "a/b",
        "a\\\\b",
        "a=b",
        "..",
        "-x",
        "a\\tb",
        "x" * 101,
    ],
)
def test_names_that_node_ids_files_or_options_would_cut(tmp_path: Path, name: str) -> None:
    assert "name" in fault(tmp_path, VALID.replace('"vit"', f'"{name}"'))


@pytest.mark.parametrize("name", ["vit-base@16", "ViT B (p. 16, 80 %)", "変換器", "_x", "a.b", "é"])
def test_names_that_are_fine(tmp_path: Path, name: str) -> None:
    suite = load_suite(write(tmp_path, VALID.replace('"vit"', f'"{name}"')))
    assert suite.models[0].name == name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'a = "\xff"', r"FILE:1: no valid UTF-8: byte 0xff in column 6"),
        (b'modality = "vision"\nx = "\xe9"', r"FILE:2: no valid UTF-8: byte 0xe9 in column 6"),
        ("modality = \n", r"FILE:1: no valid TOML: Invalid value \(column 12\)"),
        ('a = 1\nb = """x', r"FILE:2: no valid TOML: "),
        (VALID + "\n[data]\n", r"FILE:14: no valid TOML: Cannot declare \('data',\) twice"),
        ("a = " + "[" * 100_000, r"FILE: no valid TOML: nested too deeply"),
        ("", "FILE: no isotest suite: expected 'modality'.*found no keys"),
        ("[project]\nname = 'x'", "FILE: no isotest suite: .*found 'project'"),
        ('modality = "vision"', "FILE: 'data' is missing: what is fed"),
    ],
)
def test_a_file_that_is_no_suite(tmp_path: Path, text: str | bytes, words: str) -> None:
    assert re.match(words, fault(tmp_path, text))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match=r"gone.toml: cannot be read: No such file"):
        load_suite(tmp_path / "gone.toml")
    with pytest.raises(SuiteError, match="cannot be read: Is a directory"):
        load_suite(tmp_path)


def test_a_suite_outside_of_its_root_has_no_id(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="lies outside of"):
        load_suite(write(tmp_path, VALID), root=tmp_path / "below")


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    assert load_suite(write(tmp_path, b"\xef\xbb\xbf" + VALID.encode())).modality == "vision"


def test_windows_line_ends(tmp_path: Path) -> None:
    text = VALID.replace("0.95", "nan").replace("\n", "\r\n")
    assert fault(tmp_path, text).startswith("FILE:12: ")


def test_loading_never_imports_torch(tmp_path: Path) -> None:
    path = write(tmp_path, VALID)
    heavy = ("torch", "transformers", "timm", "datasets", "scipy", "numpy", "tree_sitter")
    code = (
        "import sys; from pathlib import Path; from isotest.suite import load_suite;"
        f"load_suite(Path({str(path)!r})); print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_an_entry_without_a_baseline_keeps_the_limits_alone(tmp_path: Path) -> None:
    suite = load_suite(
        write(
            tmp_path,
            """
            modality = "vision"
            data.source = "sample:photographs"
            checks.anisotropy = { max = 0.9, baseline = { margin = 0.1 } }
            checks.rank_residual = { baseline = { margin = 0.1 } }
            checks.drift_correlation = { baseline = "same-verdict" }
            [[models]]
            name = "gated"
            source = "init:vit"
            [[models]]
            name = "limited"
            source = "init:vit"
            baseline = false
            """,
        )
    )
    gated, limited = suite.models
    assert list(suite.checks_of(gated)) == ["anisotropy", "rank_residual", "drift_correlation"]
    (check,) = suite.checks_of(limited).values()
    assert check == MetricCheck(max=0.9)


def test_an_entry_must_be_left_with_a_check(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        modality = "vision"
        data.source = "sample:photographs"
        checks.rank_residual = { baseline = { margin = 0.1 } }
        [[models]]
        name = "nothing"
        source = "init:vit"
        baseline = false
        """,
    )
    with pytest.raises(SuiteError, match="8: model 'nothing': 'baseline = false' leaves no check"):
        load_suite(path)
