"""The same seed gives the same weights, and every setting does what it says."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

import pytest
import torch
from torch import nn

from isotest.blocks.block import TransformerBlock
from isotest.blocks.tasks.sorting import Sorting
from isotest.blocks.tasks.training import Settings, dropping_out, train
from isotest.blocks.threads import one_thread
from isotest.errors import MeasurementError
from tests.blocks.tasks.networks import random_network

if TYPE_CHECKING:
    from torch import Tensor

    from isotest.blocks.tasks.config import Design
    from isotest.blocks.tasks.network import TaskNetwork

SETTINGS = Settings(learning_rate=1e-2, batch_size=4, epochs=2, warmup=2, dropout=0.2)


def trained(design: Design, seed: int, settings: Settings = SETTINGS) -> TaskNetwork:
    network = random_network(design, vocabulary=10, classes=10, positions=8, depth=2)
    examples = Sorting().test(12, seed=0, repeat=0)
    data = [examples.inputs, examples.labels, examples.valid]
    train(network, data, network.loss, settings, seed=seed)
    return network


def weights_of(network: nn.Module) -> Tensor:
    flat: Tensor = torch.cat([each.detach().flatten() for each in network.parameters()])
    return flat


@pytest.mark.parametrize("design", ["bert", "modern"])
def test_the_same_seed_gives_the_same_weights(design: Design) -> None:
    torch.manual_seed(1)
    first = weights_of(trained(design, 0))
    torch.manual_seed(2)
    assert torch.equal(first, weights_of(trained(design, 0)))
    assert not torch.equal(first, weights_of(trained(design, 1)))


def test_torchs_generator_and_threads_are_left_as_they_were() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    threads = torch.get_num_threads()
    network = trained("bert", 0)
    assert torch.equal(torch.rand(3), expected)
    assert torch.get_num_threads() == threads
    assert not network.training


def test_there_is_one_thread() -> None:
    before = torch.get_num_threads()
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_an_epoch_takes_every_example_once() -> None:
    seen: list[list[int]] = []
    module = nn.Linear(1, 1)

    def loss(numbers: Tensor) -> Tensor:
        seen.append(numbers.flatten().int().tolist())
        value: Tensor = module(numbers).mean()
        return value

    told: list[int] = []
    train(
        module,
        [torch.arange(10.0)[:, None]],
        loss,
        replace(SETTINGS, epochs=3, dropout=0.0),
        seed=0,
        progress=lambda epoch, _: told.append(epoch),
    )
    assert told == [1, 2, 3]
    assert [len(batch) for batch in seen] == [4, 4, 2] * 3
    epochs = [[*chain(*seen[start : start + 3])] for start in (0, 3, 6)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert epochs[0] != epochs[1]


def test_a_step_is_adams() -> None:
    """Adam's first step is the learning rate long, whatever the gradient: g/√g²."""
    module = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        module.weight.fill_(1.0)
    settings = Settings(
        learning_rate=0.1, batch_size=1, epochs=1, warmup=0, schedule="constant", clip=1e9
    )
    train(module, [torch.tensor([[7.0]])], lambda x: module(x).sum(), settings, seed=0)
    assert module.weight.item() == pytest.approx(0.9, abs=1e-6)


def test_the_mean_loss_is_over_examples() -> None:
    module = nn.Linear(1, 1)
    frozen = Settings(learning_rate=0.0, batch_size=4, epochs=1)
    mean = train(
        module,
        [torch.arange(10.0)[:, None]],
        lambda x: x.mean() + 0 * module(x).mean(),
        frozen,
        seed=0,
    )
    assert mean == pytest.approx(4.5)


@pytest.mark.parametrize("design", ["bert", "modern"])
def test_dropout_is_on_what_sublayers_add_and_gone_afterwards(design: Design) -> None:
    network = random_network(design, depth=1)
    x = torch.randn(2, 3, 12, generator=torch.Generator().manual_seed(0))
    block = network.stack.blocks[0]
    assert isinstance(block, TransformerBlock)
    mlp = block.mlp
    assert mlp is not None
    with torch.no_grad():
        plain = mlp(x)
        torch.manual_seed(0)
        with dropping_out(network, 0.5):
            dropped = mlp(x)
        assert torch.equal(mlp(x), plain)
    kept = dropped != 0
    assert 0 < int(kept.sum()) < kept.numel()
    torch.testing.assert_close(dropped[kept], 2 * plain[kept])


def test_a_loss_that_is_not_finite_is_refused() -> None:
    module = nn.Linear(1, 1)
    with pytest.raises(MeasurementError, match=r"the loss is nan in step 1 of 2, epoch 1"):
        train(
            module,
            [torch.zeros(8, 1)],
            lambda x: module(x).mean() * torch.nan,
            replace(SETTINGS, epochs=1, dropout=0.0),
            seed=0,
        )


def test_padding_has_no_loss() -> None:
    network = random_network("bert")
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randint(0, 7, (2, 5), generator=generator)
    labels = torch.randint(0, 5, (2, 5), generator=generator)
    valid = torch.tensor([[True] * 4 + [False], [True] * 2 + [False] * 3])
    found = network.loss(inputs, labels, valid)
    logits = network(inputs, valid)
    terms = [
        -logits[b, i].log_softmax(-1)[labels[b, i]]
        for b in range(2)
        for i in range(5)
        if valid[b, i]
    ]
    torch.testing.assert_close(found, torch.stack(terms).mean())
    other = torch.where(valid, inputs, 6 - inputs)
    torch.testing.assert_close(network.loss(other, labels * valid, valid), found)
