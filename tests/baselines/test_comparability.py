"""What forbids comparing two profiles is named; what doesn't is noted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from isotest.baselines import comparable, recorded_differences
from tests.baselines.cases import COMMIT, DATA, WEIGHTS, conditions, layer, profile

if TYPE_CHECKING:
    from isotest.profile import Profile

OTHER_DATA = "9c1b" + "f" * 60


def with_layers(*layers: Any) -> Profile:
    return profile(layers=layers)


def test_a_profile_is_comparable_with_itself() -> None:
    assert comparable(profile(), profile()) == []
    assert recorded_differences(profile(), profile()) == []


def test_other_values_other_weights_and_other_machines_are_comparable() -> None:
    new = conditions(
        profile({"0": 0.9, "1": 0.8, "final": 0.7}),
        weights="bb22" + "0" * 60,
        device="cuda",
        versions={"isotest": "0.2.0", "torch": "2.14.1", "numpy": "2.4"},
        created="2027-01-01T00:00:00+00:00",
    )
    assert comparable(new, profile()) == []
    assert recorded_differences(new, profile()) == [
        "weights: the baseline has aa1100000000…, this run bb2200000000…",
        "device: the baseline has 'cpu', this run 'cuda'",
        "version of isotest: the baseline has '0.1.0', this run '0.2.0'",
        "version of numpy: the baseline has nothing, this run '2.4'",
    ]


DIFFERENCES: list[tuple[Profile, str]] = [
    (profile(modality="speech"), "modality: the baseline has 'vision', this run 'speech'"),
    (
        conditions(
            profile(),
            architecture={"class": "BeitModel", "parameters": "p" * 8, "config": "c" * 8},
        ),
        "architecture, class: the baseline has 'ViTModel', this run 'BeitModel'",
    ),
    (
        conditions(profile(), architecture={"class": "ViTModel", "parameters": "p" * 8}),
        "architecture, config: the baseline has 'cccccccc', this run nothing",
    ),
    (
        conditions(
            profile(),
            protocol={"seed": 1, "dtype": "float32", "scale": 0.5, "group": None, "flip": False},
        ),
        "protocol, seed: the baseline has 0, this run 1",
    ),
    (
        conditions(
            profile(),
            protocol={"seed": 0, "dtype": "float32", "scale": 0.5, "group": "a", "flip": False},
        ),
        "protocol, group: the baseline has none, this run 'a'",
    ),
    (
        conditions(
            profile(),
            protocol={"seed": 0, "dtype": "float32", "scale": 0.5, "flip": False},
        ),
        "protocol, group: the baseline has none, this run nothing",
    ),
    (
        conditions(profile(), data=OTHER_DATA),
        "data: the baseline saw 5 samples 3f2a00000000…, this run 5 samples 9c1bffffffff…",
    ),
    (
        profile(block_sequences=(4, 1)),
        "blocks: the baseline has 2 blocks of 2 to 3 each, this run 2 blocks of 1 to 4 each",
    ),
    (profile(block_sequences=(5,)), "blocks: the baseline has 2 blocks of 2 to 3 each, this run 1"),
    (profile(units=5), "units: the baseline has 4 independent groups, this run 5"),
    (with_layers(layer("0", 0.1), layer("1", 0.2)), "layers: this run lacks final, which"),
    (
        with_layers(*(layer(name, 0.1) for name in ("0", "1", "2", "final"))),
        "layers: this run has 2, which the baseline lacks",
    ),
    (
        with_layers(*(layer(name, 0.1) for name in ("1", "0", "final"))),
        "layers: the baseline has 0, 1, final, this run 1, 0, final",
    ),
    (
        with_layers(layer("0", 0.1), layer("1", 0.1, at=16.0), layer("final", 0.1)),
        "N at layer 1: the baseline has none, this run 16",
    ),
    (
        with_layers(layer("0", 0.1), layer("1", 0.1, width=9), layer("final", 0.1)),
        "width of layer 1: the baseline has 8, this run 9",
    ),
    (
        with_layers(
            layer("0", 0.1),
            layer("1", 0.1, representations=10, block_representations=(6, 4)),
            layer("final", 0.1),
        ),
        (
            "representations at layer 1: the baseline has 20 in 2 blocks of 8 to 12 each, this run "
            "10 in 2 blocks of 4 to 6 each"
        ),
    ),
]


@pytest.mark.parametrize(("new", "message"), DIFFERENCES, ids=[text for _, text in DIFFERENCES])
def test_each_difference_is_named_alone(new: Profile, message: str) -> None:
    (found,) = comparable(new, profile())
    assert found.startswith(message)


def test_layers_that_differ_alike_share_a_line() -> None:
    """A deep model measured on fewer samples has one such line, not one a layer."""
    halved = {"representations": 10, "block_representations": (6, 4)}
    new = with_layers(*(layer(name, 0.1, **halved) for name in ("0", "1", "final")))
    assert comparable(new, profile()) == [
        (
            "representations at layers 0, 1, final: the baseline has 20 in 2 blocks of 8 to 12 "
            "each, this run 10 in 2 blocks of 4 to 6 each"
        )
    ]


def test_every_difference_is_named() -> None:
    new = conditions(profile(modality="speech", units=5), data=OTHER_DATA)
    assert [line.split(":")[0] for line in comparable(new, profile())] == [
        "modality",
        "data",
        "units",
    ]


HUB = conditions(profile(), source="hub:google/vit@main", commit=COMMIT)


def test_the_commit_binds_a_run_of_the_same_source() -> None:
    assert comparable(HUB, HUB) == []
    (moved,) = comparable(conditions(HUB, commit="0" * 40), HUB)
    assert moved == f"commit: the baseline has {COMMIT[:12]}…, this run 000000000000…"
    (lost,) = comparable(conditions(HUB, commit=None), HUB)
    assert lost == f"commit: the baseline has {COMMIT[:12]}…, this run none"


def test_the_commit_binds_another_revision_of_the_same_source() -> None:
    other = conditions(HUB, source="hub:google/vit@tuned", commit="0" * 40)
    (moved,) = comparable(other, HUB)
    assert moved.startswith("commit: ")


def test_the_commit_does_not_bind_a_stand_in() -> None:
    stand_in = conditions(profile(), source="path:out/last", weights="cc" * 32)
    assert comparable(stand_in, HUB) == []
    notes = recorded_differences(stand_in, HUB)
    assert notes[0] == "source: the baseline has 'hub:google/vit@main', this run 'path:out/last'"


def test_a_baseline_without_a_commit_insists_on_none() -> None:
    assert comparable(conditions(profile(), commit=COMMIT), profile()) == []


def test_the_names_of_suite_and_model_do_not_matter() -> None:
    assert comparable(replace(profile(), suite="other", model="other"), profile()) == []


def test_long_lists_of_layers_are_cut() -> None:
    many = profile(layers=tuple(layer(str(number), 0.1) for number in range(40)))
    none = profile(layers=(layer("x", 0.1),))
    assert "0, 1, 2, 3, 4, 5, 6, 7, … (40 in all)" in comparable(none, many)[0]


def test_digests_are_shown_short_and_words_in_full() -> None:
    assert len(DATA) == len(WEIGHTS) == 64
    (line,) = comparable(conditions(profile(), data="sha256:" + "1" * 64), profile())
    assert line.endswith("this run 5 samples 111111111111…")
