"""What the networks of the circle that come with isotest do: the numbers of docs/tasks.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from isotest.blocks.tasks import circle_training
from isotest.blocks.tasks.circle import (
    STEP,
    CircleNetwork,
    one_step_error,
    self_attention_shares,
    starting_pairs,
)
from isotest.blocks.tasks.circle_training import SEEDS, load_circle
from isotest.blocks.tasks.config import DESIGNS, Design
from isotest.blocks.tasks.identity import VARIANTS, Variant
from isotest.blocks.tasks.recurrence import measure_recurrence

FITTED = Path(circle_training.__file__).parent / "weights"
AUTHORS = Path(__file__).parents[3] / "suites" / "rank" / "circle-authors-bert.safetensors"


def fitted(design: Design, variant: Variant) -> dict[int, CircleNetwork]:
    return load_circle(FITTED / f"circle-{design}.safetensors", design=design, variant=variant)


def authors(variant: Variant) -> dict[int, CircleNetwork]:
    return load_circle(AUTHORS, design="bert", variant=variant)


def distances(networks: dict[int, CircleNetwork], step: int) -> tuple[float, ...]:
    return measure_recurrence(networks, starting_pairs(4), [step])[0].pair_distance


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_fitted_networks_predict_the_next_pair(design: Design, variant: Variant) -> None:
    """All but a few closer than the point itself, which is one step off."""
    networks = fitted(design, variant)
    assert tuple(networks) == SEEDS
    errors = [one_step_error(network)[1] / STEP for network in networks.values()]
    assert sorted(errors)[2] < 0.5, errors
    assert max(errors) < 1.5, errors


def test_as_the_authors_train_them_they_do_not() -> None:
    for variant in ("attention", "mlp"):
        errors = [one_step_error(network)[1] / STEP for network in authors(variant).values()]
        assert min(errors) > 1, errors


@pytest.mark.parametrize("variant", ["attention", "mlp"])
def test_without_a_skip_the_authors_networks_bring_all_together(variant: Variant) -> None:
    assert distances(authors(variant), 30) == (0,) * len(SEEDS)


@pytest.mark.parametrize("variant", ["skip", "both"])
def test_a_skip_keeps_all_apart(variant: Variant) -> None:
    for networks in (authors(variant), *(fitted(design, variant) for design in DESIGNS)):
        assert min(distances(networks, 100)) > 0.3


@pytest.mark.parametrize("design", DESIGNS)
def test_attention_alone_keeps_apart_where_its_heads_attend_to_different_points(
    design: Design,
) -> None:
    """One head to the point itself, the other to the other: they stay apart. Else they meet."""
    networks = fitted(design, "attention")
    kept = [distance > 0.55 for distance in distances(networks, 300)]
    different = []
    for network in networks.values():
        low, high = sorted(self_attention_shares(network))
        different.append(low < 0.1 and high > 0.9)
    assert kept == different
    assert any(kept)
    assert not all(kept)
