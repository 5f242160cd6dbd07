"""The drift figures: what a row holds, from reports and from profiles, and how it is printed."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from isotest.cli import main
from isotest.estimate import Estimate
from isotest.gate.checks import DriftCorrelationCheck
from isotest.gate.verdict import Outcome
from isotest.profile_json import write_profile
from isotest.report.drift import drift_record
from isotest.report.entry import EntrySummary
from isotest.report.figure import figure_document, read_rows
from isotest.report.figure_table import figure_lines
from isotest.report.files import write_json
from tests.gate.profiles import BLOCKS, judge, profile

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from isotest.profile import Profile

LAYERS = 12
GENERATOR = np.random.default_rng(3)


def walk(scale: float = 1.0) -> NDArray[np.float64]:
    """A curve of ``LAYERS`` layers that rises, by blocks: shape (layers, blocks)."""
    curve = np.cumsum(GENERATOR.uniform(-0.3, 1.0, LAYERS))
    return scale * (curve[:, None] + GENERATOR.normal(0, 0.3, (LAYERS, BLOCKS)))


ANISOTROPY, DRIFT = 0.05 * walk(), 10 + walk(2.0)
CURVES = {
    "anisotropy": [*ANISOTROPY],
    "drift_norm": [*DRIFT],
    "mean_norm": [float(norm) for norm in np.linspace(10, 30, LAYERS)],
    "drift_share": [float(share) for share in np.linspace(0.1, 0.8, LAYERS)],
}


def named(made: Profile, model: str, modality: str = "vision", suite: str = "a") -> Profile:
    return replace(made, model=model, modality=modality, suite=suite)


EXPLAINED = profile(CURVES)
# With equal norms the two curves are one by construction.
UNIDENTIFIABLE = profile({**CURVES, "mean_norm": [10.0] * LAYERS})
REPORT = '{"format": "isotest-results", "format_version": 1, "entries": [%s]}'
INCOMPLETE = profile({"anisotropy": [*ANISOTROPY]})


@pytest.mark.parametrize("statistic", ["spearman", "pearson"])
def test_a_record_holds_what_scipy_and_a_naive_jackknife_give(statistic: str) -> None:
    def correlation(kept: list[int]) -> Any:
        test: Any = stats.spearmanr if statistic == "spearman" else stats.pearsonr
        return test(ANISOTROPY[:, kept].mean(axis=1), DRIFT[:, kept].mean(axis=1))

    record = drift_record(EXPLAINED).of(statistic)  # type: ignore[arg-type]
    whole = correlation([*range(BLOCKS)])
    assert record.coefficient == pytest.approx(whole.statistic, rel=1e-12)
    assert record.p == pytest.approx(whole.pvalue, rel=1e-9)
    without = [
        correlation([b for b in range(BLOCKS) if b != left]).statistic for left in range(BLOCKS)
    ]
    se = np.sqrt((BLOCKS - 1) * np.var(without))
    half = stats.t.ppf(0.975, BLOCKS - 1) * se
    low, high = max(-1, whole.statistic - half), min(1, whole.statistic + half)
    assert record.interval == pytest.approx((low, high), rel=1e-9)


def test_few_layers_have_the_exact_p_value_beside_scipys() -> None:
    """Four layers in one order: Student's t says 0, two of 4! orders say 0.083."""
    rising = [1.0, 2.0, 3.0, 4.0]
    four = profile({"anisotropy": [0.1, 0.2, 0.3, 0.4], "drift_norm": rising, "mean_norm": rising})
    record = drift_record(four).spearman
    assert record.p == 0
    assert record.p_exact == pytest.approx(2 / 24)
    assert record.finding == "not identifiable"
    assert "4 layers" in record.reason


def test_what_drift_explains_is_told_of_the_layer_of_the_highest_anisotropy() -> None:
    curves = {
        "anisotropy": [0.2, 0.9, 0.1],
        "drift_share": [0.5, 0.7, 0.99],
        "centered_anisotropy": [0.0, 0.3, 0.1],
    }
    highest = drift_record(profile(curves)).highest
    assert highest is not None
    assert (highest.layer, highest.anisotropy, highest.drift_share) == ("1", 0.9, 0.7)
    assert highest.centered_anisotropy == 0.3


def test_a_profile_of_before_centring_has_no_number_for_it() -> None:
    highest = drift_record(profile({"anisotropy": [0.2, 0.9, 0.1]})).highest
    assert highest is not None
    assert highest.centered_anisotropy is None


