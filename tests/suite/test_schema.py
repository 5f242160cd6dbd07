"""The schema that editors use agrees with the loader."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from isotest.statistics.registry import METRICS
from isotest.suite import load_suite, suite_schema
from tests.suite.cases import MISTAKES, VALID, write

# Faults that only a look at two places, or into a string, can find.
BEYOND_THE_SCHEMA = {"layers", "source scheme", "data scheme", "min above max"} | {
    "config of a hub model",
    "reach above max",
    "trend of one layer",
    "minus the same part",
    "minus no part",
    "a share of a difference",
    "a fixed point of one curve",
    "a fixed point of no part",
    "a fixed point nowhere",
    "date in a config",
    "NaN limit",
    "infinite limit",
    "NaN margin",
    "fraction for a count",  # JSON has one kind of number: 16.0 is an integer
}


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = suite_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_accepts_valid_suites(validator: Any) -> None:
    validator.validate(tomllib.loads(VALID))
    checks = "".join(f"[checks.{name}]\nmin = -1\nbaseline = {{}}\n" for name in METRICS)
    extra = "[checks.own]\nmetric = 'massive'\nmax = 3\n"
    extra += "[checks.drift_correlation]\nexpect = 'explained'\n"
    text = VALID.replace("[checks.anisotropy]\nmax = 0.95\n", checks + extra)
    text = text.replace('name = "vit"', 'name = "vit"\nlayers = ["a"]\npreprocess.size = 3')
    validator.validate(tomllib.loads(text))


def test_every_committed_suite_is_valid(validator: Any) -> None:
    root = Path(__file__).parents[2]
    for path in sorted((root / "suites").rglob("*.toml")):
        validator.validate(tomllib.loads(path.read_text()))
        load_suite(path, root=root)


@pytest.mark.parametrize("mistake", sorted(MISTAKES.keys() - BEYOND_THE_SCHEMA))
def test_refuses_what_the_loader_refuses(validator: Any, mistake: str) -> None:
    old, new, _, _ = MISTAKES[mistake]
    assert not validator.is_valid(tomllib.loads(VALID.replace(old, new, 1)))


@pytest.mark.parametrize("mistake", sorted(BEYOND_THE_SCHEMA))
def test_accepts_what_only_the_loader_can_tell(validator: Any, mistake: str) -> None:
    old, new, _, _ = MISTAKES[mistake]
    assert validator.is_valid(tomllib.loads(VALID.replace(old, new, 1)))


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("[checks.own]\nmax = 1", False),
        ("[checks.own]\nmetric = 'masive'\nmax = 1", False),
        ("[checks.own]\nmetric = 'massive'\nmax = 1", True),
        ("[checks.massive]\nmetric = 'massive'\nmax = 1", True),
        ("[checks.massive]\nmetric = 'mean_norm'\nmax = 1", False),
        ("[checks.'a/b']\nmetric = 'massive'\nmax = 1", False),
        ("[checks.drift_correlation]\nbaseline = 'same-verdict'", True),
        ("[checks.drift_correlation]\nbaseline = {}", False),
        ("[checks.fixed_point]", True),
        ("[checks.fixed_point]\nmetric = 'mean_norm'\nmin = 20\nmax = 30", True),
        ("[checks.fixed_point]\ntrend = { direction = 'falls' }", False),
        ("[checks.block_properties]", True),
        ("[checks.block_properties]\nholds = ['causal']\ncausal = true\nheads = 12", True),
        ("[checks.block_properties]\nmax = 1", False),
        ("[checks.collapse_bound]\nexpect = 'violated'", False),
        ("[checks.collapse_bound]\nmax = 1", False),
        ("[checks.massive]\nminus = 'input'\nmax = 1", True),
    ],
)
def test_names_of_checks_decide_their_form(
    validator: Any, tmp_path: Path, text: str, valid: bool
) -> None:
    suite = f"{VALID}\n{text}\n"
    assert validator.is_valid(tomllib.loads(suite)) is valid
    if valid:
        load_suite(write(tmp_path, suite))
    else:
        with pytest.raises(Exception, match=r"a\.toml:1"):
            load_suite(write(tmp_path, suite))


def test_no_null_and_a_description_everywhere(validator: Any) -> None:
    def walk(node: Any) -> None:
        if isinstance(node, list):
            for each in node:
                walk(each)
        elif isinstance(node, dict):
            assert node.get("type") != "null"
            for name, field in node.get("properties", {}).items():
                if name != "metric" and isinstance(field, dict):
                    assert field.get("description"), name
            for each in node.values():
                walk(each)

    walk(validator.schema)
