"""A real-size ViT under the shipped suite's own checks: faults are red, accidents are green."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from isotest.errors import NonFiniteError
from isotest.gate.checks import MetricCheck, Regression
from isotest.gate.diagnosis import diagnose
from isotest.gate.verdict import Outcome
from isotest.models.architecture import weights_fingerprint
from tests.real.vit import RealVit, open_vit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torch import Tensor

    from isotest.data.dataset import Dataset, Sample
    from isotest.gate.checks import Check
    from isotest.gate.verdict import Verdict
    from isotest.profile import Profile


@pytest.fixture(scope="module")
def vit() -> Iterator[RealVit]:
    """Shared by all tests, each of which takes back what it planted."""
    opened = open_vit()
    before = weights_fingerprint(opened.loaded.module)
    yield opened
    assert weights_fingerprint(opened.loaded.module) == before
    assert not any(module._forward_hooks for module in opened.loaded.module.modules())


@pytest.fixture(scope="module")
def healthy(vit: RealVit) -> Profile:
    """The baseline of this file: measured here, before any fault."""
    return vit.measure()


def regressions(
    checks: Mapping[str, Check], regression: Regression | None = None
) -> dict[str, Check]:
    """The comparisons with the baseline alone; with ``regression``, at that margin instead."""
    return {
        name: MetricCheck(baseline=regression or check.baseline)
        for name, check in checks.items()
        if isinstance(check, MetricCheck) and check.baseline is not None
    }


def assert_failed(verdict: Verdict, first: str, *texts: str) -> None:
    assert verdict.outcome is Outcome.FAILED, verdict.message
    assert verdict.layers[0] == first, verdict.message
    for text in texts:
        assert text in verdict.message, verdict.message


def assert_green(verdicts: Mapping[str, Verdict]) -> None:
    assert len(verdicts) == 7
    for verdict in verdicts.values():
        assert verdict.outcome is Outcome.PASSED, verdict.message


def share(verdict: Verdict, cause: str) -> float:
    """The share of the change that the message gives a cause; it has to be the first named."""
    found = re.search(rf"^  cause +{cause} (\d+)%", verdict.message, re.MULTILINE)
    assert found is not None, verdict.message
    return int(found[1]) / 100


# --- red, under the suite's own margins ---


def test_a_common_vector_after_block_6_is_a_drift(vit: RealVit, healthy: Profile) -> None:
    """As long as the representations themselves: mean cosines of c become about (1 + c) / 2."""

    def add(x: Tensor) -> Tensor:
        v = torch.randn(x.shape[-1], generator=torch.Generator().manual_seed(0))
        v *= torch.linalg.vector_norm(x, dim=-1).mean() / torch.linalg.vector_norm(v)
        return x + v

    with vit.rewritten("6", add):
        profile = vit.measure()
    verdicts = vit.verdicts(profile, healthy)
    assert_failed(verdicts["anisotropy"], "6", "rose at layer 6", "no earlier layer moved")
    assert share(verdicts["anisotropy"], "drift") > 0.9
    before, after = healthy.curve("anisotropy")[6], profile.curve("anisotropy")[6]
    assert before is not None
    assert after == pytest.approx((1 + before) / 2, abs=0.02)


def test_the_mean_over_the_sequence_is_a_collapse_within_it(vit: RealVit, healthy: Profile) -> None:
    with vit.rewritten("12", lambda x: x.mean(dim=1, keepdim=True).expand_as(x)):
        profile = vit.measure()
    verdicts = vit.verdicts(profile, healthy)
    for name in ("intra_similarity", "rank_residual"):
        assert_failed(verdicts[name], "12", "within-sequence collapse")
        assert verdicts[name].layers == ("12", "final")
    assert share(verdicts["intra_similarity"], "within-sequence collapse") > 0.5
    assert "is 1.00000 at layer 12, above max = 0.98" in verdicts["intra_similarity"].headline
    assert "is 0.000 at layer 12, below min = 0.05" in verdicts["rank_residual"].headline
    assert "fell at layer 12" in verdicts["rank_residual"].message


def test_any_dimension_times_50_after_block_6_is_a_massive_activation(
    vit: RealVit, healthy: Profile
) -> None:
    """Of 768 like ones, the largest of a sequence grows by up to 50, and its median stays."""
    with vit.rewritten("6", lambda x: scaled(x, 0)):
        profile = vit.measure()
    verdict = vit.verdicts(profile, healthy)["massive_ratio"]
    assert_failed(verdict, "6", "rose at layer 6", "no earlier layer moved")
    assert float(verdict.properties["value"]) < 50 * float(verdict.properties["baseline"])


def test_the_most_common_dimension_times_50_takes_over_the_cosines(
    vit: RealVit, healthy: Profile
) -> None:
    """A rogue dimension: the one that representations share most, now larger than all others.

    Fifteen images cannot tell whether anisotropy itself left its margin of 0.15 (+0.10 ± 0.11), so
    that check is red as inconclusive; its cause is read from the profiles.
    """
    common: list[int] = []

    def scale(x: Tensor) -> Tensor:
        if not common:
            mean = torch.nn.functional.normalize(x, dim=-1).mean(dim=(0, 1))
            common.append(int(mean.abs().argmax()))
        return scaled(x, common[0])

    with vit.rewritten("6", scale):
        profile = vit.measure()
    verdicts = vit.verdicts(profile, healthy)
    assert_failed(verdicts["dimension_share"], "6", "above max = 0.5")
    assert verdicts["anisotropy"].outcome is not Outcome.PASSED
    found = diagnose("anisotropy", profile, healthy, "6")
    assert found is not None
    assert found.causes[0].name == "1 rogue dimension"
    assert found.causes[0].share > 0.9


def scaled(x: Tensor, dimension: int) -> Tensor:
    x = x.clone()
    x[..., dimension] *= 50
    return x


def test_a_dropped_layer_is_not_compared_and_not_green(vit: RealVit, healthy: Profile) -> None:
    """Without block 7 the later ones move up, so what is lacking is a twelfth."""
    with vit.without_block(7):
        profile = vit.measure()
    verdicts = vit.verdicts(profile, healthy)
    for name in ("anisotropy", "intra_similarity", "rank_residual", "massive_ratio"):
        assert verdicts[name].outcome is Outcome.INCONCLUSIVE
        assert not verdicts[name].allowed
        assert "not comparable: layers: this run lacks 12" in verdicts[name].headline
    assert verdicts["drift_correlation"].outcome is Outcome.INCONCLUSIVE


def test_one_nan_names_model_layer_and_batch(vit: RealVit) -> None:
    batches = 0

    def break_second(x: Tensor) -> Tensor:
        nonlocal batches
        batches += 1
        x = x.clone()
        if batches == 2:
            x[-1, -1, -1] = float("nan")
        return x

    with vit.rewritten("7", break_second), pytest.raises(NonFiniteError) as caught:
        vit.measure(batch_size=3)
    assert "'vit-base-untrained', layer 7 (layers.6), batch 1 (" in str(caught.value)


# --- green: what a machine or a library may change ---


def test_weights_perturbed_by_1e_7_are_green(vit: RealVit, healthy: Profile) -> None:
    with vit.perturbed(1e-7):
        profile = vit.measure()
    assert profile.layers[3].estimates != healthy.layers[3].estimates  # it did do something
    assert_green(vit.verdicts(profile, healthy))
    # No accident of rounding is a change, even for who tolerates none.
    strict = vit.verdicts(profile, healthy, regressions(vit.checks, Regression(worse="both")))
    assert {verdict.outcome for verdict in strict.values()} == {Outcome.PASSED}


def test_another_batch_size_is_green(vit: RealVit, healthy: Profile) -> None:
    profile = vit.measure(batch_size=4)
    assert_green(vit.verdicts(profile, healthy))
    assert_same_curves(profile, healthy)


def test_another_number_of_threads_is_green(vit: RealVit, healthy: Profile) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if threads > 1 else 2)
    try:
        profile = vit.measure()
    finally:
        torch.set_num_threads(threads)
    assert_green(vit.verdicts(profile, healthy))
    assert_same_curves(profile, healthy)


@dataclass
class Shuffled:
    """The same samples, delivered in another order, so that other ones share a batch."""

    whole: Dataset

    def __iter__(self) -> Iterator[Sample]:
        samples = list(self.whole)
        return (samples[i] for i in np.random.default_rng(0).permutation(len(samples)))

    def __len__(self) -> int:
        return len(self.whole)

    @property
    def grouped(self) -> bool:
        return self.whole.grouped

    def describe(self) -> Mapping[str, str | int | None]:
        return self.whole.describe()


def test_samples_in_another_order_are_green(vit: RealVit, healthy: Profile) -> None:
    profile = vit.measure(batch_size=5, data=Shuffled(vit.data))
    assert_green(vit.verdicts(profile, healthy))
    assert_same_curves(profile, healthy)


def assert_same_curves(profile: Profile, healthy: Profile) -> None:
    """Up to the rounding of float32 forward passes whose sums are split in another way."""
    for metric in healthy.layers[0].estimates:
        assert profile.curve(metric) == pytest.approx(healthy.curve(metric), rel=1e-4, abs=1e-6)


# --- red at a zero margin, green within the suite's ---


@pytest.mark.parametrize("change", ["weights perturbed by 3 %", "blocks 4 and 9 swapped"])
def test_small_changes_are_seen_and_accepted(vit: RealVit, healthy: Profile, change: str) -> None:
    """An untrained network has no order of blocks to lose: what moves is little, but not nothing.

    Fifteen images cannot tell for every curve whether its small change is beyond the floor; then a
    check at a zero margin is inconclusive, which is red too.
    """
    altered = vit.perturbed(0.03) if change.startswith("weights") else vit.swapped(4, 9)
    with altered:
        profile = vit.measure()
    verdicts = vit.verdicts(profile, healthy)
    assert_green(verdicts)
    for name in regressions(vit.checks):
        properties = verdicts[name].properties
        assert float(properties["margin_needed"]) < float(properties["margin"])
        assert properties["values"] != properties["baseline_values"]
        assert "within its margin; nearest to it is layer" in verdicts[name].message
    strict = vit.verdicts(profile, healthy, regressions(vit.checks, Regression(worse="both")))
    assert Outcome.PASSED not in {verdict.outcome for verdict in strict.values()}
    failed = [verdict for verdict in strict.values() if verdict.outcome is Outcome.FAILED]
    assert failed
    first_changed = 0 if change.startswith("weights") else 4
    for verdict in failed:
        assert int(verdict.layers[0]) >= first_changed
        assert re.search(r"[+-][\d.]+ ± [\d.]+, [\d.]+ times its own error bar", verdict.message)
        assert "would have passed" in verdict.message
