"""MANTa-LM decides how many blocks a text has: other weights, other numbers, the same protocol."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from isotest.comparability import comparable
from isotest.gate.checks import MetricCheck, Regression
from isotest.gate.verdict import Outcome
from isotest.measurement import measure
from tests.models.text.families import FAMILIES

from .profiles import judge

if TYPE_CHECKING:
    from isotest.profile import Profile

TEXTS = [f"{'again and ' * (number % 4)}now for number {number * number}" for number in range(12)]


@cache
def manta(seed: int) -> Profile:
    return measure(
        f"init:manta?seed={seed}",
        TEXTS,
        modality="text",
        config=FAMILIES["manta"].config,
        packing="documents",
        length=48,
    )


def counts(profile: Profile) -> list[int]:
    return [layer.representations for layer in profile.layers]


def test_other_numbers_of_blocks_are_comparable() -> None:
    one, other = manta(0), manta(1)
    assert counts(one) != counts(other)
    assert comparable(other, one) == []


def test_they_are_judged_both_ways() -> None:
    one, other = manta(0), manta(1)
    for margin, outcome in ((2.0, Outcome.PASSED), (1e-4, Outcome.FAILED)):
        check = MetricCheck(baseline=Regression(margin=margin, worse="both"))
        for metric in ("anisotropy", "rank_residual"):
            assert judge(other, one, check, metric).outcome is outcome


def test_only_the_layers_of_blocks_are_free() -> None:
    one = manta(0)
    free = {layer.name for layer in one.layers if one.decides_positions(layer.name)}
    assert free == {"encoder.0", "encoder.1", "encoder.2", "encoder.3", "encoder.final"}


def test_a_baseline_that_does_not_say_so_is_another_protocol() -> None:
    one = manta(0)
    bare = {key: value for key, value in one.provenance.protocol.items() if value is not True}
    old = replace(one, provenance=replace(one.provenance, protocol=bare))
    assert comparable(one, old)[0].endswith("the baseline has nothing, this run True")
