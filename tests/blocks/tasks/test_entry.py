"""Suites of modality ``tasks``, measured: profiles, error bars, the cache, and what goes wrong."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

import pytest
import torch

from isotest.blocks.tasks import circle, circle_training, identity
from isotest.blocks.tasks.stored import load_network
from isotest.blocks.tasks.task import TASKS
from isotest.cache import ProfileCache
from isotest.entry import Settings, StandIn, measure_entry
from isotest.errors import IsotestError, MissingError, SourceError
from isotest.models import load_model
from isotest.profile_json import read_profile, write_profile
from isotest.report.drift import drift_record
from isotest.report.show import metrics_of, show_lines
from isotest.selftest import selftest
from isotest.source import MODEL_SCHEMES, parse_source
from isotest.suite import load_suite
from tests.blocks.tasks.stored_networks import write_circle, write_sorting

if TYPE_CHECKING:
    from pathlib import Path

    from isotest.entry import Measurement
    from isotest.profile import Profile

SORTING = """
modality = "tasks"
[data]
source = "task:sorting"
samples = 20
[paths]
counts = [1, 3]
repeats = 3
[[models]]
name = "net"
source = "task:sorting?weights=w.safetensors"
[checks.path_accuracy]
layers = "full"
min = 0
"""

CIRCLE = """
modality = "tasks"
[data]
source = "task:circle"
samples = 5
[recurrence]
steps = [0, 1, 10]
[[models]]
name = "net"
source = "task:circle?variant=skip&weights=w.safetensors"
[checks.pair_distance]
min = 0
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "suites").mkdir()
    return tmp_path / "suites"


def measured(
    folder: Path, text: str, cache: ProfileCache | None = None, stand_in: StandIn | None = None
) -> Measurement:
    (folder / "a.toml").write_text(text)
    suite = load_suite(folder / "a.toml")
    return measure_entry(suite, suite.models[0], Settings(), cache=cache, stand_in=stand_in)


def sorted_profile(folder: Path, text: str = SORTING) -> Profile:
    write_sorting(folder / "w.safetensors")
    return measured(folder, text).profile


def test_layers_are_the_network_and_its_paths_by_count_and_length(folder: Path) -> None:
    profile = sorted_profile(folder)
    assert [layer.name for layer in profile.layers] == [
        "full",
        *(f"paths_{count}.{length}" for count in (1, 3) for length in range(1, 7)),
    ]
    assert profile.modality == "tasks"
    assert profile.block_sequences == (20, 20, 20)
    assert profile.sequences == profile.units == 60
    for layer in profile.layers:
        assert layer.width == 48
        assert layer.block_representations == (160, 160, 160)  # 20 sequences of 8
        assert list(layer.estimates) == ["path_accuracy", "path_share", "path_residual"]


def test_the_network_itself_is_as_good_as_its_labels_say(folder: Path) -> None:
    """Against the network run by hand on the same fresh examples, repeat by repeat."""
    profile = sorted_profile(folder)
    network = load_network(folder / "w.safetensors", task="sorting", design="bert")
    right = []
    for repeat in range(3):
        examples = TASKS["sorting"].test(20, seed=0, repeat=repeat)
        with torch.no_grad():
            answers = network(examples.inputs).argmax(-1)
        right.append((answers == examples.labels).double().mean().item())
    found = profile.layers[0].estimates["path_accuracy"]
    assert found.blocks == pytest.approx(right)
    assert found.value == pytest.approx(statistics.fmean(right))
    assert found.se == pytest.approx(statistics.stdev(right) / math.sqrt(3))
    assert found.value is not None
    assert found.value > 0.2  # or the shares below are of nothing


def test_a_share_is_of_what_the_network_has_above_chance(folder: Path) -> None:
    profile = sorted_profile(folder)
    chance = [TASKS["sorting"].test(20, seed=0, repeat=r).chance() for r in range(3)]
    full = profile.layers[0].estimates["path_accuracy"].blocks
    for layer in profile.layers:
        own = layer.estimates["path_accuracy"].blocks
        shares = [(a - c) / (f - c) for a, c, f in zip(own, chance, full, strict=True)]
        assert layer.estimates["path_share"].blocks == pytest.approx(shares)
    assert profile.layers[0].estimates["path_share"].value == 1.0


def test_only_what_is_asked_for_is_in_the_profile(folder: Path) -> None:
    text = SORTING.replace("[[models]]", '[measure]\nmetrics = ["path_residual"]\n[[models]]')
    profile = sorted_profile(folder, text)
    assert list(profile.layers[0].estimates) == ["path_accuracy", "path_residual"]


def test_a_profile_is_stored_shown_and_reported(folder: Path, tmp_path: Path) -> None:
    profile = sorted_profile(folder)
    write_profile(profile, tmp_path / "p.json")
    assert read_profile(tmp_path / "p.json") == profile
    lines = show_lines(profile, metrics_of(profile), width=100)
    assert any("paths_3.6" in line for line in lines)
    record = drift_record(profile)
    assert record.highest is None
    assert record.spearman.finding == "undefined"
    assert "anisotropy was not measured" in record.spearman.reason


