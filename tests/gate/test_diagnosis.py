"""Diagnoses of representations whose fault is known: the cause, its share, and that shares add up.

Isotropic data of a known width are changed by one thing at a time. Shares have closed forms then:
all of it, for the one cause.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from isotest.attention_heads import AttentionHeads
from isotest.gate.diagnosis import Diagnosis, diagnose, diagnosis_document, diagnosis_lines
from isotest.gate.diagnosis.shapley import shapley
from isotest.profile import LayerProfile, Profile, Provenance
from isotest.statistics.layer import LayerStatistics
from tests.gate.profiles import accepted, profile, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Fault = Callable[[Array], Array]

S, N, D = 40, 12, 64
COSINES = ("anisotropy", "anisotropy_all", "intra_similarity", "uniformity")
LENGTHS = ("rank_residual", "drift_share")
SPECTRA = (
    "effective_rank",
    "participation_ratio",
    "nesum",
    "spectral_anisotropy",
    "isoscore",
    "isoscore_star",
)
EXPLAINED = (*COSINES, *LENGTHS, *SPECTRA, "effective_rank_uncentered", "centered_anisotropy")
SIMILAR = (
    *("anisotropy", "anisotropy_all", "intra_similarity", "centered_anisotropy"),
    *("rank_residual", "drift_share", "drift_norm", "dimension_share"),
    *("rogue_share", "rogue_dimensions", "massive", "massive_ratio"),
    *("duplicate_share", "duplicate_pairs", "duplicate_pairs_within"),
)
"""What is cheap, and enough for similarities."""
MEASURED = (*SIMILAR, "uniformity", *SPECTRA, "effective_rank_uncentered")


def measured(*layers: Array, metrics: Sequence[str] = SIMILAR, created: str = "now") -> Profile:
    """A profile whose layers have these representations, (sequences, positions, width)."""
    found = []
    for number, x in enumerate(layers):
        layer = LayerStatistics(metrics, grouped=False)
        layer.update(torch.from_numpy(x), torch.arange(len(x)))
        found.append(
            LayerProfile(
                name=str(number),
                module=f"blocks.{number}",
                width=x.shape[2],
                representations=layer.representations,
                zero_length=layer.zero_length,
                block_representations=layer.block_representations,
                estimates=layer.estimates(),
            )
        )
    provenance = Provenance("", {}, {}, "data", "weights", None, "cpu", {}, created)
    count = len(layers[0])
    return Profile("", "m", "text", count, count, (1,) * count, tuple(found), provenance)


RNG = np.random.default_rng(0)
EVEN = RNG.normal(size=(S, N, D))
# As trained models are: a common direction, sequences that differ, a dimension that stands out.
TRAINED = EVEN + 0.5 * RNG.normal(size=D) + 0.6 * RNG.normal(size=(S, 1, D)) + 1.5 * np.eye(D)[3]
LINE = RNG.normal(size=D)
LINE /= np.linalg.norm(LINE)


def common(x: Array) -> Array:
    moved: Array = x + 2.0 * np.where(LINE > 0, 1.0, -1.0)
    return moved


def rogue(dimensions: Collection[int], strength: float = 20.0) -> Fault:
    def plant(x: Array) -> Array:
        x = x.copy()
        x[..., list(dimensions)] += strength
        return x

    return plant


def constant(x: Array) -> Array:
    """Every position is the mean of its sequence, bit by bit."""
    return np.repeat(x.mean(axis=1, keepdims=True), x.shape[1], axis=1)


def nearly_constant(x: Array) -> Array:
    near: Array = 0.98 * x.mean(axis=1, keepdims=True) + 0.02 * x
    return near


def copies(x: Array) -> Array:
    """Half of all representations, anywhere, become one of them."""
    flat = x.copy().reshape(-1, x.shape[2])
    flat[np.random.default_rng(1).permutation(len(flat))[: len(flat) // 2]] = flat[0]
    return flat.reshape(x.shape)


def copies_within(x: Array) -> Array:
    """Half of the positions of every sequence become its first one."""
    x = x.copy()
    x[:, N // 2 :] = x[:, :1]
    return x


def both_ways(x: Array) -> Array:
    """±v and a little noise, about the same mean: few directions, and no common one."""
    sign = np.where(np.random.default_rng(2).random((*x.shape[:2], 1)) < 0.5, -1.0, 1.0)
    mean = x.mean(axis=(0, 1))
    line: Array = mean + 8.0 * sign * LINE + 0.1 * (x - mean)
    return line


def lopsided(x: Array) -> Array:
    """v four times in five, -v else: even about their mean most lie on one side."""
    sign = np.where(np.random.default_rng(3).random((*x.shape[:2], 1)) < 0.2, -1.0, 1.0)
    return 8.0 * sign * LINE + 0.1 * x


def three_directions(x: Array) -> Array:
    """The deviations from the mean, projected onto three directions, with the same variance."""
    mean = x.mean(axis=(0, 1))
    basis, _ = np.linalg.qr(np.random.default_rng(5).normal(size=(D, 3)))
    projected = (x - mean) @ basis @ basis.T
    found: Array = mean + projected * np.sqrt(((x - mean) ** 2).sum() / (projected**2).sum())
    return found


CASES: tuple[tuple[Fault, str, tuple[str, ...]], ...] = (
    (common, "drift", (*COSINES, *LENGTHS, "effective_rank_uncentered")),
    (rogue([7]), "1 rogue dimension", (*COSINES, *LENGTHS, "effective_rank_uncentered")),
    (rogue([7, 8, 60]), "3 rogue dimensions", (*COSINES, *LENGTHS, "effective_rank_uncentered")),
    (constant, "within-sequence collapse", ("intra_similarity", "rank_residual", *SPECTRA)),
    (nearly_constant, "within-sequence collapse", ("intra_similarity", "rank_residual", *SPECTRA)),
    (copies, "duplicated representations", (*COSINES, "participation_ratio", "isoscore")),
    (copies_within, "duplicated representations", ("intra_similarity", "rank_residual")),
    (both_ways, "spectral concentration", ("uniformity", *SPECTRA)),
    (three_directions, "spectral concentration", ("uniformity", *SPECTRA)),
)
NAMED = [(fault, cause, name) for fault, cause, names in CASES for name in names]
BASES = {"even": EVEN, "trained": TRAINED}
BASELINES = {name: measured(x, metrics=MEASURED, created="before") for name, x in BASES.items()}


@pytest.fixture(scope="module")
def profiles() -> Callable[[str, Fault], Profile]:
    """Profiles of what a fault makes of a base, each measured once."""
    found: dict[tuple[str, Fault], Profile] = {}

    def of(base: str, fault: Fault) -> Profile:
        if (base, fault) not in found:
            found[base, fault] = measured(fault(BASES[base]), metrics=MEASURED)
        return found[base, fault]

    return of


def explained(metric: str, now: Profile, before: Profile | None) -> Diagnosis:
    found = diagnose(metric, now, before, "0")
    assert found is not None
    return found


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize(("fault", "cause", "metric"), NAMED)
def test_the_planted_cause_is_named_first(
    profiles: Callable[[str, Fault], Profile], base: str, fault: Fault, cause: str, metric: str
) -> None:
    found = explained(metric, profiles(base, fault), BASELINES[base])
    assert found.causes[0].name == cause
    assert found.causes[0] in found.leading
    assert found.causes[0].share > 0.7


@pytest.mark.parametrize("metric", ["anisotropy", "intra_similarity", "rank_residual"])
@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (common, "drift"),
        (rogue([7]), "1 rogue dimension"),
        (rogue([1, 2, 3]), "3 rogue dimensions"),
    ],
)
def test_on_isotropic_data_a_pure_cause_has_the_whole_change(
    profiles: Callable[[str, Fault], Profile], fault: Fault, cause: str, metric: str
) -> None:
    found = explained(metric, profiles("even", fault), BASELINES["even"])
    assert found.causes[0].name == cause
    assert found.causes[0].share == pytest.approx(1.0, abs=0.01)
    assert all(abs(other.share) < 0.01 for other in found.causes[1:])


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("fault", [fault for fault, _, _ in CASES] + [lopsided])
def test_shares_add_up_to_the_whole(
    profiles: Callable[[str, Fault], Profile], base: str, fault: Fault
) -> None:
    """With what is not explained, exactly; on data like a trained model's little is left."""
    unseen = ("drift_share",) if fault is three_directions else SPECTRA
    for metric in EXPLAINED:
        found = diagnose(metric, profiles(base, fault), BASELINES[base], "0")
        if found is None:  # a fault of the mean, that a centred metric does not see
            assert metric in ("centered_anisotropy", *unseen)
            assert fault not in (constant, nearly_constant, copies, both_ways, lopsided)
            continue
        assert found.before is not None
        assert found.after is not None
        total = sum(cause.share for cause in found.causes) + found.unexplained
        assert total == pytest.approx(1.0, abs=1e-9)
        amounts = sum(cause.amount for cause in found.causes)
        change = found.after - found.before
        assert amounts == pytest.approx(change * (1 - found.unexplained), abs=1e-9)
        if base == "trained" and found.started:
            assert abs(found.unexplained) < 0.01, metric


