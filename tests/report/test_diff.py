"""Two profiles compared by hand."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from isotest.gate.diagnosis import diagnose, diagnosis_document, diagnosis_lines
from isotest.gate.diagnosis.movement import paired
from isotest.report.diff import changes_of, diff_document, diff_lines
from tests.report.examples import BLOCKS, profile

if TYPE_CHECKING:
    from isotest.profile import Profile


def test_on_the_same_samples_error_bars_come_from_the_differences_of_blocks() -> None:
    before = profile([0.10, 0.20, 0.30], spread=0.1)
    after = profile([0.10, 0.25, 0.31], spread=0.1)
    changes = changes_of(before, after, "anisotropy")
    assert [change.layer for change in changes] == ["0", "1", "final"]
    assert [change.change for change in changes] == pytest.approx([0.0, 0.05, 0.01])
    # Every block moved by the same amount, so the change is known exactly although each side's
    # own error bar is 0.1·√(5/12).
    assert [change.se for change in changes] == pytest.approx([0, 0, 0], abs=1e-15)


def test_a_layer_is_shown_where_it_stands() -> None:
    def placed(curve: list[float]) -> Profile:
        made = profile(curve)
        return replace(made, layers=tuple(replace(layer, at=16.0) for layer in made.layers))

    lines = diff_lines(placed([0.1, 0.2]), placed([0.1, 0.3]), ["anisotropy"])
    assert any(line.startswith("  final (N = 16)") for line in lines)
    document = diff_document(placed([0.1, 0.2]), placed([0.1, 0.3]), ["anisotropy"])
    assert [change["at"] for change in document["changes"]["anisotropy"]] == [16.0, 16.0]


def test_paired_error_bar_by_hand() -> None:
    # Pseudo-values 0.2 ± (0.15, 0.05) and 0.3 ± (0.03, 0.01): differences 0.1 + 0.08·(−1.5 … 1.5),
    # whose variance over 4 blocks is 0.08²·5/3, so the standard error is 0.08·√(5/12).
    before, after = profile([0.2], spread=0.10), profile([0.3], spread=0.02)
    (change,) = changes_of(before, after, "anisotropy")
    assert change.se == pytest.approx(0.08 * math.sqrt(5 / 12))
    assert change.error_bars == pytest.approx(0.1 / (0.08 * math.sqrt(5 / 12)))


def test_on_other_samples_both_errors_count_in_full() -> None:
    before, after = profile([0.2], spread=0.10), profile([0.3], spread=0.10)
    after = replace(after, provenance=replace(after.provenance, data="sha256:" + "e" * 64))
    assert not paired(before, after)
    (change,) = changes_of(before, after, "anisotropy")
    assert change.se == pytest.approx(math.sqrt(2) * 0.10 * math.sqrt(5 / 12))
    lines = diff_lines(before, after, ["anisotropy"])
    assert any(line.startswith("not comparable") for line in lines)
    assert any("data: the first saw 8 samples" in line for line in lines)
    assert any("unpaired" in line for line in lines)


def test_layers_and_metrics_of_one_side_only_are_shown_not_dropped() -> None:
    before, after = profile([0.1, 0.2, 0.3]), profile([0.1, 0.3], norms=[1.0, 2.0])
    changes = changes_of(before, after, "anisotropy")
    assert [(c.layer, c.before, c.after) for c in changes] == [
        ("0", 0.1, 0.1),
        ("1", 0.2, None),
        ("final", 0.3, 0.3),
    ]
    (layer, *_) = changes_of(before, after, "mean_norm")
    assert (layer.before, layer.after, layer.change) == (None, 1.0, None)
    lines = diff_lines(before, after, ["anisotropy", "mean_norm"])
    assert any("layers: the second lacks 1" in line for line in lines)
    assert not any("the same at all" in line for line in lines)


def test_unchanged_profiles_say_so_in_a_line_a_metric() -> None:
    same = profile([0.1, 0.2])
    assert diff_lines(same, same, ["anisotropy"]) == [
        "measured under the same conditions, on the same weights",
        "",
        "anisotropy: the same at all 2 layers",
    ]


def test_undefined_on_both_sides_is_not_called_the_same() -> None:
    same = profile([0.1, None])
    assert "the same at all" not in "\n".join(diff_lines(same, same, ["anisotropy"]))


def test_other_weights_are_named() -> None:
    lines = diff_lines(profile([0.1, 0.2]), profile([0.1, 0.4], seed=1), ["anisotropy"])
    text = "\n".join(lines)
    assert "source: the first has 'init:vit?seed=0', the second 'init:vit?seed=1'" in text
    assert "+0.2" in text


def test_a_change_beyond_error_bar_and_floor_is_diagnosed_as_in_a_gate() -> None:
    before = profile([0.10, 0.20, 0.20], spread=0.01)
    after = profile([0.10, 0.45, 0.50], spread=0.0101, seed=1)
    text = diff_lines(before, after, ["anisotropy"])
    start = text.index("  why     at layer 1")
    found = diagnose("anisotropy", after, before, "1")
    assert found is not None
    said = [line for _, line in diagnosis_lines(found)]
    assert said[0] == "drift 100%"
    assert [line[10:] for line in text[start + 1 :]] == said
    assert said[-1] == "anisotropy at layer 1; no layer before 1 moved"
    document = diff_document(before, after, ["anisotropy"])
    assert document["format_version"] == 2
    assert document["diagnoses"] == {"anisotropy": diagnosis_document(found)}
    json.dumps(document, allow_nan=False)


def test_what_is_within_error_bar_or_floor_is_not_diagnosed() -> None:
    before = profile([0.10, 0.20])
    for after in (profile([0.10, 0.2 + 5e-5], seed=1), profile([0.10, 0.21], spread=0.2, seed=1)):
        assert not any("why" in line for line in diff_lines(before, after, ["anisotropy"]))
        assert diff_document(before, after, ["anisotropy"])["diagnoses"] == {}


def test_lengths_change_without_a_cause() -> None:
    before, after = profile([0.1], norms=[1.0]), profile([0.1], norms=[9.0], seed=1)
    lines = diff_lines(before, after, ["mean_norm"])
    assert any("+8" in line for line in lines)
    assert not any("why" in line for line in lines)


def test_document_is_plain() -> None:
    document = diff_document(profile([0.1, None]), profile([0.2, 0.3], seed=1), ["anisotropy"])
    first, second = document["changes"]["anisotropy"]
    assert first["change"] == pytest.approx(0.1)
    assert (second["before"], second["change"]) == (None, None)
    assert document["paired"] is True
    assert document["not_comparable"] == []
    assert BLOCKS == 4
