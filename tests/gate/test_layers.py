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
        ("13", ()),
    ],
)
def test_selectors(selector: str, layers: tuple[str, ...]) -> None:
    assert select_layers(VIT, selector) == layers


def test_what_a_model_lacks_selects_nothing() -> None:
    assert select_layers(["0", "1"], "final") == ()
    assert select_layers(["0", "final"], "last") == ()
    assert select_layers([], "any") == ()


@pytest.mark.parametrize("text", ["", "all", "-1", "3-", "3–7", "1,2", "3 - 7", "٣"])
def test_a_selector_that_means_nothing_is_an_error_that_says_what_does(text: str) -> None:
    with pytest.raises(IsotestError, match="expected 'any', 'last', 'final'"):
        select_layers(VIT, text)


def test_a_range_the_wrong_way_round_is_an_error_with_the_right_one() -> None:
    with pytest.raises(IsotestError, match="write '3-7'"):
        select_layers(VIT, "7-3")


def test_descriptions_join_runs() -> None:
    assert describe_layers(VIT) == "0-12, final"
    assert describe_layers(["2"]) == "2"
    assert describe_layers([]) == ""
