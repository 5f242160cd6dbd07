"""Suites of modality ``tasks``: read as written, or each fault named with its line."""

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
from tests.suite.test_drift_keys import VALID as DRIFT

if TYPE_CHECKING:
    from pathlib import Path

PATHS = """\
modality = "tasks"

[data]
source = "task:sorting"
samples = 200

[paths]
counts = [5, 20]
repeats = 4

[measure]
metrics = "all"

[[models]]
name = "bert"
source = "task:sorting"

[[models]]
name = "modern"
source = "task:sorting?design=modern&weights=mine.safetensors"

[checks.accurate]
metric = "path_accuracy"
layers = "full"
min = 0.9

[checks.path_share]
layers = "paths_20.any"
minus = "paths_5"
min = 0
inconclusive = "pass"
"""

CIRCLE = """\
modality = "tasks"

[data]
source = "task:circle"
samples = 16

[recurrence]
steps = [0, 1, 300]

[[models]]
name = "attention"
source = "task:circle?variant=attention"

[checks.pair_distance_share]
layers = "step.300"
max = 0.1
"""

# What stands in PATHS, what a mistake makes of it, and the line and words that must answer.
MISTAKES = {
    "no table": ("[paths]\ncounts = [5, 20]\nrepeats = 4\n", "", 4, r"needs a table \[paths\]"),
    "the other table": (
        "[paths]\ncounts = [5, 20]\nrepeats = 4\n",
        "[recurrence]\nsteps = [0, 1]\n",
        7,
        r"\[recurrence\] has no place in a suite about sorting, whose table is \[paths\]",
    ),
    "both tables": (
        "[measure]",
        "[recurrence]\nsteps=[0,1]\n[measure]",
        11,
        "has no place in a su",
    ),
    "a drift table": (
        "[measure]",
        "[drift]\nnorms = [0]\n[measure]",
        11,
        r"\[drift\] is the experi",
    ),
    "no counts": ("counts = [5, 20]\n", "", 7, "'paths.counts' is missing: how many paths"),
    "empty counts": ("[5, 20]", "[]", 8, "'paths.counts' is empty"),
    "descending counts": ("[5, 20]", "[20, 5]", 8, "counts: 5 comes after 20: expected an ascend"),
    "a count twice": ("[5, 20]", "[5, 5]", 8, "counts: 5 comes after 5"),
    "no path": ("[5, 20]", "[0, 5]", 8, "greater than or equal to 1"),
    "too many paths": ("[5, 20]", "[5, 1001]", 8, "less than or equal to 1000"),
    "half a path": ("[5, 20]", "[5.0]", 8, "expected a whole number"),
    "a true count": ("[5, 20]", "[true]", 8, "expected a whole number"),
    "one repeat": ("repeats = 4", "repeats = 1", 9, "greater than or equal to 2"),
    "too many repeats": ("repeats = 4", "repeats = 65", 9, "less than or equal to 64"),
    "unknown key": ("repeats", "repeat", 9, r"'repeat' in \[paths\]; did you mean 'repeats'"),
    "an unknown task": ("task:sorting", "task:sortin", 4, "'sortin'; did you mean 'sorting'"),
    "an option of the data": (
        'source = "task:sorting"\nsamples',
        'source = "task:sorting?design=bert"\nsamples',
        4,
        "unknown option 'design'; task: takes none",
    ),
    "other data": (
        'source = "task:sorting"\nsamples',
        'source = "sample:photographs"\nsamples',
        4,
        'feeds networks examples of their task, which sample: has not; write source = "task:sort',
    ),
    "all of what is drawn": ("samples = 200", 'samples = "all"', 5, "say how many there are of ea"),
    "no number of samples": ("samples = 200\n", "", 4, "the examples of sorting are drawn"),
    "another task's network": (
        'name = "bert"\nsource = "task:sorting"',
        'name = "bert"\nsource = "task:convex-hull"',
        16,
        "model 'bert': a network of convex-hull cannot be fed the data of this suite, task:sorting",
    ),
    "no network of a task": (
        'name = "bert"\nsource = "task:sorting"',
        'name = "bert"\nsource = "init:vit"',
        16,
        "model 'bert': modality 'tasks' measures the networks of tasks, which init: does not",
    ),
    "an unknown network": (
        'name = "bert"\nsource = "task:sorting"',
        'name = "bert"\nsource = "task:hull"',
        16,
        "model 'bert': .*unknown task 'hull'",
    ),
    "an unknown design": ("design=modern", "design=modem", 20, "'modem'; did you mean 'modern'"),
    "an unknown option": ("design=modern", "desing=modern", 20, "'desing'; did you mean 'design'"),
    "a variant of sorting": ("design=modern", "variant=both", 20, "unknown option 'variant'"),
    "an option twice": (
        "design=modern",
        "design=modern&design=bert",
        20,
        "'design' is given twice",
    ),
    "pickled weights": ("mine.safetensors", "mine.pt", 20, "a .safetensors file.*found 'mine.pt'"),
    "config": (
        'name = "bert"',
        'name = "bert"\nconfig = { depth = 2 }',
        14,
        "'config' only applies where a model is built",
    ),
    "preprocess": (
        'name = "bert"',
        'name = "bert"\npreprocess = {}',
        16,
        "'preprocess' has no plac",
    ),
    "layers": ('name = "bert"', 'name = "bert"\nlayers = ["x"]', 16, "'layers' has no place"),
    "block": (
        'name = "bert"',
        'name = "bert"\nblock = "x"',
        16,
        "'block' is for suites of modality",
    ),
    "width": (
        'name = "bert"',
        'name = "bert"\nwidth = 48',
        16,
        "'width' is for suites of modality",
    ),
    "ablate": (
        'name = "bert"',
        'name = "bert"\nablate = "san"',
        16,
        "'ablate' has no place.*design=",
    ),
    "ablate nothing": ('name = "bert"', 'name = "bert"\nablate = {}', 16, "'ablate' has no place"),
    "representation": (
        'metrics = "all"',
        'representation = "positions"',
        12,
        "'representation' has no place",
    ),
    "special tokens": (
        'metrics = "all"',
        'special_tokens = "include"',
        12,
        "'special_tokens' has no",
    ),
    "tokenizer": ('metrics = "all"', 'tokenizer = "bytes"', 12, "'tokenizer' has no place"),
    "packing": ('metrics = "all"', 'packing = "windows"', 12, "'packing' has no place"),
    "length": ('metrics = "all"', "length = 4", 12, "'length' has no place"),
    "decoder": ('metrics = "all"', 'decoder = "input"', 12, "'decoder' has no place"),
    "dtype": ('metrics = "all"', 'dtype = "bfloat16"', 12, "'dtype' has no place.*float32"),
    "batch_size": ('metrics = "all"', "batch_size = 4", 12, "'batch_size' has no place"),
    "an entry's packing": (
        'name = "bert"',
        'name = "bert"\nmeasure.packing = "windows"',
        16,
        "model 'bert': 'packing' has no place",
    ),
    "a metric of layers": (
        'metrics = "all"',
        'metrics = ["path_share", "anisotropy"]',
        12,
        r"'anisotropy' is not measured .* \[paths\], .*; it measures path_accuracy, path_share",
    ),
    "a check of layers": (
        'metric = "path_accuracy"',
        'metric = "rank_residual"',
        23,
        "not measured in",
    ),
    "a metric of the recurrence": (
        'metric = "path_accuracy"',
        'metric = "pair_distance"',
        23,
        r"measured by the recurrence experiment alone.*this suite has no table \[recurrence\]",
    ),
    "a metric of drift": (
        'metric = "path_accuracy"',
        'metric = "score_sign"',
        23,
        "measured by the drift experiment alone.*this suite is of modality 'tasks'",
    ),
    "an entry's check of layers": (
        'name = "bert"',
        'name = "bert"\nchecks = { massive = { max = 1 } }',
        16,
        "model 'bert': 'massive' is not measured",
    ),
}

