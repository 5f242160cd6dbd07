"""What is planted does what it says, grows with its strength, and goes without a trace."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import pytest

from isotest.data.load import open_data
from isotest.errors import NonFiniteError
from isotest.faults import FAULTS, Fault
from isotest.measurement import measure_loaded
from isotest.models.architecture import weights_fingerprint
from isotest.models.load import load_model
from isotest.selftest import STRENGTHS
from isotest.statistics.registry import default_metrics

if TYPE_CHECKING:
    from isotest.data.dataset import Dataset
    from isotest.models.loaded import LoadedModel
    from isotest.profile import Profile

BY_NAME = {fault.name: fault for fault in FAULTS}
# The digits model has a stem, six blocks and a final norm.
MIDDLE, LAST = "4", "6"
PATCHES = 16


@pytest.fixture(scope="module")
def digits() -> tuple[LoadedModel, Dataset]:
    return load_model("sample:digits"), open_data("sample:digits?split=held-out", samples=24)


def measured(loaded: LoadedModel, dataset: Dataset) -> Profile:
    metrics = (*default_metrics(), "duplicate_share")
    return measure_loaded(loaded, dataset, source="sample:digits", model="digits", metrics=metrics)


def planted(digits: tuple[LoadedModel, Dataset], name: str, strength: float) -> Profile:
    with BY_NAME[name].plant(*digits, strength) as (loaded, dataset):
        return measured(loaded, dataset)


def at(profile: Profile, layer: str, metric: str) -> float:
    (found,) = [found for found in profile.layers if found.name == layer]
    value = found.estimates[metric].value
    assert value is not None
    return value


def test_the_middle_and_the_last_block_are_where_this_file_thinks(
    digits: tuple[LoadedModel, Dataset],
) -> None:
    names = [layer.name for layer in digits[0].layers]
    assert names == ["0", "1", "2", "3", "4", "5", "6", "final"]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault.name))
def test_is_gone_bit_for_bit_afterwards(digits: tuple[LoadedModel, Dataset], fault: Fault) -> None:
    module = digits[0].module
    weights, before = weights_fingerprint(module), measured(*digits)
    with suppress(NonFiniteError), fault.plant(*digits, 1.0) as (loaded, dataset):
        altered = measured(loaded, dataset)
        # It does something while it is there.
        assert [layer.estimates for layer in altered.layers] != [
            layer.estimates for layer in before.layers
        ]
    after = measured(*digits)
    assert after.layers == before.layers
    assert after.provenance.data == before.provenance.data
    assert weights_fingerprint(module) == weights
    assert not any(part._forward_hooks for part in module.modules())


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault.name))
def test_is_gone_after_an_error_too(digits: tuple[LoadedModel, Dataset], fault: Fault) -> None:
    with pytest.raises(KeyboardInterrupt), fault.plant(*digits, 1.0):
        raise KeyboardInterrupt
    assert not any(part._forward_hooks for part in digits[0].module.modules())


@pytest.mark.parametrize(
    ("name", "layer", "metric", "sign"),
    [
        ("common direction", MIDDLE, "anisotropy", 1),
        ("collapsed rank", LAST, "anisotropy", 1),
        ("rogue dimension", MIDDLE, "dimension_share", 1),
        ("sequence mean", LAST, "rank_residual", -1),
        ("duplicated rows", LAST, "duplicate_share", 1),
    ],
)
def test_grows_with_its_strength_from_the_layer_on_that_it_is_in(
    digits: tuple[LoadedModel, Dataset], name: str, layer: str, metric: str, sign: int
) -> None:
    """From 1/4 on: a weaker one may first cancel a mean that happens to point the other way."""
    before = measured(*digits)
    profiles = [before, *(planted(digits, name, strength) for strength in (0.25, 0.5, 1.0))]
    curve = np.array([sign * at(profile, layer, metric) for profile in profiles])
    assert (np.diff(curve) > 0.01).all()
    earlier = [found.name for found in before.layers].index(layer)
    for profile in profiles[1:]:
        assert profile.layers[:earlier] == before.layers[:earlier]
    assert profiles[-1].layers[earlier + 1] != before.layers[earlier + 1]


def test_a_full_common_direction_halves_the_angle(digits: tuple[LoadedModel, Dataset]) -> None:
    """v as long as the representations, uncorrelated: mean cosines of c become (c + 1) / 2."""
    before = at(measured(*digits), MIDDLE, "anisotropy")
    after = at(planted(digits, "common direction", 1.0), MIDDLE, "anisotropy")
    assert after == pytest.approx((1 + before) / 2, abs=0.05)


def test_a_full_collapse_is_of_rank_one_and_keeps_the_lengths(
    digits: tuple[LoadedModel, Dataset],
) -> None:
    before, after = measured(*digits), planted(digits, "collapsed rank", 1.0)
    assert at(after, LAST, "anisotropy") == pytest.approx(1, abs=1e-5)
    for metric in ("mean_norm", "norm_std"):
        assert at(after, LAST, metric) == pytest.approx(at(before, LAST, metric), rel=1e-4)


def test_a_full_mean_leaves_nothing_within_a_sequence(
    digits: tuple[LoadedModel, Dataset],
) -> None:
    after = planted(digits, "sequence mean", 1.0)
    assert at(after, LAST, "rank_residual") == pytest.approx(0, abs=1e-5)
    assert at(after, LAST, "intra_similarity") == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.25])
def test_the_share_of_copies_is_the_strength(
    digits: tuple[LoadedModel, Dataset], share: float
) -> None:
    """Of 16 patches and one special token, 17 in all; a copied one makes all but itself copies."""
    after = planted(digits, "duplicated rows", share)
    assert at(after, LAST, "duplicate_share") == pytest.approx(share, abs=2 / PATCHES)


def test_a_rogue_dimension_has_the_length_that_was_added(
    digits: tuple[LoadedModel, Dataset],
) -> None:
    """‖x + s‖x‖e₀‖² = ‖x‖²(1 + s²) + 2s‖x‖x₀, and x₀ is as often above zero as below."""
    before = at(measured(*digits), MIDDLE, "mean_norm")
    after = at(planted(digits, "rogue dimension", 1.0), MIDDLE, "mean_norm")
    assert after == pytest.approx(2**0.5 * before, rel=0.2)


def test_a_saturated_head_attends_to_fewer_keys(digits: tuple[LoadedModel, Dataset]) -> None:
    """One head of four, at the middle block only: what earlier ones attend to stays."""
    metrics = ["attention_entropy_lowest", "attention_row_max", "attention_query_norm"]

    def measured(loaded: LoadedModel, dataset: Dataset) -> Profile:
        return measure_loaded(
            loaded, dataset, source="sample:digits", model="digits", metrics=metrics
        )

    fault = BY_NAME["saturated head"]
    before = measured(*digits)
    assert fault.inapplicable(digits[0], before) is None
    profiles = [before]
    for strength in (0.25, 0.5, 1.0):
        with fault.plant(*digits, strength) as (loaded, dataset):
            profiles.append(measured(loaded, dataset))
    curves = {name: [at(profile, MIDDLE, name) for profile in profiles] for name in metrics}
    assert (np.diff(curves["attention_entropy_lowest"]) < 0).all()
    assert (np.diff(curves["attention_row_max"]) > 0).all()
    assert curves["attention_entropy_lowest"][-1] < 0.1
    for profile in profiles:
        assert profile.layers[: int(MIDDLE)] == before.layers[: int(MIDDLE)]
    # Without a check on it nothing would see it.
    unseen = measure_loaded(*digits, source="sample:digits", model="digits")
    reason = fault.inapplicable(digits[0], unseen)
    assert reason is not None
    assert "attention is not measured" in reason


def test_every_strength_says_what_it_does() -> None:
    for fault in FAULTS:
        assert ("{s}" in fault.meaning) is fault.graded
        assert "1/8" in fault.at(0.125) or not fault.graded
    assert STRENGTHS[0] == 1.0


def test_a_flattened_map_has_nothing_within_a_sequence() -> None:
    """One image, one representation at each layer, as in the suite of convolutional networks."""
    small = {"embedding_size": 8, "hidden_sizes": [8, 8], "depths": [1, 1], "num_labels": 2}
    loaded = load_model("init:resnet", config=small)
    dataset = open_data("sample:digits?split=held-out", samples=3)
    flattened = measured(loaded, dataset)
    positions = measure_loaded(
        loaded, dataset, source="init:resnet", model="resnet", representation="positions"
    )
    for fault in FAULTS:
        if fault.name == "saturated head":
            continue
        within = fault.name in ("sequence mean", "duplicated rows")
        assert (fault.inapplicable(loaded, flattened) is not None) is within
        assert fault.inapplicable(loaded, positions) is None
