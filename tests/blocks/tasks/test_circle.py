"""The circle: its points and pairs by closed form, its networks, and their training."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
import torch

from isotest.blocks.tasks.__main__ import main
from isotest.blocks.tasks.circle import (
    POINTS,
    RADIUS,
    STEP,
    CircleNetwork,
    circle_block,
    circle_pairs,
    circle_points,
    one_step_error,
    self_attention_shares,
    starting_pairs,
)
from isotest.blocks.tasks.circle_training import (
    RECIPES,
    CircleFit,
    Recipe,
    load_circle,
    said_of,
    train_together,
)
from isotest.blocks.tasks.config import DESIGNS
from isotest.blocks.tasks.identity import PAIRS, VARIANTS
from isotest.blocks.tasks.training import Settings
from isotest.errors import BlockError, MissingError, SourceError

if TYPE_CHECKING:
    from pathlib import Path

    from isotest.blocks.tasks.config import Design
    from isotest.blocks.tasks.identity import Variant


def test_points_by_closed_form() -> None:
    points = circle_points().tolist()
    assert len(points) == POINTS == 1000
    for index, (x, y) in enumerate(points):
        angle = 2 * math.pi * index / 1000
        assert (x, y) == pytest.approx((0.3 * math.cos(angle), 0.3 * math.sin(angle)), abs=1e-15)
        assert math.hypot(x, y) == pytest.approx(RADIUS, rel=1e-14)


def test_pairs_are_points_499_apart() -> None:
    points, (pairs, following) = circle_points(), circle_pairs()
    assert pairs.shape == following.shape == (499, 2, 2)
    assert len(pairs) == PAIRS
    for index in range(499):
        assert torch.equal(pairs[index], torch.stack((points[index], points[index + 499])))
        assert torch.equal(following[index], torch.stack((points[index + 1], points[index + 500])))
    # Each first point is on the upper arc, each second one on the lower but for the very first.
    assert (pairs[:, 0, 1] >= 0).all()
    assert (pairs[1:, 1, 1] <= 1e-15).all()


def test_a_pair_is_all_but_a_diameter_and_a_step_is_a_chord() -> None:
    pairs, following = circle_pairs()
    apart = (pairs[:, 0] - pairs[:, 1]).norm(dim=-1)
    # A chord of the angle 2π·499/1000.
    assert apart.tolist() == pytest.approx([0.6 * math.sin(0.499 * math.pi)] * 499, rel=1e-12)
    moved = (following - pairs).norm(dim=-1).flatten()
    assert moved.tolist() == pytest.approx([STEP] * 998, rel=1e-11)
    # Hardly shorter than its arc.
    assert pytest.approx(0.3 * 2 * math.pi / 1000, rel=1e-5) == STEP


@pytest.mark.parametrize("count", [1, 2, 16, 499])
def test_starting_pairs_spread_from_the_first_to_the_last(count: int) -> None:
    starts, (pairs, _) = starting_pairs(count), circle_pairs()
    assert len({tuple(start.flatten().tolist()) for start in starts}) == count
    assert torch.equal(starts[0], pairs[0])
    if count > 1:
        assert torch.equal(starts[-1], pairs[-1])


@pytest.mark.parametrize("count", [-1, 0, 500])
def test_there_are_499_pairs_to_start_from(count: int) -> None:
    with pytest.raises(BlockError, match=f"expected 1 to 499 starting pairs.*found {count}"):
        starting_pairs(count)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_what_is_on_in_each_variant(design: Design, variant: Variant) -> None:
    network = CircleNetwork(design, variant)
    block = network.block.config
    assert (block.width, block.heads, block.depth) == (32, 2, 1)
    assert not block.attention_skip
    assert block.mlp == (variant in ("mlp", "both"))
    assert block.mlp_skip
    assert network.outer_skip == (variant in ("skip", "both"))
    assert block.bias == (design == "bert")


@pytest.mark.parametrize("design", DESIGNS)
def test_the_outer_skip_adds_the_input(design: Design) -> None:
    pairs = starting_pairs(3).float()
    for plain, skipped in (("attention", "skip"), ("mlp", "both")):
        without = CircleNetwork(design, plain, seed=2)  # type: ignore[arg-type]
        with_skip = CircleNetwork(design, skipped, seed=2)  # type: ignore[arg-type]
        assert torch.equal(with_skip(pairs), pairs + without(pairs))


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_positions_are_not_told_apart(design: Design, variant: Variant) -> None:
    """Swapped points have swapped successors, and equal points equal ones: they never part."""
    network, pairs = CircleNetwork(design, variant).double(), starting_pairs(3)
    assert torch.allclose(network(pairs.flip(1)), network(pairs).flip(1), atol=1e-14)
    same = pairs[:, :1].expand(-1, 2, -1)
    first, second = network(same).unbind(1)
    assert torch.allclose(first, second, rtol=0, atol=1e-14)


def test_one_step_error_of_a_network_that_stays() -> None:
    network = CircleNetwork("bert", "skip")
    torch.nn.init.zeros_(network.head.weight)
    mse, distance = one_step_error(network)
    assert distance == pytest.approx(STEP, rel=1e-5)
    # Of two coordinates.
    assert mse == pytest.approx(STEP**2 / 2, rel=1e-5)


def test_self_attention_shares_of_equal_keys_are_one_half() -> None:
    network = CircleNetwork("bert", "attention")
    assert network.block.attention is not None
    torch.nn.init.zeros_(network.block.attention.key.weight)
    assert self_attention_shares(network) == [0.5, 0.5]


def test_seeds_draw_and_variants_share() -> None:
    first, again = (CircleNetwork("bert", "attention", seed=1) for _ in range(2))
    other = CircleNetwork("bert", "attention", seed=2)
    skip = CircleNetwork("bert", "skip", seed=1)
    for name, weight in first.state_dict().items():
        assert torch.equal(weight, again.state_dict()[name])
        assert torch.equal(weight, skip.state_dict()[name])
    assert not torch.equal(first.embedding.weight, other.embedding.weight)
    assert not torch.equal(first.head.weight, other.head.weight)


def test_unknown_names_and_shapes() -> None:
    with pytest.raises(BlockError, match=r"unknown variant 'atention'.*attention"):
        CircleNetwork("bert", "atention")  # type: ignore[arg-type]
    with pytest.raises(BlockError, match="unknown design 'brt'"):
        CircleNetwork("brt", "skip")  # type: ignore[arg-type]
    with pytest.raises(BlockError, match=r"pairs of points.*\(2, 2\)"):
        CircleNetwork("bert", "skip")(torch.zeros(2, 2))


_SHORT = Recipe(Settings(3e-3, batch_size=100, epochs=3, clip=1e9), initialisation="xavier")


def trained(seeds: tuple[int, ...], variant: Variant = "attention") -> list[CircleNetwork]:
    networks = [CircleNetwork("bert", variant, seed=seed) for seed in seeds]
    train_together(networks, _SHORT, seeds=seeds)
    return networks


def test_same_seeds_same_weights() -> None:
    for one, two in zip(trained((0, 1)), trained((0, 1)), strict=True):
        for name, weight in one.state_dict().items():
            assert torch.equal(weight, two.state_dict()[name]), name


def test_networks_side_by_side_learn_as_if_alone() -> None:
    """What they predict, not each weight: of the keys' bias, which a softmax does not feel, the
    gradient is rounding, and Adam makes steps of it."""
    together, alone = trained((0, 1, 2)), trained((0,))
    pairs = circle_pairs()[0].float()
    with torch.no_grad():
        wanted = alone[0](pairs)
        # A tenth of what three epochs leave of the error; another seed is off by more than that.
        assert torch.allclose(together[0](pairs), wanted, rtol=0, atol=1e-3)
        assert not torch.allclose(together[1](pairs), wanted, rtol=0, atol=1e-3)


def test_training_brings_the_error_down_and_leaves_float16_weights() -> None:
    before = one_step_error(CircleNetwork("bert", "both", seed=0))[1]
    network = trained((0,), "both")[0]
    assert one_step_error(network)[1] < before / 2
    assert not network.training
    for weight in network.parameters():
        assert torch.equal(weight, weight.half().float())


def test_one_command_trains_writes_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(dict_of_recipes(), "authors", _SHORT)
    folder, drawn = tmp_path / "new", tmp_path / "circle.svg"
    command = ["circle", "--design", "modern", "--training", "authors", "--seed", "7"]
    assert main([*command, "--to", str(folder), "--picture", str(drawn)]) == 0
    file = folder / "circle-authors-modern.safetensors"
    assert said_of(file) == ("modern", "authors")
    assert list(load_circle(file, design="modern", variant="mlp")) == [7, 8, 9, 10]
    assert drawn.read_text(encoding="utf-8").startswith("<svg")
    said = capsys.readouterr().out
    assert str(file) in said
    for variant in VARIANTS:
        assert f"  {variant}: the next point is missed by" in said


def dict_of_recipes() -> dict[Any, Any]:
    assert isinstance(RECIPES, dict)
    return RECIPES


def a_fit(design: Design = "bert") -> CircleFit:
    networks = {
        variant: {
            seed: CircleNetwork(design, variant, seed=seed, initialisation="bert").eval()
            for seed in (4, 9)
        }
        for variant in VARIANTS
    }
    return CircleFit(design, "authors", networks, {variant: [0.1, 0.2] for variant in VARIANTS})


@pytest.mark.parametrize("design", DESIGNS)
def test_saved_and_read_again(tmp_path: Path, design: Design) -> None:
    fit, file = a_fit(design), tmp_path / "circle.safetensors"
    fit.save(file)
    assert said_of(file) == (design, "authors")
    for variant in VARIANTS:
        read = load_circle(file, design=design, variant=variant)
        assert list(read) == [4, 9]
        for seed, network in read.items():
            assert not network.training
            for name, weight in fit.networks[variant][seed].state_dict().items():
                assert torch.equal(network.state_dict()[name], weight.half().float())


def test_files_of_something_else(tmp_path: Path) -> None:
    file = tmp_path / "circle.safetensors"
    with pytest.raises(MissingError, match="no such file"):
        load_circle(file, design="bert", variant="skip")
    a_fit().save(file)
    with pytest.raises(SourceError, match=r'expected design = "modern", found "bert"'):
        load_circle(file, design="modern", variant="skip")


def test_a_file_that_lacks_a_network(tmp_path: Path) -> None:
    file, fit = tmp_path / "circle.safetensors", a_fit()
    left = {**fit.networks, "skip": {4: fit.networks["skip"][4]}}
    CircleFit(fit.design, fit.training, left, fit.errors).save(file)
    with pytest.raises(SourceError, match=r"expected embedding\.weight, found none"):
        load_circle(file, design="bert", variant="skip")


def test_the_trainings_are_what_they_are_said_to_be() -> None:
    authors = RECIPES["authors"].settings
    assert (authors.learning_rate, authors.batch_size, authors.epochs) == (1e-5, 30, 70)
    assert authors.rate(0, 1190) == authors.rate(1189, 1190) == 1e-5
    assert circle_block("bert", "mlp", attention_skip=True).attention_skip