KINDS = {
    "fixed_point": 'metric = "path_accuracy"\nmin = 1',
    "drift_correlation": 'expect = "explained"',
    "block_properties": "heads = 2",
    "collapse_exponent": "",
}


def refused(folder: Path, text: str) -> str:
    path = write(folder, text)
    with pytest.raises(SuiteError) as caught:
        load_suite(path)
    return str(caught.value).replace(f"{path}", "FILE")


def changed(text: str, before: str, after: str) -> str:
    assert text.count(before) >= 1, before
    return text.replace(before, after, 1)


@pytest.mark.parametrize("text", [PATHS, CIRCLE])
def test_a_suite_is_read_as_written(tmp_path: Path, text: str) -> None:
    suite = load_suite(write(tmp_path, text))
    if suite.paths is not None:
        assert (suite.paths.counts, suite.paths.repeats) == ((5, 20), 4)
    else:
        assert suite.recurrence is not None
        assert suite.recurrence.steps == (0, 1, 300)
    jsonschema.validate(tomllib.loads(text), suite_schema())


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, mistake: str) -> None:
    before, after, line, words = MISTAKES[mistake]
    found = refused(tmp_path, changed(PATHS, before, after))
    assert re.search(rf"^FILE:{line}: .*{words}", found, re.MULTILINE), found
    if mistake != "the other table":  # all metrics are wrong with it, too
        assert "\n" not in found, "one mistake, one message"


@pytest.mark.parametrize("kind", KINDS)
def test_checks_of_layers_are_refused(tmp_path: Path, kind: str) -> None:
    """Their metrics may be refused, too; the check itself always is, and names what to use."""
    text = PATHS + f"[checks.{kind}]\n{KINDS[kind]}\n"
    found = refused(tmp_path, text)
    words = (
        f"check '{kind}' is about the layers of a model or block, and a suite of modality 'tasks'"
    )
    assert f"FILE:32: {words} observes none" in found, found


