"""A profile as text: nobody takes what few samples do for anisotropy."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from isotest.profile import BlockProperty, SequenceBound
from isotest.report.show import metrics_of, show_lines
from tests.report.examples import estimate, profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.profile import Profile

CURVE = [0.4, 0.5, 0.6]


def with_metric(
    name: str,
    isotropic: Sequence[float | None] = (None,) * 3,
    basis: Sequence[str | None] = (None,) * 3,
    onto: Profile | None = None,
) -> Profile:
    """A profile of three layers with one more metric."""
    base = onto or profile(CURVE)
    layers = tuple(
        replace(
            layer,
            estimates={
                **layer.estimates,
                name: replace(estimate(0.5), isotropic=value, basis=text),
            },
        )
        for layer, value, text in zip(base.layers, isotropic, basis, strict=True)
    )
    return replace(base, layers=layers)


def shown(found: Profile, width: int = 200) -> list[str]:
    return show_lines(found, metrics_of(found), width=width)


def table(lines: Sequence[str]) -> list[str]:
    start = next(i for i, line in enumerate(lines) if line.startswith("layer"))
    return list(lines[start:])


def test_without_anything_to_compare_with_nothing_is_added() -> None:
    lines = shown(profile(CURVE))
    assert not any("isotropic" in line or ": from " in line for line in lines)
    assert table(lines)[1].startswith("0 ")


def test_where_layers_stand_and_what_a_block_was_tried_for() -> None:
    base = profile(CURVE)
    places = (0.0, 16.0, None)
    layers = tuple(
        replace(layer, at=place) for layer, place in zip(base.layers, places, strict=True)
    )
    tried = (
        BlockProperty("causal", "not applicable", "the block is not causal"),
        BlockProperty("shape", "violated", "(2, 3, 4) became (2, 3, 5)"),
    )
    lines = shown(replace(base, layers=layers, properties=tried))
    title, first, second, final, *_ = table(lines)
    assert title.split()[:3] == ["layer", "N", "width"]
    assert (first.split()[1], second.split()[1]) == ("0", "16")
    assert final.split()[:2] == ["final", "16"]  # its width: it stands nowhere
    assert lines[-4:] == [
        "",
        "properties of the block:",
        "causal: not applicable: the block is not causal",
        "shape: violated: (2, 3, 4) became (2, 3, 5)",
    ]


def test_what_became_of_the_bound_of_each_sequence() -> None:
    bounds = (
        SequenceBound("vacuous", "c·‖res(X)‖² = 2.5", 4, 16),
        SequenceBound("holds", "far below", 4, 16),
        SequenceBound("holds", "below", 4, 16),
    )
    assert shown(replace(profile(CURVE), bounds=bounds))[-4:] == [
        "",
        "bound of rank collapse:",
        "vacuous: 1 of 3 sequences, the first: c·‖res(X)‖² = 2.5",
        "holds: 2 of 3 sequences, the first: far below",
    ]


def test_what_all_layers_share_stands_below_the_title() -> None:
    title, below, first, *_ = table(shown(with_metric("isoscore", [0.65] * 3)))
    assert title.split() == ["layer", "width", "representations", "anisotropy", "isoscore"]
    assert below.split() == ["isotropic", "0.65"]
    assert below.endswith("isotropic 0.65")
    assert first.split()[0] == "0"


def test_what_layers_differ_in_stands_in_each_row() -> None:
    lines = shown(with_metric("isoscore", [0.65, 0.49, 0.49]))
    title, below, *rows = table(lines)
    assert title.split()[-1] == "isoscore"
    assert below.split() == ["isotropic"]
    assert [row.split()[-1] for row in rows[:3]] == ["0.65", "0.49", "0.49"]
    assert [row.split()[-4:-1] for row in rows[:3]] == [["0.5000", "±", "0.0065"]] * 3
    assert len(below) == len(rows[0])
    assert any("N(0, I)" in line for line in lines)


def test_an_undefined_value_is_compared_with_nothing() -> None:
    found = with_metric("isoscore", [None, 0.49, 0.65])
    _, _, first, second, *_ = table(shown(found))
    assert first.split()[-1] == "0.0065"
    assert second.split()[-1] == "0.49"
    # What is there at one layer only is still the same at all layers that have it.
    assert "isotropic 0.49" in table(shown(with_metric("isoscore", [None, 0.49, None])))[1]


def test_what_the_eye_cannot_tell_apart_is_the_same() -> None:
    """What isotropic data give is itself simulated at times; four digits are what is shown."""
    assert table(shown(with_metric("isoscore", [0.650001, 0.650002, 0.65])))[1].endswith("c 0.65")


def test_values_and_what_they_are_compared_with_stay_together() -> None:
    found = profile(CURVE)
    for number in range(6):
        found = with_metric(f"metric_{number}", [0.65, 0.49, 0.49], onto=found)
    lines = shown(found, width=100)
    assert max(map(len, table(lines))) <= 100
    titles = [line for line in lines if line.startswith("layer")]
    assert len(titles) > 1
    for title, below in pairwise(lines):
        if title.startswith("layer"):
            assert below.split() == ["isotropic"] * title.count("metric_")


def test_a_table_in_which_nothing_is_compared_has_no_line_for_it() -> None:
    found = with_metric("isoscore", [0.65] * 3)
    titles = table(shown(found, width=50))
    assert [line for line in titles if line.startswith("layer")] == [titles[0], titles[5]]
    assert titles[1].startswith("0 ")  # anisotropy stands alone in the first table
    assert titles[6].split() == ["isotropic", "0.65"]


def undefined(found: Profile, metric: str, layers: Sequence[int]) -> Profile:
    return replace(
        found,
        layers=tuple(
            replace(layer, estimates={**layer.estimates, metric: estimate(None)})
            if number in layers
            else layer
            for number, layer in enumerate(found.layers)
        ),
    )


def test_what_is_undefined_everywhere_has_a_reason_and_no_column() -> None:
    found = profile(CURVE, norms=[1.0, 2.0, 3.0])
    for name in ("one", "other"):
        found = undefined(with_metric(name, onto=found), name, range(3))
    lines = shown(undefined(found, "anisotropy", [0, 1]))
    assert table(lines)[0].split()[3:] == ["anisotropy", "mean_norm"]
    assert lines[-2:] == [
        "anisotropy is undefined at layer 0-1: no direction",
        "one, other are undefined at every layer: no direction",
    ]


def test_nothing_but_what_is_undefined() -> None:
    found = undefined(profile(CURVE), "anisotropy", range(3))
    assert shown(found)[-2:] == ["", "anisotropy is undefined at every layer: no direction"]


def test_metrics_of_one_basis_are_named_together() -> None:
    basis = ["1104 of 8832 representations"] * 3
    found = with_metric("isoscore", basis=basis, onto=with_metric("twonn", basis=basis))
    lines = shown(found)
    assert "twonn, isoscore: from 1104 of 8832 representations" in lines


def test_a_basis_that_differs_names_its_layers() -> None:
    found = with_metric("twonn", basis=["all 80 representations"] * 2 + ["64 of 80"])
    assert (
        "twonn: at layer 0-1 from all 80 representations, at layer final from 64 of 80"
    ) in shown(found)