def test_a_drift_and_a_rogue_dimension_share_as_their_energies_do(
    profiles: Callable[[str, Fault], Profile],
) -> None:
    """64 of drift and 400 of one dimension on 64 of noise: mean cosine (64 + 400) / 528.

    Alone they would make 1/2 and 400/464; last to come, 464/528 less these. The means of first and
    last are 0.259 and 0.620, with a share of 64·4/64 = 1 of the drift along the dimension itself.
    """
    rng = np.random.default_rng(6)
    direction = np.where(rng.random(D) < 0.5, 1.0, -1.0)
    direction[7] = 0.0
    x = EVEN + direction
    x[..., 7] += 20.0
    found = explained("anisotropy", measured(x), BASELINES["even"])
    shares = {cause.name: cause.amount for cause in found.causes}
    drift, rogue_part = 63.0, 400.0
    whole = (drift + rogue_part) / (64 + drift + rogue_part)
    first, last = rogue_part / (64 + rogue_part), whole - drift / (64 + drift)
    assert shares["1 rogue dimension"] == pytest.approx((first + last) / 2, abs=0.01)
    first, last = drift / (64 + drift), whole - rogue_part / (64 + rogue_part)
    assert shares["drift"] == pytest.approx((first + last) / 2, abs=0.01)


def test_half_of_all_rows_one_copy_explain_a_quarter_of_the_mean_cosine() -> None:
    """Of random directions half are one: (1/2)² of the pairs are copies, the others still 0."""
    found = explained("anisotropy", measured(copies(EVEN)), BASELINES["even"])
    assert found.after == pytest.approx(0.25, abs=0.02)
    assert found.causes[0].name == "duplicated representations"
    assert found.causes[0].share == pytest.approx(1.0, abs=0.01)


