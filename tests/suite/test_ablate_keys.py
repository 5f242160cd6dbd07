"""The key ``ablate``: read as written, or named with its line."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

import jsonschema
import pytest

from isotest.errors import SuiteError
from isotest.models.ablations import NAMED, Ablation
from isotest.suite import load_suite, suite_schema
from tests.suite.cases import write

if TYPE_CHECKING:
    from pathlib import Path

VALID = """\
modality = "text"

[data]
source = "sample:passages"

[[models]]
name = "bert"
source = "init:bert"
ablate = "san"

[checks.rank_residual]
max = 1.0
"""

# What stands in VALID, what a mistake makes of it, the line and words that must answer, and whether
# an editor that knows the schema sees it, too.
MISTAKES = {
    "no such variant": ('"san"', '"sam"', 9, "expected one of full, san, san\\+mlp", True),
    "no such switch": ('"san"', "{ skip = false }", 9, "or a table of attention_skip", True),
    "no switch": ('"san"', "{ mlp = 0 }", 9, "each true or false", True),
    "a list": ('"san"', '["san"]', 9, "expected one of full", True),
    "an empty table": ('"san"', "{}", 9, "expected one of full", False),
    "a model of timm": ("init:bert", "timm:vit_tiny_patch16_224", 9, "timm: brings others", False),
    "a block": ("init:bert", "block:bert", 9, "has these switches in its 'config'", False),
}


def ablation(path: Path) -> Ablation | None:
    (model,) = load_suite(path, root=path.parent).models
    return None if model.ablate is None else Ablation.of(model.ablate)


def test_names_tables_and_nothing(tmp_path: Path) -> None:
    for name, expected in NAMED.items():
        assert ablation(write(tmp_path, VALID.replace('"san"', f'"{name}"'))) == expected
    table = VALID.replace('"san"', "{ mlp = false, layer_norm = false }")
    assert ablation(write(tmp_path, table)) == Ablation(mlp=False, layer_norm=False)
    assert ablation(write(tmp_path, VALID.replace('ablate = "san"\n', ""))) is None


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_its_line(mistake: str, tmp_path: Path) -> None:
    right, wrong, line, words, in_schema = MISTAKES[mistake]
    text = VALID.replace(right, wrong)
    path = write(tmp_path, text)
    with pytest.raises(SuiteError, match=words) as caught:
        load_suite(path, root=tmp_path)
    assert re.match(rf"{re.escape(str(path))}:{line}: ", str(caught.value))
    valid = jsonschema.Draft202012Validator(suite_schema()).is_valid(tomllib.loads(text))
    assert valid is not in_schema
