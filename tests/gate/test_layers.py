"""Which layers a selector means."""

from __future__ import annotations

import pytest

from isotest.errors import IsotestError
from isotest.gate.layers import describe_layers, select_layers

VIT = [*map(str, range(13)), "final"]


@pytest.mark.parametrize(
    ("selector", "layers"),
    [
        ("any", tuple(VIT)),
        ("last", ("12",)),
        ("final", ("final",)),
        ("0", ("0",)),
        ("3", ("3",)),
        ("3-5", ("3", "4", "5")),
        ("11-12", ("11", "12")),
        ("12-14", ()),
        ("last,final", ("12", "final")),
        ("final, 0, 2-3", ("0", "2", "3", "final")),
        ("0-1,1-2", ("0", "1", "2")),
        # Half of what is asked for would go unjudged.
        ("0,13", ()),
        ("13", ()),
    ],
)
def test_selectors(selector: str, layers: tuple[str, ...]) -> None:
    assert select_layers(VIT, selector) == layers


T5 = [f"{part}.{name}" for part in ("encoder", "decoder") for name in (*range(4), "final")]
CANINE = ["characters.0", "characters.1", "molecules.0", "molecules.1", "molecules.2"]


@pytest.mark.parametrize(
    ("names", "selector", "layers"),
    [
        (T5, "any", tuple(T5)),
        (T5, "decoder.any", tuple(T5[5:])),
        (T5, "last", ("encoder.3", "decoder.3")),
        (T5, "final", ("encoder.final", "decoder.final")),
        (T5, "encoder.final", ("encoder.final",)),
        (T5, "2-3", ("encoder.2", "encoder.3", "decoder.2", "decoder.3")),
        (T5, "decoder.0", ("decoder.0",)),
        (T5, "middle.0", ()),
        (CANINE, "1", ("characters.1", "molecules.1")),
        (CANINE, "molecules.2", ("molecules.2",)),
        # One of its parts has no layer 2: half of what is asked for would go unjudged.
        (CANINE, "2", ()),
        (CANINE, "final", ()),
        (VIT, "encoder.0", ()),
    ],
)
def test_selectors_of_models_with_several_parts(
    names: list[str], selector: str, layers: tuple[str, ...]
) -> None:
    assert select_layers(names, selector) == layers


def test_what_a_model_lacks_selects_nothing() -> None:
    assert select_layers(["0", "1"], "final") == ()
    assert select_layers(["0", "final"], "last") == ()
    assert select_layers([], "any") == ()


@pytest.mark.parametrize(
    "text", ["", "all", "-1", "3-", "3–7", "1,", "3 - 7", "٣", ".3", "a.", "a.b.3"]
)
def test_a_selector_that_means_nothing_is_an_error_that_says_what_does(text: str) -> None:
    with pytest.raises(IsotestError, match="expected 'any', 'last', 'final'"):
        select_layers(VIT, text)


def test_a_range_the_wrong_way_round_is_an_error_with_the_right_one() -> None:
    with pytest.raises(IsotestError, match="write '3-7'"):
        select_layers(VIT, "7-3")


def test_descriptions_join_runs() -> None:
    assert describe_layers(VIT) == "0-12, final"
    assert describe_layers(["2"]) == "2"
    assert describe_layers(T5) == "encoder.0-3, encoder.final, decoder.0-3, decoder.final"
    assert describe_layers([]) == ""
