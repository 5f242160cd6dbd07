"""What paths compute, against every path by itself in float64, and what is made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from isotest.blocks import BlockConfig, TransformerBlock
from isotest.blocks.paths import all_paths, sample_paths
from isotest.blocks.tasks.effectiveness import (
    accuracy,
    final_hidden,
    measure_paths,
    normalised,
    path_seed,
    summed_paths,
    through_paths,
)
from isotest.blocks.tasks.examples import Examples
from isotest.errors import BlockError, MeasurementError, NonFiniteError
from tests.blocks.tasks.naive_paths import (
    naive_path,
    parameters_of,
    plain_layer_norm,
    plain_rms_norm,
)
from tests.blocks.tasks.networks import random_network

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isotest.blocks.tasks.config import Design
    from isotest.blocks.tasks.network import TaskNetwork

DESIGNS: tuple[Design, ...] = ("bert", "modern")


def examples_of(lengths: list[int], *, vocabulary: int = 7, classes: int = 5) -> Examples:
    draw = np.random.default_rng(3)
    valid = np.arange(max(lengths)) < np.array(lengths)[:, None]
    inputs = draw.integers(0, vocabulary, valid.shape)
    return Examples.of(inputs, draw.integers(0, classes, valid.shape) * valid, valid)


def naive_sum(
    network: TaskNetwork, paths: list[list[int]], examples: Examples
) -> list[NDArray[np.float64]]:
    """Of each sequence, without its padding."""
    weights, config = parameters_of(network), network.config.block
    sums = []
    for tokens, valid in zip(examples.inputs, examples.valid, strict=True):
        with torch.no_grad():
            x = network.embedding(tokens[valid][None])[0].double().numpy()
        sums.append(np.stack([naive_path(weights, config, path, x) for path in paths]).sum(0))
    return sums


@pytest.mark.parametrize("design", DESIGNS)
def test_summed_paths_are_those_of_a_loop_over_paths_and_queries(design: Design) -> None:
    network, examples = random_network(design), examples_of([5, 2, 3, 1])
    paths = sample_paths(4, 3, 9, length=2, seed=5)
    small, large = summed_paths(network, [paths], examples, [4, 9])
    for found, count in ((small, 4), (large, 9)):
        expected = naive_sum(network, paths[:count].tolist(), examples)
        for row, valid, one in zip(found, examples.valid, expected, strict=True):
            np.testing.assert_allclose(row[valid].numpy(), one, rtol=2e-5, atol=2e-5)
            assert not row[~valid].any()


@pytest.mark.parametrize("design", DESIGNS)
def test_every_length_is_that_of_a_loop(design: Design) -> None:
    network, examples = random_network(design), examples_of([4, 3])
    for length in range(1, 5):
        paths = all_paths(4, 3, length)[:6]
        (found,) = summed_paths(network, [paths], examples, [len(paths)])
        for row, valid, one in zip(
            found, examples.valid, naive_sum(network, paths.tolist(), examples), strict=True
        ):
            np.testing.assert_allclose(row[valid].numpy(), one, rtol=5e-5, atol=5e-5)


@pytest.mark.parametrize("design", DESIGNS)
def test_several_draws_are_those_of_each_by_itself(design: Design) -> None:
    network, examples = random_network(design), examples_of([4, 3])
    draws = [sample_paths(4, 3, 6, length=length, seed=length) for length in (1, 2, 4)]
    together = summed_paths(network, draws, examples, [2, 6])
    apart = [x for draw in draws for x in summed_paths(network, [draw], examples, [2, 6])]
    assert len(together) == 6
    for one, other in zip(together, apart, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("design", DESIGNS)
def test_a_path_drawn_twice_counts_twice(design: Design) -> None:
    network, examples = random_network(design), examples_of([3, 3])
    path = np.array([[0, 2, 0, 1]])
    (once,) = summed_paths(network, [path], examples, [1])
    (twice,) = summed_paths(network, [path.repeat(2, axis=0)], examples, [2])
    torch.testing.assert_close(twice, 2 * once)


@pytest.mark.parametrize("design", DESIGNS)
def test_with_one_head_the_longest_path_is_the_whole_network_without_the_attentions_skips(
    design: Design,
) -> None:
    """The same module, told to leave the skip out: blocks compute it their own way."""
    network = random_network(design, width=8, heads=1, depth=3)
    if design == "bert":  # the norm behind the attention has no γ and β on a path
        for block in network.stack.blocks:
            assert isinstance(block, TransformerBlock)
            assert isinstance(block.attention_norm, nn.LayerNorm)
            block.attention_norm.reset_parameters()
    examples = examples_of([4, 4])
    (found,) = summed_paths(network, [np.array([[1, 1, 1]])], examples, [1])
    without = {**network.config.block.to_dict(), "attention_skip": False}
    for block in network.stack.blocks:
        assert isinstance(block, TransformerBlock)
        block.config = BlockConfig(**without)
    with torch.no_grad():
        expected = network.stack(network.embedding(examples.inputs))
    torch.testing.assert_close(found, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("design", DESIGNS)
def test_a_bypassed_layer_does_nothing_at_all(design: Design) -> None:
    network = random_network(design)
    x = network.embedding(examples_of([3]).inputs).detach()
    valid = torch.ones(1, 3, dtype=torch.bool)
    with torch.no_grad():
        ends = through_paths(network, torch.tensor([[0, 0, 0, 0], [0, 0, 1, 0]]), x, valid)
        for name, parameter in network.named_parameters():
            if "blocks" in name and "blocks.2" not in name:
                parameter.fill_(torch.nan)
        again = through_paths(network, torch.tensor([[0, 0, 0, 0], [0, 0, 1, 0]]), x, valid)
    assert torch.equal(ends[0], x)
    assert torch.equal(ends, again)


@pytest.mark.parametrize("design", DESIGNS)
def test_padding_changes_nothing(design: Design) -> None:
    network, examples = random_network(design), examples_of([5, 2])
    paths = sample_paths(4, 3, 5, length=3, seed=1)
    (together,) = summed_paths(network, [paths], examples, [5])
    (alone,) = summed_paths(network, [paths], examples[1:].trimmed(), [5])
    torch.testing.assert_close(together[1, :2], alone[0], rtol=1e-5, atol=1e-5)


def test_many_sequences_are_those_of_each_batch_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    network, examples = random_network("bert"), examples_of([5, 2, 4, 5, 1, 3])
    paths = sample_paths(4, 3, 5, length=2, seed=1)
    (together,) = summed_paths(network, [paths], examples, [5])
    monkeypatch.setattr("isotest.blocks.tasks.effectiveness._POSITIONS", 1)
    (one_by_one,) = summed_paths(network, [paths], examples, [5])
    torch.testing.assert_close(together, one_by_one, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("design", DESIGNS)
def test_the_sum_is_normalised_without_weights(design: Design) -> None:
    network = random_network(design)
    x = torch.randn(2, 3, 12, generator=torch.Generator().manual_seed(0))
    plain = plain_layer_norm if design == "bert" else plain_rms_norm
    expected = plain(x.double().numpy(), network.config.block.layer_norm_eps)
    np.testing.assert_allclose(normalised(network, x).numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("design", DESIGNS)
def test_accuracy_of_every_layer_is_counted_by_a_loop(design: Design) -> None:
    network, examples = random_network(design), examples_of([5, 2, 3, 4])
    measured = measure_paths(network, lambda _: examples, counts=[2, 5], repeats=2, seed=7)
    weights, config = parameters_of(network), network.config.block
    plain = plain_layer_norm if design == "bert" else plain_rms_norm
    for count in (2, 5):
        for length in (1, 2, 3, 4):
            for repeat in (0, 1):
                paths = sample_paths(4, 3, 5, length=length, seed=path_seed(7, repeat, length))
                right = total = 0
                sums = naive_sum(network, paths[:count].tolist(), examples)
                for one, labels, valid in zip(sums, examples.labels, examples.valid, strict=True):
                    logits = plain(one, config.layer_norm_eps) @ weights["head.weight"].T
                    best = (logits + weights["head.bias"]).argmax(-1)
                    right += int((best == labels[valid].numpy()).sum())
                    total += len(best)
                layer = measured[f"paths_{count}.{length}"]
                assert layer.estimates["path_accuracy"][repeat].value == right / total
                assert layer.positions == [14, 14]


def test_layers_are_named_in_order() -> None:
    network, examples = random_network("bert"), examples_of([3, 3])
    measured = measure_paths(network, lambda _: examples, counts=[5, 2], repeats=1, seed=0)
    assert list(measured) == [
        "full",
        *(f"paths_5.{length}" for length in range(1, 5)),
        *(f"paths_2.{length}" for length in range(1, 5)),
    ]
    assert measured["paths_2.3"].length == 3


def test_full_is_the_network_itself() -> None:
    network, examples = random_network("modern"), examples_of([4, 2])
    with torch.no_grad():
        best = network(examples.inputs, examples.valid).argmax(-1)
    right = (best == examples.labels)[examples.valid].double().mean()
    measured = measure_paths(network, lambda _: examples, counts=[1], repeats=1, seed=0)
    assert measured["full"].values("path_accuracy") == [float(right)]


def rigged(network: TaskNetwork, label: int) -> TaskNetwork:
    """Always says one label."""
    with torch.no_grad():
        network.head.weight.zero_()
        network.head.bias.copy_(torch.eye(network.config.classes)[label])
    return network


def test_a_network_at_chance_has_no_share() -> None:
    """Two thirds of the labels are 1, and it always says 1."""
    labels = torch.tensor([[1, 1, 0]])
    examples = Examples(labels, labels, torch.ones(1, 3, dtype=torch.bool))
    network = rigged(random_network("bert"), 1)
    measured = measure_paths(network, lambda _: examples, counts=[1], repeats=2, seed=0)
    assert measured["full"].values("path_accuracy") == [2 / 3, 2 / 3]
    for layer in measured.values():
        for estimate in layer.estimates["path_share"]:
            assert estimate.value is None
            assert "chance is 0.6667" in str(estimate.undefined)
    with pytest.raises(MeasurementError, match=r"full, repeat 0: path_share is undefined"):
        measured["full"].values("path_share")


def test_shares_are_of_each_repeats_own_chance() -> None:
    network = random_network("bert", classes=2)
    repeats = [examples_of([5] * 6, classes=2), examples_of([4] * 3, classes=2)]
    with torch.no_grad():  # either label for about half of the positions
        logits = network(repeats[0].inputs)
        network.head.bias[1] -= (logits[..., 1] - logits[..., 0]).median()
    for number, examples in enumerate(repeats):  # so that it is right but for one label
        with torch.no_grad():
            labels = network(examples.inputs).argmax(-1)
        labels[0, 0] = 1 - labels[0, 0]
        repeats[number] = Examples(examples.inputs, labels, examples.valid)
    measured = measure_paths(network, lambda r: repeats[r], counts=[3], repeats=2, seed=0)
    for number, examples in enumerate(repeats):
        ones = float(examples.labels.double().mean())
        chance = max(ones, 1 - ones)
        full = 1 - 1 / examples.labels.numel()
        assert measured["full"].values("path_accuracy")[number] == pytest.approx(full)
        own = measured["paths_3.2"].values("path_accuracy")[number]
        share = measured["paths_3.2"].values("path_share")[number]
        assert share == pytest.approx((own - chance) / (full - chance))
        assert measured["full"].values("path_share")[number] == 1.0


def test_residual_is_that_of_the_sum_before_it_is_normalised() -> None:
    network, examples = random_network("bert"), examples_of([5, 3])
    measured = measure_paths(network, lambda _: examples, counts=[4], repeats=1, seed=2)
    paths = sample_paths(4, 3, 4, length=2, seed=path_seed(2, 0, 2))
    ratios = [
        np.linalg.norm(x - x.mean(0)) / np.linalg.norm(x)
        for x in naive_sum(network, paths.tolist(), examples)
    ]
    found = measured["paths_4.2"].values("path_residual")[0]
    assert found == pytest.approx(np.mean(ratios), rel=1e-4)
    whole = final_hidden(network, examples)
    ratios = []
    for x, valid in zip(whole, examples.valid, strict=True):
        own = x[valid].double().numpy()
        ratios.append(np.linalg.norm(own - own.mean(0)) / np.linalg.norm(own))
    found = measured["full"].values("path_residual")[0]
    assert found == pytest.approx(np.mean(ratios), rel=1e-4)


def test_the_same_seed_measures_the_same_and_another_one_does_not() -> None:
    network, examples = random_network("modern"), examples_of([5] * 20)
    first, again, other = (
        measure_paths(network, lambda _: examples, counts=[3], repeats=2, seed=seed)
        for seed in (0, 0, 1)
    )
    assert first == again
    assert first["paths_3.2"] != other["paths_3.2"]
    two = first["paths_3.2"].values("path_residual")
    assert two[0] != two[1]


@pytest.mark.parametrize(
    ("weight", "layers"),
    [("head.weight", "full, repeat 0"), ("stack.blocks.1.mlp.output.weight", "full, repeat 0")],
)
def test_nan_is_named(weight: str, layers: str) -> None:
    network, examples = random_network("modern"), examples_of([3, 3])
    with torch.no_grad():
        network.get_parameter(weight)[0] = torch.nan
    with pytest.raises(NonFiniteError, match=layers):
        measure_paths(network, lambda _: examples, counts=[2], repeats=1, seed=0)


def test_nan_of_a_path_alone_is_named() -> None:
    """An infinite bias of a key moves every score of the path alike; of the network, too."""
    network, examples = random_network("bert"), examples_of([3, 3])
    measured = measure_paths(network, lambda _: examples, counts=[2], repeats=1, seed=0)
    assert measured["full"].values("path_accuracy")
    logits = torch.full((2, 3, 5), torch.inf)
    with pytest.raises(NonFiniteError, match=r"paths_5\.2, repeat 1: NaN or an infinity"):
        accuracy(logits, examples, "paths_5.2, repeat 1")


@pytest.mark.parametrize(
    ("counts", "repeats", "message"),
    [
        ([], 1, "counts to be different"),
        ([0], 1, "counts"),
        ([5, 5], 1, "counts"),
        ([5], 0, "repeats"),
    ],
)
def test_what_cannot_be_measured_is_refused(counts: list[int], repeats: int, message: str) -> None:
    network, examples = random_network("bert"), examples_of([3])
    with pytest.raises(BlockError, match=message):
        measure_paths(network, lambda _: examples, counts=counts, repeats=repeats, seed=0)


def test_a_length_that_no_path_has_is_refused() -> None:
    network, examples = random_network("bert"), examples_of([3])
    with pytest.raises(BlockError, match=r"from 0 to 4"):
        measure_paths(network, lambda _: examples, counts=[1], repeats=1, seed=0, lengths=[5])


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=30))
def test_chance_is_the_commonest_label(labels: list[int]) -> None:
    padded = torch.tensor([[*labels, 3, 3, 3]])
    valid = torch.tensor([[True] * len(labels) + [False] * 3])
    expected = max(labels.count(label) for label in range(4)) / len(labels)
    assert Examples(padded, padded, valid).chance() == expected


def test_chance_of_nothing_is_refused() -> None:
    nothing = torch.zeros(1, 2, dtype=torch.int64)
    with pytest.raises(BlockError, match="at least one valid position"):
        Examples(nothing, nothing, nothing.bool()).chance()
