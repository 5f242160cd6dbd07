"""What counts as the same number, and how a change is told."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from isotest.baselines import changes, reproduces
from isotest.estimate import Estimate
from isotest.statistics.registry import METRICS
from tests.baselines.cases import conditions, layer, profile

if TYPE_CHECKING:
    from isotest.profile import Profile

ABSOLUTE = sorted(metric.name for metric in METRICS.values() if metric.floor_scale is None)
RELATIVE = sorted(metric.name for metric in METRICS.values() if metric.floor_scale == metric.name)


def of(metric: str, *values: float | None) -> Profile:
    """One layer a value of one metric."""
    return profile(
        layers=tuple(
            layer(
                str(number),
                0.1,
                estimates={
                    metric: Estimate(None, undefined="nothing there")
                    if value is None
                    else Estimate(value, 0.001, (value, value))
                },
            )
            for number, value in enumerate(values)
        )
    )


def test_a_measurement_reproduces_itself() -> None:
    assert reproduces(profile(), profile()) == []
    assert changes(profile(), profile()) == []


def test_there_are_floors_of_both_kinds() -> None:
    assert ABSOLUTE
    assert RELATIVE
    assert all(metric.floor > 0 for metric in METRICS.values())


@pytest.mark.parametrize("metric", ABSOLUTE)
def test_an_absolute_floor_is_the_line(metric: str) -> None:
    floor = METRICS[metric].floor
    assert reproduces(of(metric, 0.25), of(metric, 0.25 + 0.9 * floor)) == []
    (line,) = reproduces(of(metric, 0.25, 0.5), of(metric, 0.25, 0.5 - 1.1 * floor))
    assert line.startswith(f"{metric} at layer 1: first 0.5")


@pytest.mark.parametrize("metric", RELATIVE)
@pytest.mark.parametrize("scale", [1e-6, 1.0, -1e6])
def test_a_relative_floor_scales_with_the_value(metric: str, scale: float) -> None:
    floor = METRICS[metric].floor
    assert reproduces(of(metric, scale), of(metric, scale * (1 + 0.9 * floor))) == []
    assert len(reproduces(of(metric, scale), of(metric, scale * (1 + 1.1 * floor)))) == 1


@pytest.mark.parametrize("metric", ["norm_std", "drift_norm"])
def test_what_rounds_with_the_lengths_has_their_floor(metric: str) -> None:
    def of_lengths(value: float) -> Profile:
        estimates = {
            name: Estimate(number, 0.001, (number, number))
            for name, number in (("mean_norm", 10.0), (metric, value))
        }
        return profile(layers=(layer("0", 0.1, estimates=estimates),))

    # A layer norm makes all lengths equal: their spread is rounding of the lengths themselves.
    floor = 10.0 * METRICS[metric].floor
    assert reproduces(of_lengths(1e-7), of_lengths(0.9 * floor)) == []
    assert len(reproduces(of_lengths(1e-7), of_lengths(1.1 * floor))) == 1


def test_an_unknown_metric_must_be_the_very_same() -> None:
    assert reproduces(of("mine", 0.5), of("mine", 0.5)) == []
    assert len(reproduces(of("mine", 0.5), of("mine", math.nextafter(0.5, 1)))) == 1


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("metric", [ABSOLUTE[0], RELATIVE[0], "mine"])
def test_what_is_not_finite_never_reproduces(value: float, metric: str) -> None:
    assert len(reproduces(of(metric, 0.5), of(metric, value))) == 1
    assert len(reproduces(of(metric, value), of(metric, 0.5))) == 1


def test_what_is_missing_or_undefined_on_one_side_does_not_reproduce() -> None:
    one, other = of("anisotropy", 0.5), of("anisotropy", None)
    assert reproduces(one, other) == [
        "anisotropy at layer 0: first 0.5, then undefined (nothing there)"
    ]
    assert len(reproduces(other, one)) == 1
    assert reproduces(other, other) == []
    assert reproduces(one, of("mine", 0.5)) == [
        "anisotropy at layer 0: first 0.5, then not measured",
        "mine at layer 0: first not measured, then 0.5",
    ]
    dropped = reproduces(of("anisotropy", 0.5, 0.5), one)
    assert "anisotropy at layer 1: first 0.5, then not measured" in dropped
    assert "layers: the second lacks 1, which the first has" in dropped


def test_other_conditions_do_not_reproduce() -> None:
    (line,) = reproduces(profile(), conditions(profile(), data="0" * 64))
    assert line.startswith("data: ")
    assert reproduces(profile(), conditions(profile(), created="later", device="cuda")) == []


def test_a_change_is_told_from_old_to_new() -> None:
    old = profile({"0": 0.05, "1": 0.113, "final": 0.21})
    new = profile({"0": 0.05, "1": 0.621, "final": 0.21})
    assert changes(new, old) == [
        "anisotropy at layer 1: 0.113 → 0.621",
        "1 of 6 values change, 1 of them by more than rounding, in 1 metrics",
    ]


def both(*pairs: tuple[float, float]) -> Profile:
    """Layers with two metrics."""
    return profile(
        layers=tuple(
            layer(
                str(number),
                0.1,
                estimates={
                    "anisotropy": Estimate(one, 0.001, (one, one)),
                    "mean_norm": Estimate(other, 1.0, (other, other)),
                },
            )
            for number, (one, other) in enumerate(pairs)
        )
    )


def test_the_largest_change_of_each_metric_is_told_and_all_are_counted() -> None:
    old = both((0.1, 50.0), (0.1, 50.0), (0.1, 50.0))
    new = both((0.11, 50.0), (0.12, 53.0), (0.115, 52.0))
    # 20 error bars of anisotropy come before 3 of the norm.
    assert changes(new, old) == [
        "anisotropy at layer 1: 0.1 → 0.12",
        "mean_norm at layer 1: 50 → 53",
        "5 of 6 values change, 5 of them by more than rounding, in 2 metrics",
    ]


def test_a_value_that_disappears_comes_before_any_other() -> None:
    lines = changes(of("anisotropy", 0.9, None), of("anisotropy", 0.1, 0.5))
    assert lines[0] == "anisotropy at layer 1: 0.5 → undefined (nothing there)"


def test_rounding_is_only_counted() -> None:
    assert changes(of("anisotropy", 0.3333333334), of("anisotropy", 0.3333333333)) == [
        "1 of 1 values change, 0 of them by more than rounding, in 0 metrics"
    ]


def test_a_change_too_small_for_four_digits_is_shown_in_full() -> None:
    lines = changes(of("mine", 0.3333333334), of("mine", 0.3333333333))
    assert lines[0] == "mine at layer 0: 0.3333333333 → 0.3333333334"


def test_changed_conditions_are_told_before_values() -> None:
    new = conditions(profile({"0": 0.1, "1": 0.113, "final": 0.21}), data="0" * 64, device="cuda")
    lines = changes(new, profile())
    assert lines[:2] == [
        "data: the old baseline saw 5 samples 3f2a00000000…, the new one 5 samples 000000000000…",
        "device: the old baseline has 'cpu', the new one 'cuda'",
    ]