def test_encoder_and_decoder_are_one_curve_as_in_the_paper() -> None:
    names = [f"{part}.{layer}" for part in ("encoder", "decoder") for layer in range(LAYERS // 2)]
    joined = drift_record(profile(CURVES, names=names))
    assert joined.spearman == drift_record(EXPLAINED).spearman
    assert joined.layers == LAYERS


def test_the_examples_are_what_they_are_called() -> None:
    assert drift_record(EXPLAINED).spearman.finding == "explained"
    assert drift_record(UNIDENTIFIABLE).spearman.finding == "not identifiable"


@pytest.mark.parametrize("made", [EXPLAINED, UNIDENTIFIABLE])
@pytest.mark.parametrize("statistic", ["spearman", "pearson"])
def test_the_verdict_is_the_checks(made: Profile, statistic: Any) -> None:
    record = drift_record(made).of(statistic)
    assert record.finding != "undefined"
    check = DriftCorrelationCheck(statistic=statistic, expect=record.finding)
    assert judge(made, None, check, "drift_correlation").outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("curves", "words"),
    [
        ({"anisotropy": [0.1, 0.2, 0.3]}, "drift_norm was not measured at layer 0"),
        (
            {**CURVES, "drift_norm": [Estimate(None, undefined="no direction")] * LAYERS},
            "drift_norm is undefined at layer 0: no direction",
        ),
    ],
)
def test_a_profile_without_the_curves_says_so(curves: Any, words: str) -> None:
    record = drift_record(profile(curves))
    for each in (record.spearman, record.pearson):
        assert (each.finding, each.coefficient, each.p, each.interval) == (
            "undefined",
            None,
            None,
            None,
        )
        assert words in each.reason


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A report of three measured entries without any drift check, and one that was skipped."""
    entries = [
        EntrySummary("suites/z.toml", "vit", named(EXPLAINED, "vit")),
        EntrySummary("suites/a.toml", "gpt", named(UNIDENTIFIABLE, "gpt", "text")),
        EntrySummary("suites/a.toml", "bert", named(INCOMPLETE, "bert", "text")),
        EntrySummary("suites/a.toml", "gone", skipped="weights; download"),
    ]
    path = tmp_path / "report.json"
    write_json(entries, [], path)
    return path


@pytest.fixture
def baselines(tmp_path: Path) -> Path:
    folder = tmp_path / "baselines"
    for made in (named(EXPLAINED, "vit"), named(UNIDENTIFIABLE, "gpt", "text", "b/c")):
        path = folder / made.suite / f"{made.model}.json"
        path.parent.mkdir(parents=True)
        write_profile(made, path)
    return folder


def test_every_measured_entry_of_a_report_is_a_row(report: Path) -> None:
    found = read_rows(report)
    assert [(row.modality, row.model, row.suite) for row in found.rows] == [
        ("text", "bert", "suites/a.toml"),
        ("text", "gpt", "suites/a.toml"),
        ("vision", "vit", "suites/z.toml"),
    ]
    # What went through JSON is what was computed, to the last digit.
    assert [row.drift for row in found.rows] == [
        drift_record(made) for made in (INCOMPLETE, UNIDENTIFIABLE, EXPLAINED)
    ]
    assert found.unmeasured == ("suites/a.toml::gone",)


def test_baselines_give_the_same_rows_as_a_report(report: Path, baselines: Path) -> None:
    of_report = {row.model: row.drift for row in read_rows(report).rows}
    of_baselines = {row.model: row.drift for row in read_rows(baselines).rows}
    assert of_baselines == {model: of_report[model] for model in ("vit", "gpt")}
    (single,) = read_rows(baselines / "a" / "vit.json").rows
    assert single.drift == of_baselines["vit"]


def row_of(text: str, model: str) -> list[str]:
    """The cells of a model in the first table."""
    (line, *_) = [line for line in text.splitlines() if line.startswith(f"  {model} ")]
    return line.split()


def test_show_figure_5_and_11(
    report: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    record = drift_record(EXPLAINED)
    for figure, each in (("5", record.spearman), ("11", record.pearson)):
        assert main(["show", "--figure", figure, str(report)]) == 0
        text = capsys.readouterr().out
        assert each.p is not None
        assert row_of(text, "vit")[1:3] == [f"{each.p:.2g}", f"{each.coefficient:.2f}"]
        assert f"  {each.finding}  " in text
        assert row_of(text, "bert")[1:5] == ["-", "-", "-", "undefined"]
        assert "not measured: suites/a.toml::gone" in text
        assert "bert: undefined: drift_norm was not measured at layer 0" in text
        assert "gpt: not identifiable: the norms vary by only 0.0%" in " ".join(text.split())
        assert max(map(len, text.splitlines())) <= 80


def test_a_wide_terminal_has_one_table(report: Path) -> None:
    found = read_rows(report)
    narrow, wide = figure_lines(found, 5, width=80), figure_lines(found, 5, width=200)
    assert sum(line.startswith("model") for line in narrow) > 1
    assert sum(line.startswith("model") for line in wide) == 1


def test_models_of_one_name_are_told_apart_by_their_suite(tmp_path: Path) -> None:
    for suite in ("a", "b"):
        (tmp_path / suite).mkdir()
        write_profile(named(EXPLAINED, "vit", suite=suite), tmp_path / suite / "vit.json")
    text = "\n".join(figure_lines(read_rows(tmp_path), 5, width=100))
    assert "  a::vit " in text
    assert "  b::vit " in text


def test_as_json(report: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--figure", "11", "--json", str(report)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads(json.dumps(figure_document(read_rows(report), 11)))
    assert (document["figure"], document["statistic"], document["alpha"]) == (11, "pearson", 0.05)
    vit = document["rows"][2]
    assert vit["spearman"]["coefficient"] == drift_record(EXPLAINED).spearman.coefficient
    assert vit["highest"]["drift_share"] == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("gone.json", None, "gone.json: cannot be read: No such file or directory"),
        ("empty.json", "", "expected JSON that isotest wrote"),
        ("other.json", '{"results": []}', "expected JSON that isotest wrote"),
        ("list.json", "[1, 2]", "expected JSON that isotest wrote"),
        ("alien.json", '{"format": "junit"}', "not a report that this isotest can read: at format"),
        (
            "future.json",
            '{"format": "isotest-results", "format_version": 2, "entries": []}',
            "at format_version",
        ),
        (
            "old.json",
            REPORT % '{"suite": "a", "model": "b", "profile": {"modality": "vision"}}',
            "at entries.0.profile.drift: Field required",
        ),
        (
            "nothing.json",
            REPORT % '{"suite": "a", "model": "b", "profile": null}',
            "nothing was measured in this run; not measured: a::b",
        ),
        (
            "damaged.json",
            '{"format": "isotest-profile", "format_version": 2}',
            "damaged.json: at ",
        ),
    ],
)
def test_what_is_no_report_is_one_line(
    name: str,
    content: str | None,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    assert main(["show", "--figure", "5", str(tmp_path / name)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert words in captured.err
    assert "name a report of 'pytest --isotest --isotest-json FILE.json'" in captured.err


def test_values_that_nobody_can_have_measured_are_refused(report: Path, tmp_path: Path) -> None:
    document = json.loads(report.read_text())
    document["entries"][0]["profile"]["drift"]["spearman"]["p"] = 7
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(document))
    assert main(["show", "--figure", "5", str(forged)]) == 2


def test_a_folder_without_profiles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--figure", "5", str(tmp_path)]) == 2
    assert f"{tmp_path}: expected profiles (*.json)" in capsys.readouterr().err


def test_a_damaged_baseline_is_named_and_not_left_out(
    baselines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (baselines / "a" / "vit.json").write_text("{}")
    assert main(["show", "--figure", "5", str(baselines)]) == 2
    assert "vit.json: expected a JSON object" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--json"], "--json goes with --figure"),
        (["--figure", "5", "--metric", "anisotropy"], "--metric does not go with --figure"),
    ],
)
def test_options_that_do_not_go_together(
    options: list[str], words: str, baselines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(baselines / "a" / "vit.json"), *options]) == 2
    assert words in capsys.readouterr().err


def test_the_table_needs_no_torch_and_no_unicode(baselines: Path) -> None:
    code = (
        "import sys; from isotest.cli import main\n"
        f"main(['show', '--figure', '5', {str(baselines)!r}])\n"
        "print([name for name in ('torch', 'transformers', 'datasets') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        env={"PYTHONIOENCODING": "ascii", "PATH": ""},
    )
    assert done.stdout.endswith(b"[]\n")
    assert b"?" not in done.stdout.replace(b"drift? ", b"")