def test_the_circle_has_a_layer_for_each_step_and_a_block_for_each_training(folder: Path) -> None:
    write_circle(folder / "w.safetensors")
    profile = measured(folder, CIRCLE).profile
    assert [layer.name for layer in profile.layers] == ["step.0", "step.1", "step.10"]
    assert profile.block_sequences == (5, 5, 5)
    start = profile.layers[0].estimates["pair_distance"]
    # Both points of a pair are on the circle, all but opposite: 499 of 1,000 steps apart.
    assert start.value == pytest.approx(0.6 * math.sin(math.pi * 499 / 1000))
    assert start.se == pytest.approx(0.0, abs=1e-15)  # all trainings start from the same pairs
    networks = circle_training.load_circle(folder / "w.safetensors", design="bert", variant="skip")
    for layer, steps in zip(profile.layers, (0, 1, 10), strict=True):
        apart = []
        for network in networks.values():
            x = circle.starting_pairs(5)
            for _ in range(steps):
                with torch.no_grad():
                    x = network.double()(x)
            apart.append((x[:, 0] - x[:, 1]).norm(dim=-1).mean().item())
        assert layer.estimates["pair_distance"].blocks == pytest.approx(apart)
        shares = [each / start.value for each in apart]
        assert layer.estimates["pair_distance_share"].blocks == pytest.approx(shares)
    assert "attention" not in profile.provenance.architecture.values()


def test_suites_know_the_tasks_and_pairs_that_there_are() -> None:
    assert len(circle.circle_pairs()[0]) == identity.PAIRS
    assert set(identity.EXPERIMENTS) == {*TASKS, "circle"}
    assert [name for name, task in TASKS.items() if task.whole] == [identity.WHOLE]


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        (SORTING, "samples = 20", "samples = 21"),
        (SORTING, "samples = 20", "samples = 20\nseed = 1"),
        (SORTING, "counts = [1, 3]", "counts = [1, 4]"),
        (SORTING, "repeats = 3", "repeats = 4"),
        (CIRCLE, "samples = 5", "samples = 6"),
        (CIRCLE, "[0, 1, 10]", "[0, 1, 11]"),
        (CIRCLE, "variant=skip", "variant=both"),
    ],
)
def test_the_cache_knows_all_that_decides_the_numbers(
    folder: Path, tmp_path: Path, text: str, before: str, after: str
) -> None:
    (write_sorting if "sorting" in text else write_circle)(folder / "w.safetensors")
    cache = ProfileCache(tmp_path / "cache")
    assert [measured(folder, text, cache).cached for _ in range(2)] == [False, True]
    other = measured(folder, text.replace(before, after), cache)
    assert not other.cached


def test_the_cache_knows_the_weights(folder: Path, tmp_path: Path) -> None:
    cache = ProfileCache(tmp_path / "cache")
    write_circle(folder / "w.safetensors")
    before = measured(folder, CIRCLE, cache).profile
    write_circle(folder / "w.safetensors", seeds=(3, 4, 5))
    after = measured(folder, CIRCLE, cache)
    assert not after.cached
    assert after.profile.provenance.weights != before.provenance.weights


def test_another_file_stands_in_for_the_weights(folder: Path, tmp_path: Path) -> None:
    write_sorting(folder / "w.safetensors")
    (folder / "w.safetensors").rename(tmp_path / "new.safetensors")
    stand_in = StandIn("task:sorting?weights=new.safetensors", tmp_path)
    assert measured(folder, SORTING, stand_in=stand_in).profile.layers[0].name == "full"
    for source in ("task:convex-hull", "init:vit"):
        with pytest.raises(SourceError, match="about sorting measures networks of that task"):
            measured(folder, SORTING, stand_in=StandIn(source, tmp_path))


def test_missing_weights_are_missing(folder: Path) -> None:
    with pytest.raises(MissingError, match=r"no weights at .*w\.safetensors; name a file that"):
        measured(folder, SORTING)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"task": "convex-hull"}, 'expected task = "sorting", found "convex-hull"'),
        ({"design": "modern"}, 'expected design = "bert", found "modern"'),
        ({"network": None}, "expected network = .* found null"),
    ],
)
def test_weights_of_something_else_are_refused(
    folder: Path, said: dict[str, object], words: str
) -> None:
    write_sorting(folder / "w.safetensors", said=said)
    with pytest.raises(SourceError, match=rf"weights .*w\.safetensors: {words}"):
        measured(folder, SORTING)


def test_the_choice_of_a_precision_is_refused(folder: Path) -> None:
    write_sorting(folder / "w.safetensors")
    (folder / "a.toml").write_text(SORTING)
    suite = load_suite(folder / "a.toml")
    with pytest.raises(IsotestError, match="leave out the choice of bfloat16"):
        measure_entry(suite, suite.models[0], Settings(dtype="bfloat16"))


def test_faults_cannot_be_planted(folder: Path) -> None:
    (folder / "a.toml").write_text(SORTING)
    with pytest.raises(IsotestError, match=r"table \[paths\] feeds networks their own task"):
        selftest(folder / "a.toml", suites=folder, baselines=folder, say=lambda _line: None)


def test_a_network_of_a_task_is_no_model_to_feed() -> None:
    with pytest.raises(SourceError, match="takes the examples of its task alone"):
        load_model("task:sorting")


def test_the_name_of_a_kept_file_says_task_and_design(tmp_path: Path) -> None:
    source = parse_source("task:circle?variant=both&design=modern", MODEL_SCHEMES)
    assert identity.task_source(source).file(tmp_path).name == "circle-modern.safetensors"