def test_a_lopsided_line_is_no_drift_although_its_mean_is_long(
    profiles: Callable[[str, Fault], Profile],
) -> None:
    """v at 0.8 and -v at 0.2: mean cosine 0.36, and 0.36 again about the mean (0.4 and -1.6)."""
    found = explained("anisotropy", profiles("even", lopsided), BASELINES["even"])
    assert found.causes[0].name == "spectral concentration"
    assert found.causes[0].share > 0.8
    found = explained("centered_anisotropy", profiles("even", lopsided), BASELINES["even"])
    assert found.causes[0].name == "spectral concentration"


def test_vanishing_energy_within_sequences_is_no_drift() -> None:
    """What is shared takes a larger share when the rest is gone, and has not grown for that."""
    found = explained("rank_residual", measured(nearly_constant(TRAINED)), BASELINES["trained"])
    shares = {cause.name: cause.share for cause in found.causes}
    assert shares["within-sequence collapse"] == pytest.approx(1.0, abs=0.02)
    assert abs(shares["drift"]) < 0.02
    # Mean cosines between sequences rise with it, for the same reason.
    found = explained("anisotropy", measured(nearly_constant(TRAINED)), BASELINES["trained"])
    assert found.causes[0].name == "within-sequence collapse"


def test_before_and_after_exchanged_change_the_sign_only() -> None:
    before, after = BASELINES["trained"], measured(common(TRAINED))
    there, back = explained("anisotropy", after, before), explained("anisotropy", before, after)
    forth = {cause.name: cause.amount for cause in there.causes}
    for cause in back.causes:
        assert cause.amount == pytest.approx(-forth[cause.name], abs=0.03)


