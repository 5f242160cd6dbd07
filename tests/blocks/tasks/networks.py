"""Networks with random weights, in which every bias and norm matters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from isotest.blocks.tasks.config import NetworkConfig, block_config
from isotest.blocks.tasks.network import TaskNetwork

if TYPE_CHECKING:
    from isotest.blocks.tasks.config import Design


def random_network(
    design: Design,
    *,
    width: int = 12,
    heads: int = 3,
    depth: int = 4,
    classes: int = 5,
    vocabulary: int | None = 7,
    positions: int | None = None,
    seed: int = 0,
) -> TaskNetwork:
    block = block_config(design, width=width, heads=heads, depth=depth)
    network = TaskNetwork(NetworkConfig(block, classes, vocabulary, positions)).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            drawn = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(0.4 * drawn + (1 if "norm.weight" in name else 0))
    return network
