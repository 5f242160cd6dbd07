"""``collapse_exponent``: the false greens first, then exponents that a reader can see."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotest.errors import SuiteError
from isotest.estimate import Estimate
from isotest.gate.checks import CollapseExponentCheck
from isotest.gate.verdict import Outcome
from isotest.suite import load_suite
from isotest.wanted import wanted_metrics

from .experiments import experiment
from .profiles import BLOCKS, judge, profile

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isotest.gate.verdict import Verdict
    from isotest.profile import Profile

METRIC = "rank_residual_composite"
CUBE = CollapseExponentCheck()


def made(
    curve: Sequence[Any], dtype: str | None = "float64", metric: str = METRIC, **options: Any
) -> Profile:
    found = profile({metric: curve}, **options)
    protocol = {} if dtype is None else {"dtype": dtype}
    return replace(found, provenance=replace(found.provenance, protocol=protocol))


def judged(curve: Sequence[Any], check: CollapseExponentCheck = CUBE, **options: Any) -> Verdict:
    return judge(made(curve, **options), None, check, "collapse_exponent")


def powers(start: float, exponent: float, layers: int, factor: float = 1.0) -> list[float]:
    """r, c·r^p, …"""
    curve = [start]
    for _ in range(layers - 1):
        curve.append(factor * curve[-1] ** exponent)
    return curve


@pytest.mark.parametrize(
    ("curve", "words"),
    [
        # Growing doubly exponentially has the exponent 3, too.
        ([1.001, 1.001**3, 1.001**9], "does not fall from layer 0 to 1 in 8 of 8 blocks"),
        # One step up before one down.
        ([0.9, 0.95, 0.5], "does not fall from layer 0 to 1"),
        ([0.5, 0.5, 0.5], "does not fall from layer 0 to 1"),
        # Steps of rounding, whose ratio is 3 by chance.
        ([0.5, 0.5 - 1e-9, 0.5 - 4e-9], "does not fall"),
        # 3 on average, and never.
        (
            [10**-1, 10**-1.5, 10**-3.5, 10**-7.5],
            "over layers 1-3 is 2.000 (2.000 to 2.000), not 3 ± 0.25",
        ),
        # It begins as it should.
        ([0.1, 1e-3, 1e-9, 1e-10], "over layers 1-3 is 0.167 (0.167 to 0.167), not 3 ± 0.25"),
        # A factor for each layer, however small.
        (powers(1e-1, 1, 5, 1e-2), "over layers 0-2 is 1.000"),
        # What has collapsed cannot differ again: something else brings the differences.
        ([0.1, 1e-3, 1e-9, 1e-15, 0.1], "at the float floor, 2.3e-13, at layer 3 and above it"),
    ],
)
def test_what_does_not_collapse_doubly_exponentially_fails(curve: list[float], words: str) -> None:
    verdict = judged(curve)
    assert verdict.outcome is Outcome.FAILED
    assert words in verdict.headline


@pytest.mark.parametrize(
    ("curve", "options", "words"),
    [
        ([0.1, 1e-3], {}, "there is nothing to fit: 2 of 2 layers"),
        ([0.1], {}, "there is nothing to fit: 1 of 1 layers"),
        ([0.0, 0.0, 0.0, 0.0], {}, "nothing to fit: 0 of 4 layers"),
        ([1e-14, 1e-15, 1e-16], {}, "nothing to fit: 0 of 3 layers"),
        ([0.1, 1e-3, 1e-14, 1e-14], {}, "nothing to fit: 2 of 4 layers"),
        # In float32 the third is rounding, however well it fits.
        ([0.1, 1e-3, 1e-9], {"dtype": "float32"}, "above the float floor, 0.00012"),
        ([0.1, 1e-3, 1e-9], {"dtype": "bfloat16"}, "nothing to fit: 0 of 3 layers"),
        ([0.1, 1e-3, 1e-9], {"dtype": "none"}, "the profile's dtype is 'none'"),
        ([0.1, 1e-3, 1e-9], {"dtype": None}, "the profile's dtype is None"),
        ([0.1, 1e-3, 1e-9], {"blocks": 1}, "it takes two blocks"),
        ([0.1, 1e-3, 1e-9], {"names": ["0", "2", "4"]}, "layers that follow each other"),
        ([0.1, 1e-3, 1e-9], {"names": ["a", "b", "final"]}, "matches no numbered layer"),
        # One block collapses at once, and the exponents of the others would be 3.
        (
            [0.1, [1e-3] * 7 + [1e-15], [1e-9] * 7 + [1e-15]],
            {},
            "nothing to fit: 1 of 3 layers",
        ),
    ],
)
def test_where_there_is_nothing_to_fit_it_is_never_green(
    curve: list[Any], options: dict[str, Any], words: str
) -> None:
    verdict = judged(curve, CollapseExponentCheck(inconclusive="pass"), **options)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert words in verdict.headline
    assert not verdict.allowed


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (Estimate(math.nan), "at layer 1 is not finite: its value is nan"),
        (Estimate(1e-3, 1e-5, (1e-3, math.inf)), "is not finite: its value for block 1 is inf"),
        (Estimate(None, undefined="all have zero length"), "undefined at layer 1: all have zero"),
    ],
)
def test_a_bad_value_fails(bad: Estimate, words: str) -> None:
    verdict = judged([0.1, bad, 1e-9])
    assert verdict.outcome is Outcome.FAILED
    assert words in verdict.headline


def test_a_layer_or_metric_that_is_not_there_is_never_green() -> None:
    verdict = judged(powers(0.5, 3, 4), metric="rank_residual")
    assert verdict.outcome is Outcome.FAILED
    assert "rank_residual_composite was not measured at layer 0" in verdict.headline
    verdict = judged(powers(0.5, 3, 4), CollapseExponentCheck(layers="2-9"))
    assert verdict.outcome is Outcome.INCONCLUSIVE
    # In an experiment, the layers of a part stand along an axis, not one behind the other.
    along = experiment([0.1, 1e-3, 1e-9], [0.1, 1e-3, 1e-9], metric=METRIC)
    along = replace(along, provenance=replace(along.provenance, protocol={"dtype": "float64"}))
    verdict = judge(along, None, CUBE, "collapse_exponent")
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "stands on the axis of an experiment" in verdict.headline


@pytest.mark.parametrize("metric", ["rank_residual", METRIC])
def test_an_exponent_of_three_passes(metric: Any) -> None:
    curve = powers(0.5, 3, 4)  # 0.5, 0.125, 0.00195, 7.5e-9
    verdict = judged([*curve, 1e-16, 2e-16], CollapseExponentCheck(metric=metric), metric=metric)
    assert verdict.outcome is Outcome.PASSED
    assert verdict.compared == 2
    assert "is 3.000 to 3.000 over 2 threes of layers, within 3 ± 0.25" in verdict.headline
    assert "2.3e-13, reached at 4-5, which do not count" in verdict.message


def test_the_exponent_is_that_of_each_block_not_of_the_mean() -> None:
    """Cubed, the sequences spread: the mean of r³ is no cube of the mean of r."""
    starts = np.geomspace(0.05, 0.6, BLOCKS)
    curve = [starts, starts**3, starts**9]
    assert judged(curve).outcome is Outcome.PASSED
    means = np.log([row.mean() for row in curve])
    assert (means[2] - means[1]) / (means[1] - means[0]) < 2.75


def test_blocks_that_disagree_leave_it_open() -> None:
    start = np.full(BLOCKS, 0.1)
    exponents = np.resize([2.0, 4.0], BLOCKS)
    curve = [start, start**2, start ** (2 + exponents)]
    verdict = judged(curve)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert not verdict.allowed
    assert "these data cannot tell whether it is 3 ± 0.25" in verdict.headline
    assert judged(curve, CollapseExponentCheck(inconclusive="pass")).allowed
    # Student's t for eight blocks: 3 ± 2.365·s/√8, s = √(8/7).
    assert "3.000 (2.106 to 3.894)" in verdict.headline


def test_another_exponent_can_be_demanded_and_layers_chosen() -> None:
    linear = CollapseExponentCheck(exponent=1.0, by=0.1)
    assert judged(powers(0.9, 1, 9, 0.5), linear).outcome is Outcome.PASSED
    assert judged(powers(0.9, 3, 5), linear).outcome is Outcome.FAILED
    curve = [0.99, 0.9, *powers(0.3, 3, 3)]
    assert judged(curve).outcome is Outcome.FAILED
    assert judged(curve, CollapseExponentCheck(layers="2-4")).outcome is Outcome.PASSED


def test_each_part_of_a_model_is_judged_by_itself() -> None:
    names = [f"{part}.{k}" for part in ("encoder", "decoder") for k in range(3)]
    good, bad = [0.1, 1e-3, 1e-9], [0.1, 1e-2, 1e-3]
    assert judged([*good, *good], names=names).outcome is Outcome.PASSED
    assert "decoder.0-2" in judged([*good, *bad], names=names).headline


@given(
    st.floats(1.2, 5),
    st.floats(0.3, 1),
    st.lists(st.floats(-3, -0.1), min_size=BLOCKS, max_size=BLOCKS),
)
def test_it_finds_the_exponent_of_any_power_law(
    exponent: float, factor: float, logs: list[float]
) -> None:
    starts = np.exp(logs)
    curve = [starts]
    while len(curve) < 5:
        curve.append(factor * curve[-1] ** exponent)
    if min(curve[2]) < 1e-12:
        return
    check = CollapseExponentCheck(exponent=exponent, by=1e-3)
    assert judged(curve, check).outcome is Outcome.PASSED
    other = CollapseExponentCheck(exponent=exponent + 0.1, by=0.05)
    assert judged(curve, other).outcome is Outcome.FAILED


SUITE = """\
modality = "embeddings"
[data]
source = "embeddings:normal?length=8"
samples = 4
[[models]]
name = "net"
source = "block:san"
[checks.collapse_exponent]
"""


def test_the_check_brings_its_metric(tmp_path: Path) -> None:
    path = tmp_path / "suite.toml"
    path.write_text(SUITE)
    suite = load_suite(path)
    assert suite.checks["collapse_exponent"] == CUBE
    assert METRIC in wanted_metrics([], suite.checks)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("by = 3", "every curve that falls would do"),
        ("by = 0", "greater than 0"),
        ("by = nan", "expected a finite number"),
        ('layers = "last"', "takes three layers in a row"),
        ('layers = "3-4"', "takes three layers in a row"),
        ('layers = "some"', "expected 'any'"),
        ('metric = "anisotropy"', "rank_residual"),
        ("exponents = 3", "'exponents'"),
    ],
)
def test_a_senseless_check_is_refused_with_its_line(tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "suite.toml"
    path.write_text(f"{SUITE}{line}\n")
    with pytest.raises(SuiteError, match=rf"suite\.toml:9: .*{words}"):
        load_suite(path)