def test_causes_may_offset_each_other() -> None:
    """A dimension grows and the common direction goes: shares above one and below zero."""
    drifted = common(EVEN)
    found = explained("anisotropy", measured(rogue([7], 25.0)(EVEN)), measured(drifted))
    shares = {cause.name: cause.share for cause in found.causes}
    assert shares["1 rogue dimension"] > 1.5
    assert shares["drift"] < -0.5
    assert sum(shares.values()) + found.unexplained == pytest.approx(1.0)
    text = "\n".join(line for _, line in diagnosis_lines(found))
    assert "drift -" in text


# --- where it starts ---


def test_the_first_layer_that_moved_is_named_and_those_before_it() -> None:
    rng = np.random.default_rng(8)
    layers = [EVEN + 0.3 * rng.normal(size=EVEN.shape) for _ in range(4)]
    before = measured(*layers, created="before")
    now = measured(layers[0], layers[1], common(layers[2]), common(layers[3]))
    first = diagnose("anisotropy", now, before, "2")
    assert first is not None
    assert (first.started, first.earlier) == (("2", "3"), ())
    assert first.causes[0].start == "2"
    assert diagnosis_lines(first)[-1] == (
        "starts",
        "anisotropy at layer 2, drift_share at layer 2; no layer before 2 moved",
    )
    later = diagnose("anisotropy", now, before, "3")
    assert later is not None
    assert later.earlier == ("2",)
    assert "earlier layers moved too: 2" in diagnosis_lines(later)[-1][1]


def test_nothing_planted_nothing_moved() -> None:
    """The control: rounding is no change that anything is blamed for."""
    noise = EVEN * (1 + 1e-7 * np.random.default_rng(9).normal(size=EVEN.shape))
    before, now = BASELINES["even"], measured(noise, metrics=MEASURED)
    for metric in EXPLAINED:
        found = diagnose(metric, now, before, "0")
        assert found is None or found.started == ()
    assert diagnose("anisotropy", before, before, "0") is None


# --- what was not measured, what cannot be shared out ---


def test_what_was_not_measured_is_said_and_not_called_zero() -> None:
    metrics = ("anisotropy", "drift_share")
    before, now = measured(EVEN, metrics=metrics), measured(common(EVEN), metrics=metrics)
    found = explained("anisotropy", now, before)
    assert set(found.unmeasured) == {
        "duplicated representations",
        "rogue dimensions",
        "within-sequence collapse",
        "spectral concentration",
    }
    assert {cause.name for cause in found.causes} == {"drift"}
    text = dict(reversed(diagnosis_lines(found)))["cause"]
    assert text.startswith("drift 100%")
    assert any(
        line.startswith("not measured: ") and "rogue dimensions (rogue_share" in line
        for _, line in diagnosis_lines(found)
    )


def test_without_a_count_the_largest_dimension_is_known_alone() -> None:
    metrics = ("anisotropy", "dimension_share", "intra_similarity")
    before = measured(EVEN, metrics=metrics)
    found = explained("anisotropy", measured(rogue([7])(EVEN), metrics=metrics), before)
    assert found.causes[0].name == "1 rogue dimension"
    assert found.causes[0].share > 0.99
    assert "rogue dimensions" in found.unmeasured


