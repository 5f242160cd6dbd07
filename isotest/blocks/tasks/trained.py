"""Training the network of a task from nothing, and what stands beside its weights."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import torch

from isotest.blocks.tasks.effectiveness import accuracy, final_hidden
from isotest.blocks.tasks.network import TaskNetwork
from isotest.blocks.tasks.stored import rounded, save
from isotest.blocks.tasks.task import TASKS
from isotest.blocks.tasks.training import train
from isotest.blocks.threads import one_thread

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from isotest.blocks.tasks.config import Design
    from isotest.blocks.tasks.examples import Examples

_JUDGED_BY = 2_000
"""Fresh examples that a trained network is judged by, once."""


@dataclass(frozen=True)
class Trained:
    """A trained network and how good it is, after rounding to float16.

    Attributes:
        network: in eval mode.
        train_accuracy: on the examples that it has learnt from.
        test_accuracy: on fresh examples; ``None`` where there are no others.
        metadata: what is stored beside the weights.
    """

    network: TaskNetwork
    train_accuracy: float
    test_accuracy: float | None
    metadata: dict[str, Any]

    def save(self, file: Path) -> None:
        """Write the weights.

        Raises:
            SourceError: the file cannot be written.
        """
        save(file, self.network.state_dict(), self.metadata)


def train_task(
    name: str, design: Design, *, seed: int, progress: Callable[[int, float], object] | None = None
) -> Trained:
    """Train a network on a task as its settings say.

    Args:
        name: a key of :data:`isotest.blocks.tasks.task.TASKS`.
        design: of its blocks.
        seed: of the weights, of dropout, of the order of the examples, and of their draw.
        progress: as of :func:`isotest.blocks.tasks.training.train`.

    Raises:
        MeasurementError: the loss is not finite.
    """
    task = TASKS[name]
    config, settings = task.network_config(design), task.settings(design)
    network = TaskNetwork(config, seed=seed)
    examples = task.train(seed=seed)
    data = [examples.inputs, examples.labels, examples.valid]
    train(network, data, network.loss, settings, seed=seed, progress=progress)
    rounded(network)
    learnt = _accuracy(network, examples)
    fresh = None
    if not task.whole:
        fresh = _accuracy(network, task.test(_JUDGED_BY, seed=seed, repeat=0))
    metadata = {
        "task": name,
        "design": design,
        "seed": seed,
        "network": config.to_dict(),
        "settings": settings.to_dict(),
        "train_accuracy": learnt,
        "test_accuracy": fresh,
        "versions": {"isotest": version("isotest"), "torch": torch.__version__},
    }
    return Trained(network, learnt, fresh, metadata)


@torch.no_grad()
def _accuracy(network: TaskNetwork, examples: Examples) -> float:
    with one_thread():
        return accuracy(network.head(final_hidden(network, examples)), examples, "after training")
