"""Files of weights for suites of modality ``tasks``: networks hardly trained, or only drawn."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from isotest.blocks.tasks.circle import CircleNetwork
from isotest.blocks.tasks.circle_training import CircleFit
from isotest.blocks.tasks.identity import VARIANTS
from isotest.blocks.tasks.network import TaskNetwork
from isotest.blocks.tasks.stored import save
from isotest.blocks.tasks.task import TASKS
from isotest.blocks.tasks.training import train

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from isotest.blocks.tasks.config import Design


@cache
def beginner(design: Design) -> TaskNetwork:
    """Two epochs of sorting: it has noticed that small symbols come first, and hardly more."""
    task = TASKS["sorting"]
    network = TaskNetwork(task.network_config(design), seed=0)
    examples = task.train(seed=0)
    settings = replace(task.settings(design), epochs=2, warmup=5, dropout=0.0)
    train(
        network,
        [examples.inputs, examples.labels, examples.valid],
        network.loss,
        settings,
        seed=0,
    )
    return network


def write_sorting(
    file: Path, design: Design = "bert", said: Mapping[str, object] | None = None
) -> None:
    """The beginner's weights; ``said`` takes the place of what the file says of itself."""
    network = beginner(design)
    metadata = {"task": "sorting", "design": design, "network": network.config.to_dict()}
    save(file, network.state_dict(), {**metadata, **(said or {})})


def write_circle(file: Path, seeds: tuple[int, ...] = (0, 1, 2)) -> None:
    """Networks of every variant that have learnt nothing."""
    networks = {
        variant: {seed: CircleNetwork("bert", variant, seed=seed) for seed in seeds}
        for variant in VARIANTS
    }
    errors = {variant: [0.0] * len(seeds) for variant in VARIANTS}
    CircleFit("bert", "fitted", networks, errors).save(file)