def test_lengths_have_no_cause_that_a_profile_shows() -> None:
    assert diagnose("mean_norm", measured(2 * EVEN), BASELINES["even"], "0") is None
    assert diagnose("anisotropy", measured(EVEN), BASELINES["even"], "no such layer") is None


def test_a_metric_that_is_no_level_is_explained_by_the_similarity_that_moved_with_it() -> None:
    now = measured(rogue([7])(EVEN))
    for metric in ("massive_ratio", "massive", "rogue_dimensions", "duplicate_share"):
        found = explained(metric, now, BASELINES["even"])
        assert found.explained == "anisotropy"
        assert found.causes[0].name == "1 rogue dimension"
    label, text = diagnosis_lines(explained("massive_ratio", now, BASELINES["even"]))[0]
    assert label == "cause"
    assert text.startswith("of anisotropy, ")
    assert ": 1 rogue dimension 100% (rogue_share" in text
    within = explained("duplicate_share", measured(copies_within(EVEN)), BASELINES["even"])
    assert within.explained == "intra_similarity"
    assert within.causes[0].name == "duplicated representations"


def test_a_massive_activation_that_moves_no_similarity_says_so() -> None:
    x = EVEN.copy()
    x[0, 0, 5] = 60.0
    found = explained("massive", measured(x), BASELINES["even"])
    assert found.causes == ()
    lines = diagnosis_lines(found)
    assert lines[0] == ("cause", "anisotropy and intra_similarity did not move with it")


def test_a_limit_explains_the_level() -> None:
    for metric in ("anisotropy", "intra_similarity", "rank_residual"):
        found = explained(metric, measured(rogue([7])(EVEN)), None)
        assert found.before == 0.0
        assert found.causes[0].name == "1 rogue dimension"
        assert found.causes[0].share == pytest.approx(1.0, abs=0.02)
        assert sum(c.share for c in found.causes) + found.unexplained == pytest.approx(1.0)
        assert [label for label, _ in diagnosis_lines(found)] == ["cause"]
    found = explained("intra_similarity", measured(constant(EVEN)), None)
    assert found.causes[0].name == "within-sequence collapse"
    rank = measured(three_directions(EVEN), metrics=["effective_rank"])
    found = explained("effective_rank", rank, None)
    assert found.causes[0].name == "spectral concentration"
    assert found.before is not None
    assert found.before > 60  # isotropic data of this number and width


@pytest.mark.parametrize(
    ("fault", "cause"), [(constant, "within-sequence collapse"), (common, "drift")]
)
def test_the_level_of_a_rank_residual_says_that_positions_became_alike(
    fault: Fault, cause: str
) -> None:
    """Drift alone would send a reader elsewhere: here it is what the positions share."""
    profile = measured(fault(EVEN))
    residual = profile.curve("rank_residual")[0]
    assert residual is not None
    (line,) = diagnosis_lines(explained("rank_residual", profile, None))
    shared = f"{100 * (1 - residual**2):.0f}%"
    assert line[1].startswith(
        f"the positions of a sequence have {shared} of their energy in common: {cause} "
    )


def test_one_representation_a_sequence_has_no_within() -> None:
    before, now = measured(EVEN[:, :1]), measured(common(EVEN[:, :1]))
    found = explained("anisotropy", now, before)
    assert found.causes[0].name == "drift"
    assert found.causes[0].share == pytest.approx(1.0, abs=0.02)
    assert found.unmeasured == {}


# --- heads ---


def with_heads(found: Profile, *layers: Sequence[float], row_max: float = 0.2) -> Profile:
    """The same profile with the entropies of its layers' heads."""
    made = [
        replace(
            layer,
            attention={
                "self": AttentionHeads(
                    modules=(("attention", len(entropy)),),
                    entropy=tuple(entropy),
                    row_max=tuple(row_max if value > 0.1 else 0.98 for value in entropy),
                    histogram=(),
                )
            },
        )
        for layer, entropy in zip(found.layers, layers, strict=True)
    ]
    return replace(found, layers=tuple(made))


