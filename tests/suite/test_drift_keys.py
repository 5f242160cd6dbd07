"""What belongs to the drift experiment in a suite: read as written, or named with its line."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

import jsonschema
import pytest

from isotest.errors import SuiteError
from isotest.suite import load_suite, suite_schema
from tests.suite.cases import VALID as VISION
from tests.suite.cases import write

if TYPE_CHECKING:
    from pathlib import Path

VALID = """\
modality = "embeddings"

[data]
source = "embeddings:normal?std=0.02&vocabulary=30522&length=512"
samples = 16

[drift]
norms = [0, 8, 16.5]
replicates = 4

[measure]
metrics = "all"

[[models]]
name = "bert"
source = "init:bert"
block = "encoder.layer.0"
width = 768

[checks.score_offset]
max = 1.0
"""

# What stands in VALID, what a mistake makes of it, and the line and words that must answer.
MISTAKES = {
    "no drift table": ("norms = [0, 8, 16.5]\n", "", 7, "'drift.norms' is missing: the lengths N"),
    "no table at all": (
        "[drift]\nnorms = [0, 8, 16.5]\nreplicates = 4\n",
        "",
        14,
        r"model 'bert': 'block' belongs to the drift experiment .* has no table \[drift\]",
    ),
    "no norms": ("[0, 8, 16.5]", "[]", 8, "'drift.norms' is empty"),
    "descending norms": ("[0, 8, 16.5]", "[0, 16.5, 8]", 8, "8 comes after 16.5"),
    "a norm twice": ("[0, 8, 16.5]", "[0, 8, 8]", 8, "8 comes after 8"),
    "a negative norm": ("[0, 8, 16.5]", "[-1, 8]", 8, "greater than or equal to 0"),
    "an infinite norm": ("[0, 8, 16.5]", "[0, inf]", 8, "expected a finite number"),
    "a text for norms": ("[0, 8, 16.5]", '"0-8"', 8, "expected an array"),
    "one replicate": ("replicates = 4", "replicates = 1", 9, "greater than or equal to 2"),
    "too many replicates": ("replicates = 4", "replicates = 65", 9, "less than or equal to 64"),
    "unknown key": ("replicates", "replicate", 9, r"'replicate' in \[drift\].*'replicates'"),
    "samples": (
        "embeddings:normal?std=0.02&vocabulary=30522&length=512",
        "sample:photographs",
        4,
        'has no samples, but sample: does; write source = "embeddings:normal',
    ),
    "another distribution": ("embeddings:normal", "embeddings:uniform", 4, "expected 'normal'"),
    "unknown option": ("length=512", "lenght=512", 4, "'lenght'; did you mean 'length'"),
    "a bias of its own": ("length=512", "length=512&bias=3", 4, "'bias' has no place"),
    "no deviation": ("std=0.02", "std=0", 4, "expected std to be a number above 0, found 0"),
    "a negative bias": ("length=512", "length=512&bias=-1", 4, "expected bias to be a number of"),
    "a text for std": ("std=0.02", "std=x", 4, "expected std to be a number, found 'x'"),
    "one row": ("vocabulary=30522", "vocabulary=1", 4, "expected vocabulary to be a whole number"),
    "half a token": ("length=512", "length=1.5", 4, "expected length to be a number, found '1.5'"),
    "all samples": ("samples = 16", 'samples = "all"', 5, "say how many sequences"),
    "no number of samples": ("samples = 16\n", "", 4, "say how many sequences"),
    "layers": ("width = 768", 'layers = ["x"]', 18, "'layers' has no place .* with 'block'"),
    "preprocess": ("width = 768", "preprocess = { size = 3 }", 18, "'preprocess' has no place"),
    "tokenizer": ('metrics = "all"', 'tokenizer = "bytes"', 12, "'tokenizer' has no place"),
    "length": ('metrics = "all"', "length = 4", 12, r"'length' .* stands in \[data\] source"),
    "an entry's packing": (
        "width = 768",
        'measure.packing = "windows"',
        18,
        "model 'bert': 'packing' has no place",
    ),
    "no width": ("width = 768", "width = 0", 18, "greater than or equal to 1"),
    "no path": ('"encoder.layer.0"', '""', 17, "block"),
}


def refused(folder: Path, text: str) -> str:
    path = write(folder, text)
    with pytest.raises(SuiteError) as caught:
        load_suite(path)
    return str(caught.value).replace(f"{path}", "FILE")


def test_a_suite_is_read_as_written(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, VALID))
    assert suite.drift is not None
    assert suite.drift.norms == (0.0, 8.0, 16.5)
    assert suite.drift.replicates == 4
    assert (suite.models[0].block, suite.models[0].width) == ("encoder.layer.0", 768)
    jsonschema.validate(tomllib.loads(VALID), suite_schema())


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, mistake: str) -> None:
    before, after, line, words = MISTAKES[mistake]
    assert VALID.count(before) == 1
    found = refused(tmp_path, VALID.replace(before, after))
    assert re.search(rf"^FILE:{line}: .*{words}", found, re.MULTILINE), found


@pytest.mark.parametrize(
    ("before", "after", "line", "words"),
    [
        ("[[models]]", "[drift]\nnorms = [0]\n[[models]]", 7, r"\[drift\] is the experiment of"),
        ("sample:photographs", "embeddings:normal", 4, "is the data of modality 'embeddings'"),
        ('name = "vit"', 'name = "vit"\nblock = "x"', 9, "'block' is for suites of modality 'emb"),
        ('name = "vit"', 'name = "vit"\nwidth = 3', 9, "'width' is for suites of modality 'embe"),
        ("checks.anisotropy", "checks.score_sign", 11, "'score_sign' is measured by the drift exp"),
        (
            "[checks.anisotropy]\nmax = 0.95",
            '[checks.own]\nmetric = "score_sign"\nmax = 1',
            12,
            "'score_sign' is measured by the drift",
        ),
        (
            "[[models]]",
            '[measure]\nmetrics = ["massive", "score_offset"]\n[[models]]',
            8,
            "'score_offset' is measured by the drift experiment alone",
        ),
        (
            'name = "vit"',
            'name = "vit"\nchecks = { query_expectation_gap = { max = 1 } }',
            9,
            "model 'vit': 'query_expectation_gap' is measured by the drift",
        ),
    ],
)
def test_elsewhere_its_keys_and_metrics_are_refused(
    tmp_path: Path, before: str, after: str, line: int, words: str
) -> None:
    found = refused(tmp_path, VISION.replace(before, after))
    assert re.search(rf"^FILE:{line}: .*{words}", found, re.MULTILINE), found
