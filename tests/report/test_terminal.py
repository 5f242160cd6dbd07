"""One head a suite, one line a model, whatever the terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isotest.report.entry import EntrySummary
from isotest.report.sparkline import BLOCKS, DIGITS, sparkline
from isotest.report.terminal import cells, summary_lines
from tests.report.examples import SUITE, entry

GONE = "weights of hub:{} are not in the cache; give --isotest-download"


def line_of(model: str, lines: list[str]) -> str:
    (line,) = [line for line in lines if line.startswith(f"  {model} ")]
    return line


def test_a_curve_stands_beside_its_baseline_on_one_scale() -> None:
    entries = [entry("vit", [0, 0.5, 0.99], "passed", "failed", baseline=[0, 0.25, 0.99])]
    line = line_of("vit", summary_lines(entries, width=100))
    # Eight levels on 0…1: 0 is the first, 0.25 the third, 0.5 the fifth, 0.99 the last.
    assert line.split() == [
        "vit",
        "▁▅█",
        "▁▃█",
        "0.00",
        "to",
        "0.99",
        "1",
        "failed,",
        "1",
        "passed",
    ]


def test_the_head_says_what_was_measured_on_what() -> None:
    entries = [
        entry("a", [0.1, 0.2], "passed", seconds=1.25),
        entry("b", [0.1, 0.2], "passed", seconds=2.5),
        entry("c", [0.1, 0.2], "passed", cached=True),
    ]
    head = " ".join(line.strip() for line in summary_lines(entries, width=70)[:5])
    for words in (
        f"{SUITE}: 3 models on sample:photographs, 8 samples in 4 groups",
        "representations: positions, float32 on cpu",
        "2 measured in 3.8 s, 1 from the cache",
    ):
        assert words in head


def test_every_suite_has_a_head_of_its_own() -> None:
    other = EntrySummary("suites/vision/b.toml", "vit", skipped="x; y")
    lines = summary_lines([entry("a", [0.1, 0.2], "passed"), other], width=120)
    heads = [line for line in lines if line.startswith("suites/")]
    assert len(heads) == 2
    assert heads[1] == "suites/vision/b.toml: 1 model, nothing measured"


def test_without_a_baseline_the_line_says_so() -> None:
    line = line_of("vit", summary_lines([entry("vit", [0.1, 0.2], "failed")], width=100))
    assert " none " in line


def test_a_recorded_entry_says_so() -> None:
    entries = [entry("vit", [0.1, 0.2], "passed", recorded=True)]
    assert line_of("vit", summary_lines(entries, width=100)).endswith("1 passed, recorded")


def test_skipped_entries_with_one_remedy_share_a_line() -> None:
    entries = [
        entry(name, None, "skipped", skipped=GONE.format(source))
        for name, source in (("vit", "google/vit"), ("beit", "microsoft/beit"))
    ]
    lines = summary_lines(entries, width=200)
    assert lines[1:] == [
        (
            "  skipped: vit (weights of hub:google/vit are not in the cache); "
            "beit (weights of hub:microsoft/beit are not in the cache): give --isotest-download"
        )
    ]


def test_windows_are_counted_as_sequences() -> None:
    windows = entry("bert", [0.1, 0.2], "passed")
    assert windows.profile is not None
    protocol = {**windows.profile.provenance.protocol, "data.samples": 3}
    provenance = replace(windows.profile.provenance, protocol=protocol)
    windows = replace(windows, profile=replace(windows.profile, provenance=provenance))
    assert "3 samples as 8 sequences in 4 groups" in summary_lines([windows], width=200)[0]


def test_many_skipped_entries_are_named_and_the_first_ones_lack_is_told() -> None:
    names = ("vit", "beit", "deit")
    entries = [entry(name, None, "skipped", skipped=GONE.format(f"hub/{name}")) for name in names]
    (line,) = summary_lines(entries, width=200)[1:]
    assert line == (
        "  skipped: vit, beit, deit (weights of hub:hub/vit are not in the cache; likewise the "
        "others): give --isotest-download"
    )


def test_entries_that_lack_the_same_thing_say_it_once_with_a_remedy_that_has_semicolons() -> None:
    reason = "the data are not here; python -c 'import datasets; datasets.load_dataset(…)'"
    entries = [entry(name, None, "skipped", skipped=reason) for name in ("vit", "beit")]
    (line,) = summary_lines(entries, width=200)[1:]
    assert line == (
        "  skipped: vit, beit (the data are not here): "
        "python -c 'import datasets; datasets.load_dataset(…)'"
    )


def test_an_entry_that_could_not_be_measured_is_not_lost() -> None:
    lines = summary_lines([entry("vit", None, "failed")], width=100)
    assert "  not measured: vit: check-0 failed" in lines


def test_inconclusive_checks_are_listed() -> None:
    lines = summary_lines([entry("vit", [0.1, 0.2], "passed", "inconclusive")], width=100)
    assert "  inconclusive: check-1 inconclusive" in lines


def test_undefined_curves_and_values() -> None:
    entries = [entry("a", [0.1, None, 0.9], "passed"), entry("b", [None, None], "failed")]
    lines = summary_lines(entries, width=100)
    assert "▁·█" in line_of("a", lines)
    assert "undefined" in line_of("b", lines)


@pytest.mark.parametrize("width", [80, 100, 240])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252", "no such codec"])
def test_no_line_is_wider_than_the_terminal(width: int, encoding: str) -> None:
    deep = [layer / 57 for layer in range(58)]
    entries = [
        entry("a-very-long-name-of-a-model-that-goes-on-and-on-224", deep, "passed", baseline=deep),
        entry("変換器", deep, "failed", cached=True),
        entry("gone", None, "skipped", skipped=GONE.format("google/vit-base-patch16-224")),
        entry("x", [0.1, 0.5], "inconclusive", "failed"),
    ]
    lines = summary_lines(entries, width=width, encoding=encoding)
    assert max(map(cells, lines)) <= width
    if encoding != "utf-8":
        assert all(line.isascii() for line in lines)
    # The two ends of a long name stay, as they tell names apart.
    assert any(line.startswith("  a-ver") and "24 " in line for line in lines)


def test_a_terminal_without_block_characters_gets_digits() -> None:
    entries = [entry("vit", [0, 0.5, 1.0], "passed", baseline=[0, 0.5, 0.99])]
    lines = summary_lines(entries, width=100, encoding="ascii")
    assert line_of("vit", lines).split()[1:3] == ["059", "059"]
    assert "tenths" in "".join(lines)


def test_colours_follow_the_result() -> None:
    seen = []

    def markup(text: str, result: str) -> str:
        seen.append((text, result))
        return f"<{text}>"

    entries = [entry("a", [0.1, 0.2], "passed"), entry("b", [0.1, 0.2], "passed", "failed")]
    lines = summary_lines(entries, width=100, markup=markup)
    assert seen == [("1 passed", "passed"), ("1 failed, 1 passed", "failed")]
    assert lines[-1].endswith("<1 failed, 1 passed>")


def test_nothing_run_gives_nothing() -> None:
    assert summary_lines([], width=80) == []


def test_a_peak_survives_a_narrow_terminal() -> None:
    curve = [0.0] * 56
    curve[31] = 1.0
    assert "█" in sparkline(curve, width=8)
    assert sparkline(curve, width=8, marks=DIGITS).count("0") == 7
    assert len(sparkline(curve, width=100)) == 56


def test_values_beyond_the_scale_are_drawn_at_its_ends() -> None:
    assert sparkline([-0.5, 1.5, float("nan")], width=3) == f"{BLOCKS[0]}{BLOCKS[-1]}·"


def test_an_entry_without_checks_is_not_green() -> None:
    assert not EntrySummary(SUITE, "vit").green
