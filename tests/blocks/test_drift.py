"""The drift experiment against its definition, and what holds of it whatever the block."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from torch import nn

from isotest.blocks import BlockConfig, TransformerBlock
from isotest.blocks.drift import FIGURES, drift
from isotest.data.embeddings import EmbeddingTable, draw
from isotest.errors import IsotestError, MeasurementError, NonFiniteError, SourceError
from isotest.statistics.attention.histogram import edges
from isotest.statistics.registry import METRICS
from tests.blocks import naive_drift

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.profile import LayerProfile, Profile

WIDTH, HEADS, LENGTH, SEQUENCES, REPLICATES = 16, 2, 40, 3, 3
NORMS = (0.0, 1.5, 6.0)
POST = BlockConfig(width=WIDTH, heads=HEADS, hidden=24, initialisation="xavier")
PRE = BlockConfig(width=WIDTH, heads=HEADS, hidden=24, layer_norm="pre", initialisation="xavier")
TABLE = EmbeddingTable(std=0.3, vocabulary=20, length=LENGTH)
GEOMETRY = (
    "anisotropy",
    "anisotropy_all",
    "intra_similarity",
    "mean_norm",
    "norm_std",
    "drift_norm",
    "drift_share",
)
ATTENTION = tuple(name for name in METRICS if name.startswith("attention_"))


def run(block: object, **options: object) -> Profile:
    given = {
        "norms": NORMS,
        "replicates": REPLICATES,
        "sequences": SEQUENCES,
        "length": LENGTH,
        "vocabulary": TABLE.vocabulary,
        "std": TABLE.std,
    }
    return drift(block, **{**given, **options})  # type: ignore[arg-type]


def with_biases(seed: int, config: BlockConfig = POST) -> TransformerBlock:
    """A block whose biases are not zero, as those of a trained one."""
    block = TransformerBlock(config, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in block.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(std=0.3, generator=generator)
    return block


@cache
def measured() -> Profile:
    return run(with_biases, metrics=(*GEOMETRY, *ATTENTION, *FIGURES[-4:]))


def layer(profile: Profile, name: str) -> LayerProfile:
    return next(each for each in profile.layers if each.name == name)


def value(profile: Profile, name: str, metric: str) -> float:
    found = layer(profile, name).estimates[metric].value
    assert found is not None
    return found


@pytest.mark.parametrize("k", range(len(NORMS)))
def test_every_metric_is_that_of_the_definition_in_every_replicate(k: int) -> None:
    for replicate in range(REPLICATES):
        drawn = draw(TABLE, sequences=SEQUENCES, width=WIDTH, seed=0, replicate=replicate)
        before = [x + NORMS[k] * drawn.direction for x in drawn.x.astype(np.float64)]
        w = naive_drift.weights_of(with_biases(replicate))
        after = [naive_drift.post_norm_block(w, x, HEADS)[0] for x in before]
        expected = {
            f"input.{k}": naive_drift.geometry(before),
            f"output.{k}": {
                **naive_drift.geometry(after),
                **naive_drift.attention(w, before, HEADS),
            },
        }
        for name, values in expected.items():
            estimates = layer(measured(), name).estimates
            for metric, number in values.items():
                found = estimates[metric].blocks[replicate]
                assert found == pytest.approx(number, rel=2e-5, abs=2e-6), (name, metric)


def test_values_are_means_over_replicates_and_errors_are_sd_over_root_s() -> None:
    counted = 0
    for each in measured().layers:
        for metric, estimate in each.estimates.items():
            if estimate.value is None:
                continue
            values = np.array(estimate.blocks)
            assert len(values) == REPLICATES
            assert estimate.value == pytest.approx(values.mean(), rel=1e-12), metric
            error = values.std(ddof=1) / math.sqrt(REPLICATES)
            assert estimate.se == pytest.approx(error, rel=1e-9, abs=1e-15), metric
            counted += 1
    assert counted >= len(NORMS) * (2 * len(GEOMETRY) + len(ATTENTION))


def test_scores_offset_and_sign_follow_from_each_replicates_mean_score() -> None:
    for k in range(len(NORMS)):
        estimates = layer(measured(), f"output.{k}").estimates
        means = np.array(estimates["attention_score_mean"].blocks)
        assert estimates["score_offset"].blocks == tuple(np.abs(means))
        assert estimates["score_sign"].value == pytest.approx((means > 0).mean())


def test_the_histogram_holds_every_score_once() -> None:
    each = layer(measured(), "output.2").attention["self"]
    assert sum(each.histogram) == REPLICATES * SEQUENCES * HEADS * LENGTH * LENGTH
    w = naive_drift.weights_of(with_biases(0))
    drawn = draw(TABLE, sequences=SEQUENCES, width=WIDTH, seed=0, replicate=0)
    alone = run(with_biases(0), replicates=1, norms=[6], metrics=["attention_score_mean"])
    moved = [x + 6 * drawn.direction for x in drawn.x.astype(np.float64)]
    scores = np.concatenate([naive_drift.post_norm_block(w, x, HEADS)[1] for x in moved])
    bins = np.concatenate([[-np.inf], edges(), [np.inf]])
    expected, _ = np.histogram(scores, bins)
    found = np.array(layer(alone, "output.0").attention["self"].histogram)
    # float32 may put a score on the other side of an edge
    assert np.abs(found - expected).sum() <= 4


def test_the_mean_query_is_the_query_of_the_mean_exactly_where_it_is_affine() -> None:
    for k in range(len(NORMS)):
        for metric in ("query_expectation_gap", "key_expectation_gap"):
            assert value(measured(), f"output.{k}", metric) < 1e-5
    pre = layer(run(lambda seed: with_biases(seed, PRE)), "output.1").estimates
    for metric in ("query_expectation_gap", "key_expectation_gap"):
        assert pre[metric].value is None
        assert pre[metric].vacuous
        assert "it normalises first" in str(pre[metric].undefined)


class Bent(nn.Module):
    """A block whose queries are no affine map of the input, and whose norm comes after."""

    def __init__(self) -> None:
        super().__init__()
        self.block = TransformerBlock(POST, seed=0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.block(x * x.norm(dim=-1, keepdim=True))
        return output


def test_the_gap_is_seen_where_queries_are_not_affine() -> None:
    assert value(run(Bent(), width=WIDTH), "output.0", "query_expectation_gap") > 0.01


def test_what_is_drawn_is_as_the_paper_says() -> None:
    table = EmbeddingTable(std=0.02, vocabulary=5000, length=512)
    drawn = draw(table, sequences=16, width=64, seed=3, replicate=1)
    assert np.linalg.norm(drawn.direction) == pytest.approx(1)
    assert drawn.x.std() == pytest.approx(0.02, rel=0.01)
    assert abs(drawn.x.mean()) < 1e-4
    same = drawn.ids.ravel() == drawn.ids[0, 0]
    rows = drawn.x.reshape(-1, 64)
    assert (rows[same] == drawn.x[0, 0]).all()
    assert (drawn.ids.min(), drawn.ids.max()) >= (0, 4900)
    counts = np.bincount(drawn.ids.ravel(), minlength=5000)
    # uniform: variance of a count is its mean, 1.64
    assert counts.var() == pytest.approx(counts.mean(), rel=0.1)
    biased = drawn.biased(5.0) - drawn.x
    assert np.linalg.norm(biased, axis=-1) == pytest.approx(np.full((16, 512), 5.0), rel=1e-5)


def test_replicates_and_seeds_draw_everything_anew_and_repeatably() -> None:
    draws = {
        (seed, replicate): draw(TABLE, sequences=2, width=8, seed=seed, replicate=replicate)
        for seed in (0, 1)
        for replicate in (0, 1)
    }
    seen = {tuple(each.direction) for each in draws.values()}
    assert len(seen) == len({each.x.tobytes() for each in draws.values()}) == 4
    again = draw(TABLE, sequences=2, width=8, seed=1, replicate=1)
    assert again.x.tobytes() == draws[1, 1].x.tobytes()


def curves(profile: Profile, metrics: Sequence[str] = FIGURES) -> np.ndarray:
    return np.array(
        [
            [np.nan if value is None else value for value in profile.curve(metric)]
            for metric in metrics
        ]
    )


@pytest.mark.parametrize("size", [1, 2])
def test_batches_change_nothing(size: int) -> None:
    metrics = [*GEOMETRY, *ATTENTION]
    found = run(with_biases, metrics=metrics, batch_size=size)
    assert curves(found, metrics) == pytest.approx(
        curves(measured(), metrics), rel=1e-6, abs=1e-7, nan_ok=True
    )
    assert found.provenance.data == measured().provenance.data


def test_a_replicate_is_the_same_whatever_the_others_are() -> None:
    fewer = run(with_biases, replicates=2)
    for each in fewer.layers:
        for metric, estimate in each.estimates.items():
            theirs = layer(measured(), each.name).estimates[metric]
            assert estimate.blocks == theirs.blocks[:2], (each.name, metric)


def test_one_block_for_all_replicates_differs_from_one_for_each() -> None:
    same = run(with_biases(0))
    own = {
        name: layer(profile, "output.2").estimates["mean_norm"].blocks
        for name, profile in (("same", same), ("anew", measured()))
    }
    assert own["same"][0] == own["anew"][0]
    assert own["same"][1] != own["anew"][1]
    assert same.provenance.protocol["weights"] == "the same"
    assert measured().provenance.protocol["weights"] == "of each replicate"
    assert same.provenance.weights != measured().provenance.weights


def test_the_profile_says_where_each_layer_stands() -> None:
    names = [f"{stack}.{k}" for stack in ("input", "output") for k in range(len(NORMS))]
    assert [each.name for each in measured().layers] == names
    assert [each.at for each in measured().layers] == [*NORMS, *NORMS]
    assert measured().block_sequences == (SEQUENCES,) * REPLICATES
    assert layer(measured(), "input.0").estimates["attention_row_max"].vacuous
    assert layer(measured(), "input.0").block_representations == (SEQUENCES * LENGTH,) * REPLICATES


def test_a_module_is_given_back_in_its_mode() -> None:
    block = with_biases(0).train()
    block.mlp_norm.eval()
    run(block, replicates=1)
    assert block.training
    assert not block.mlp_norm.training


class Returns(nn.Module):
    """A block that does to its input what it is told to."""

    def __init__(self, makes: object) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.makes = makes

    def forward(self, x: torch.Tensor) -> object:
        return self.makes(x)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("makes", "error", "says"),
    [
        (lambda x: x[:, 1:], MeasurementError, r"the shape of its input, \(1, 2, 16\), found"),
        (lambda _x: "text", MeasurementError, "found str"),
        (lambda x: x @ torch.zeros(2, 2), MeasurementError, "Returns fails on .*RuntimeError"),
        (lambda x: x / 0, NonFiniteError, "replicate 0, N = 0, sequences 0–2: output"),
        (lambda x: x * (x.norm() < 20) / (x.norm() < 20), NonFiniteError, "N = 1.5"),
    ],
)
def test_what_a_block_does_wrong_is_one_message(
    makes: object, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        run(Returns(makes))


def test_the_first_of_a_tuple_is_the_output() -> None:
    tuple_ = run(Returns(lambda x: (2 * x, None)))
    assert value(tuple_, "output.1", "mean_norm") == pytest.approx(
        2 * value(tuple_, "input.1", "mean_norm"), rel=1e-6
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"norms": []}, "expected norms from 0, ascending"),
        ({"norms": [2, 1]}, "expected norms from 0, ascending"),
        ({"norms": [-1]}, "expected norms from 0, ascending"),
        ({"norms": [math.nan]}, "expected norms from 0, ascending"),
        ({"replicates": 0}, "at least 1 replicate"),
        ({"sequences": 1}, "at least 2 sequences"),
        ({"length": 1}, "length"),
        ({"std": 0.0}, "std"),
        ({"vocabulary": 1}, "vocabulary"),
        ({"batch_size": 0}, "batch_size"),
        ({"metrics": ["anisotropi"]}, "did you mean 'anisotropy'"),
        ({"metrics": []}, "no metric"),
        ({"width": 5}, "with 'width'"),
    ],
)
def test_arguments_that_cannot_be_are_one_message(options: dict[str, object], says: str) -> None:
    with pytest.raises(IsotestError, match=says):
        run(with_biases(0), **options)


def test_a_block_without_a_recognisable_width_asks_for_it() -> None:
    with pytest.raises(SourceError, match=r"cannot tell the width of Identity.*'width'"):
        run(nn.Identity())
    assert value(run(nn.Identity(), width=8), "output.1", "mean_norm") > 0


def test_attention_that_cannot_be_seen_is_undefined_and_says_so() -> None:
    estimates = layer(run(nn.TransformerEncoderLayer(WIDTH, 2, 24)), "output.0").estimates
    for metric in ("attention_row_max", "score_offset", "score_sign", "query_expectation_gap"):
        assert estimates[metric].value is None
        assert not estimates[metric].vacuous
        assert "not observable" in str(estimates[metric].undefined)
    assert estimates["mean_norm"].value is not None


def test_without_attention_there_is_nothing_to_say_of_it() -> None:
    estimates = layer(run(nn.Linear(WIDTH, WIDTH)), "output.0").estimates
    for metric in ("attention_row_max", "score_offset", "score_sign", "query_expectation_gap"):
        assert estimates[metric].vacuous, metric
