"""The weights that come with isotest reach the level that is stated of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from isotest.blocks.tasks import trained
from isotest.blocks.tasks.effectiveness import accuracy, final_hidden
from isotest.blocks.tasks.memorization import Memorization
from isotest.blocks.tasks.stored import load, load_network
from isotest.blocks.tasks.task import TASKS

if TYPE_CHECKING:
    from isotest.blocks.tasks.config import Design

FOLDER = Path(trained.__file__).parent / "weights"

LEVELS = {"memorization": 0.85, "sorting": 0.98, "convex-hull": 0.90}
"""The authors' (figure 4 of the paper, read off)."""


@pytest.mark.parametrize("design", ["bert", "modern"])
@pytest.mark.parametrize("name", LEVELS)
def test_the_level_is_reached_on_examples_that_nobody_has_seen(name: str, design: Design) -> None:
    network = load_network(FOLDER / f"{name}-{design}.safetensors", task=name, design=design)
    task = TASKS[name]
    examples = task.test(None if task.whole else 500, seed=12_345, repeat=0)
    found = accuracy(network.head(final_hidden(network, examples)), examples, name)
    assert found >= LEVELS[name]
    assert found > examples.chance() + 0.2


@pytest.mark.parametrize("design", ["bert", "modern"])
@pytest.mark.parametrize("name", LEVELS)
def test_weights_say_how_they_were_trained_today(name: str, design: Design) -> None:
    """Settings that were changed since would not make these weights."""
    metadata = load(FOLDER / f"{name}-{design}.safetensors").metadata
    assert metadata["settings"] == TASKS[name].settings(design).to_dict()
    assert metadata["seed"] == 0


def test_memorization_does_not_exceed_what_positions_would_be_needed_for() -> None:
    """Equal tokens of a sentence are labelled alike."""
    for design in ("bert", "modern"):
        metadata = load(FOLDER / f"memorization-{design}.safetensors").metadata
        ceiling = Memorization().ceiling()
        assert 0.95 * ceiling < metadata["train_accuracy"] <= ceiling


def test_all_weights_are_small() -> None:
    files = sorted(FOLDER.glob("*.safetensors"))
    assert files
    assert sum(file.stat().st_size for file in files) <= 4 * 2**20
    assert max(file.stat().st_size for file in files) < 3_000_000