@pytest.mark.parametrize(
    ("before", "after", "line", "words"),
    [
        ("[0, 1, 300]", "[1, 3]", 8, r"expected 0, where the trajectories start, .*\[1, 3\]"),
        ("[0, 1, 300]", "[0]", 8, "at least one step behind it"),
        ("[0, 1, 300]", "[]", 8, "'recurrence.steps' is empty"),
        ("[0, 1, 300]", "[0, 3, 1]", 8, "steps: 1 comes after 3: expected an ascending list"),
        ("[0, 1, 300]", "[0, 1, 1]", 8, "steps: 1 comes after 1"),
        ("[0, 1, 300]", "[-1, 0]", 8, "greater than or equal to 0"),
        ("[0, 1, 300]", "[0, 100001]", 8, "less than or equal to 100000"),
        ("steps = [0, 1, 300]", "", 7, "'recurrence.steps' is missing"),
        ("[recurrence]\nsteps = [0, 1, 300]", "", 4, r"needs a table \[recurrence\]"),
        ("steps =", "repeats = 5\nsteps =", 8, r"unknown key 'repeats' in \[recurrence\]"),
        (
            "[recurrence]\nsteps = [0, 1, 300]",
            "[paths]\ncounts = [5]",
            7,
            r"\[paths\] has no place in a suite about circle, whose table is \[recurrence\]",
        ),
        ("samples = 16", "samples = 500", 5, "the circle has 499 pairs"),
        (
            "samples = 16",
            "samples = 16\nseed = 1",
            6,
            "'seed' has no place in a suite about circle",
        ),
        ("variant=attention", "variant=atention", 12, "'atention'; did you mean 'attention'"),
        (
            "pair_distance_share]",
            "path_accuracy]",
            14,
            r"measured by the paths experiment alone, .* this suite has no table \[paths\]",
        ),
        (
            "pair_distance_share]",
            "rank_residual]",
            14,
            "not measured .* it measures pair_distance, pair_distance_share",
        ),
    ],
)
def test_a_mistake_about_the_circle_is_named_with_its_line(
    tmp_path: Path, before: str, after: str, line: int, words: str
) -> None:
    found = refused(tmp_path, changed(CIRCLE, before, after))
    assert re.search(rf"^FILE:{line}: .*{words}", found, re.MULTILINE), found


def test_every_pair_of_the_circle_can_be_a_start(tmp_path: Path) -> None:
    text = changed(CIRCLE, "samples = 16\n", "")
    assert load_suite(write(tmp_path, text)).data.samples == "all"


def test_memorization_is_judged_by_what_was_learnt(tmp_path: Path) -> None:
    text = PATHS.replace("sorting", "memorization")
    found = refused(tmp_path, text.replace("samples = 200", "samples = 501"))
    assert "FILE:5: samples = 501: a network of memorization has learnt 500 sentences" in found
    assert load_suite(write(tmp_path, text)).data.samples == 200
    assert load_suite(write(tmp_path, text.replace("samples = 200\n", ""))).data.samples == "all"


@pytest.mark.parametrize(
    ("suite", "before", "after", "line", "words"),
    [
        (VISION, "[[models]]", "[paths]\ncounts = [5]\n[[models]]", 7, r"\[paths\] is the experim"),
        (
            VISION,
            "[[models]]",
            "[recurrence]\nsteps = [0, 1]\n[[models]]",
            7,
            r"\[recurrence\] is the experiment of modality 'tasks'; this suite's is 'vision'",
        ),
        (VISION, "sample:photographs", "task:sorting", 4, "task: is the data of modality 'tasks'"),
        (
            VISION,
            "init:vit?seed=0",
            "task:sorting",
            9,
            "model 'vit': task: brings the network of a",
        ),
        (VISION, "checks.anisotropy", "checks.path_share", 11, "measured by the paths experiment"),
        (DRIFT, "score_offset", "path_accuracy", 20, "measured by the paths experiment alone"),
        (
            DRIFT,
            "init:bert",
            "task:sorting",
            16,
            "model 'bert': task: brings the network of a task",
        ),
        (DRIFT, "embeddings:normal", "task:normal", 4, "no samples, but task: does"),
    ],
)
def test_elsewhere_tasks_are_refused(
    tmp_path: Path, suite: str, before: str, after: str, line: int, words: str
) -> None:
    found = refused(tmp_path, changed(suite, before, after))
    assert re.search(rf"^FILE:{line}: .*{words}", found, re.MULTILINE), found


def test_reading_such_a_suite_loads_no_torch(pytester: pytest.Pytester) -> None:
    write(pytester.path, PATHS)
    script = pytester.makepyfile(
        """
        import sys
        from pathlib import Path
        from isotest.suite import load_suite
        load_suite(Path("a.toml"))
        assert "torch" not in sys.modules
        """
    )
    assert pytester.runpython(script).ret == 0