def attention(*layers: Sequence[float], created: bool = True) -> Profile:
    """Two curves that follow from the heads: their mean entropy and the lowest."""
    curves = {
        "attention_entropy": [spread(float(np.mean(layer)), 1e-4) for layer in layers],
        "attention_entropy_lowest": [spread(min(layer), 1e-4) for layer in layers],
    }
    return with_heads((profile if created else accepted)(curves), *layers)


HEALTHY_HEADS = [0.7, 0.6, 0.62, 0.5]


def test_a_saturated_head_is_named_with_layer_number_and_its_share_of_the_mean() -> None:
    """One of four heads falls by 0.59, another by 0.01: 59/60 of the mean's change."""
    before = attention(HEALTHY_HEADS, HEALTHY_HEADS, created=False)
    now = attention(HEALTHY_HEADS, [0.7, 0.59, 0.03, 0.5])
    found = diagnose("attention_entropy", now, before, "1")
    assert found is not None
    assert found.causes[0].name == "saturated attention heads"
    assert found.causes[0].share == pytest.approx(0.59 / 0.60)
    assert [(head.layer, head.number) for head in found.heads] == [("1", 2)]
    texts = [text for _, text in diagnosis_lines(found)]
    assert (
        "saturated attention head 2 of layer 1: entropy 0.62 -> 0.03, largest weight 0.2 -> 0.98"
        in texts
    )
    assert found.started == ("1",)
    lowest = diagnose("attention_entropy_lowest", now, before, "1")
    assert lowest is not None
    assert [head.number for head in lowest.heads] == [2]


def test_heads_that_were_sharp_before_are_no_news() -> None:
    sharp = [0.7, 0.6, 0.04, 0.5]
    before, now = attention(sharp, created=False), attention([0.7, 0.5, 0.03, 0.5])
    found = diagnose("attention_entropy", now, before, "0")
    assert found is not None
    assert found.heads == ()
    assert found.unexplained == pytest.approx(1.0)


def test_a_saturated_head_stands_beside_the_shares_of_a_similarity() -> None:
    layers = (EVEN, TRAINED)
    before = with_heads(measured(*layers, created="before"), HEALTHY_HEADS, HEALTHY_HEADS)
    now = with_heads(measured(EVEN, common(TRAINED)), [0.7, 0.6, 0.62, 0.02], HEALTHY_HEADS)
    found = diagnose("anisotropy", now, before, "1")
    assert found is not None
    assert found.causes[0].name == "drift"
    assert [(head.layer, head.number) for head in found.heads] == [("0", 3)]
    assert sum(cause.share for cause in found.causes) + found.unexplained == pytest.approx(1.0)
    # A head of a later layer has nothing to do with this one.
    assert diagnose("anisotropy", now, before, "0") is None or not math.isnan(found.unexplained)


# --- as data ---


def test_the_document_has_what_the_text_has() -> None:
    found = explained("anisotropy", measured(rogue([1, 2, 3])(EVEN)), BASELINES["even"])
    document = json.loads(json.dumps(diagnosis_document(found), allow_nan=False))
    assert document["metric"] == "anisotropy"
    assert document["explains"] == ["3 rogue dimensions"]
    first = document["causes"][0]
    assert first["share"] == pytest.approx(1.0, abs=0.01)
    assert first["metric"] == "rogue_share"
    assert "rogue_share" in first["evidence"]


def test_shapley_values_add_up_and_ignore_names() -> None:
    energy = {"a": 3.0, "b": 1.0, "c": 0.0}

    def worth(who: Collection[str]) -> float:
        total = sum(energy[name] for name in who)
        return total / (1 + total)

    found = shapley(list(energy), worth)
    assert sum(found.values()) == pytest.approx(4 / 5)
    assert found["c"] == 0
    assert found["a"] == pytest.approx((3 / 4 + 4 / 5 - 1 / 2) / 2)
