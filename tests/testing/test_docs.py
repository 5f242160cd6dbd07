"""The page about blocks says what the properties say of themselves."""

from __future__ import annotations

from pathlib import Path

from isotest.testing.properties import PROPERTIES

PAGE = Path(__file__).parents[2] / "docs" / "blocks.md"


def test_every_property_stands_in_the_table() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    expected = [
        f"| `{each.name}` | {each.statement} | {each.conditions} | {each.source} |"
        for each in PROPERTIES
    ]
    first = rows.index(expected[0])
    assert rows[first : first + len(expected)] == expected
