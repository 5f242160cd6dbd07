"""Statistics of attention: against naive loops, and what must hold whatever the call."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotest.errors import MeasurementError, NonFiniteError
from isotest.statistics.attention.accumulator import SelfAttention
from isotest.statistics.attention.histogram import BINS, edges
from isotest.statistics.attention.maps import ROWS, maps_of
from isotest.statistics.blocks import block_of
from isotest.statistics.layer import LayerStatistics
from isotest.statistics.registry import METRICS
from tests.statistics import naive_attention as naive

if TYPE_CHECKING:
    from isotest.statistics.accumulator import Evaluated
    from isotest.statistics.attention.maps import Maps

NAMES = [name for name in METRICS if name.startswith("attention_")]


@dataclass(frozen=True)
class Call:
    """Queries, keys and masks of one call, in float64."""

    query: Any
    key: Any
    scale: float = 0.5
    bias: Any = None
    allowed: Any = None
    queries: Any = None
    softcap: float | None = None

    def maps(self, **changes: Any) -> Maps:
        mine = replace(self, **{k: v for k, v in changes.items() if k != "sequences"})
        return maps_of(**vars(mine), sequences=changes.get("sequences"))

    def part(self, which: Any) -> Call:
        """Some of its sequences."""
        masks = {
            name: value[which] if value is not None and len(value) > 1 else value
            for name, value in (("bias", self.bias), ("allowed", self.allowed))
        }
        queries = None if self.queries is None else self.queries[which]
        changes = {"query": self.query[which], "key": self.key[which], "queries": queries}
        return replace(self, **changes, **masks)

    def heads(self, windows: int = 1) -> list[list[naive.Head]]:
        """Naively, by sequence and head."""
        batch, heads, length, _ = self.query.shape
        full = (batch, heads, length, self.key.shape[2])
        bias = np.zeros(full) if self.bias is None else self.bias.expand(full).numpy()
        allowed = np.ones(full, bool)
        if self.allowed is not None:
            allowed = self.allowed.expand(full).numpy()
        queries = np.ones((batch, length), bool) if self.queries is None else self.queries.numpy()
        group = heads // self.key.shape[1]
        single = [
            [
                naive.head_of(
                    self.query[b, h].numpy(),
                    self.key[b, h // group].numpy(),
                    self.scale,
                    bias[b, h],
                    allowed[b, h],
                    queries[b],
                    self.softcap,
                )
                for h in range(heads)
            ]
            for b in range(batch)
        ]
        return [
            [_joined([single[b + w][h] for w in range(windows)]) for h in range(heads)]
            for b in range(0, batch, windows)
        ]


def _joined(heads: list[naive.Head]) -> naive.Head:
    return naive.Head(
        [row for head in heads for row in head.rows],
        [q for head in heads for q in head.queries],
        [k for head in heads for k in head.keys],
    )


def call(
    seed: int = 0, batch: int = 5, heads: int = 4, own: int = 4, length: int = 7, keys: int = 7
) -> Call:
    generator = torch.Generator().manual_seed(seed)
    query = torch.randn(batch, heads, length, 3, generator=generator, dtype=torch.float64)
    key = torch.randn(batch, own, keys, 3, generator=generator, dtype=torch.float64)
    return Call(query, key)


def padded(of: Call, seed: int = 0) -> Call:
    """With keys and queries of its own length for each sequence, and at least one."""
    rng = np.random.default_rng(seed)
    batch, _, length, _ = of.query.shape
    keys = of.key.shape[2]
    here = np.arange(keys) < rng.integers(1, keys + 1, batch)[:, None]
    queries = np.arange(length) < rng.integers(1, length + 1, batch)[:, None]
    allowed = torch.from_numpy(here)[:, None, None, :]
    return replace(of, allowed=allowed, queries=torch.from_numpy(queries))


def causal(of: Call) -> Call:
    order = torch.ones(of.query.shape[2], of.key.shape[2], dtype=torch.bool).tril()
    allowed = order[None, None] if of.allowed is None else of.allowed & order
    return replace(of, allowed=allowed)


def biased(of: Call) -> Call:
    generator = torch.Generator().manual_seed(9)
    shape = (1, of.query.shape[1], of.query.shape[2], of.key.shape[2])
    return replace(of, bias=torch.randn(shape, generator=generator, dtype=torch.float64) * 3)


CALLS = {
    "plain": call(),
    "grouped heads": call(heads=6, own=2),
    "one key head": call(heads=4, own=1),
    "fewer keys": call(keys=3),
    "causal": causal(call()),
    "padded": padded(call(length=9, keys=5)),
    "padded and causal": causal(padded(call(length=6, keys=6))),
    "biased": biased(padded(call())),
    "capped": replace(causal(call()), softcap=0.7),
    "more queries than are chosen": padded(call(length=70, keys=40)),
    "one query": call(length=1, keys=4),
    "one key": call(keys=1),
}


def observed(
    maps: Maps, units: Any = None, *, into: SelfAttention | None = None, path: str = "a"
) -> SelfAttention:
    part = SelfAttention(NAMES, grouped=False) if into is None else into
    count = len(maps.histogram)
    part.observe(path, maps, np.arange(count) if units is None else units)
    return part


def evaluated(part: SelfAttention, sequences: int = 5) -> dict[str, Evaluated]:
    return dict(part.evaluate(np.unique(block_of(np.arange(sequences)))))


def values(part: SelfAttention, sequences: int = 5) -> dict[str, float]:
    """By name without the prefix; NaN where undefined."""
    return {
        name.removeprefix("attention_"): math.nan if found.value is None else found.value
        for name, found in evaluated(part, sequences).items()
    }


@pytest.mark.parametrize("name", CALLS)
def test_every_metric_equals_naive_loops(name: str) -> None:
    of = CALLS[name]
    expected = naive.metrics(of.heads())
    assert values(observed(of.maps())) == pytest.approx(expected, rel=1e-10, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("name", ["plain", "padded and causal", "more queries than are chosen"])
def test_without_a_block_is_what_the_others_yield(name: str) -> None:
    of = CALLS[name]
    found = evaluated(observed(of.maps()))
    for left_out in range(5):
        expected = naive.metrics([heads for b, heads in enumerate(of.heads()) if b != left_out])
        for metric, evaluation in found.items():
            wanted = expected[metric.removeprefix("attention_")]
            assert evaluation.without[left_out] == pytest.approx(wanted, rel=1e-9, nan_ok=True)


def test_windows_belong_to_their_sequence() -> None:
    of = replace(biased(call(batch=6)), allowed=call(batch=6).query[:, :1, :, :1] > -9)
    of = replace(
        of, allowed=torch.rand(6, 1, 7, 7, generator=torch.Generator().manual_seed(1)) > 0.3
    )
    found = values(observed(of.maps(sequences=3)), 3)
    assert found == pytest.approx(naive.metrics(of.heads(windows=2)), rel=1e-10, abs=1e-12)


def test_modules_of_a_layer_add_their_heads() -> None:
    one, other = call(seed=1), call(seed=2, heads=2, own=2, length=4, keys=9)
    part = observed(other.maps(), into=observed(one.maps()), path="b")
    both = [a + b for a, b in zip(one.heads(), other.heads(), strict=True)]
    assert values(part) == pytest.approx(naive.metrics(both), rel=1e-10, abs=1e-12)
    heads = part.heads()
    assert heads is not None
    assert heads.modules == (("a", 4), ("b", 2))
    assert len(heads.entropy) == len(heads.row_max) == 6
    assert min(value for value in heads.entropy if value is not None) == pytest.approx(
        values(part)["entropy_lowest"]
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_half_precision_is_upcast_first(dtype: torch.dtype) -> None:
    of = causal(call(length=40, keys=40))
    rounded = replace(of, query=of.query.to(dtype), key=of.key.to(dtype))
    exact = replace(of, query=rounded.query.double(), key=rounded.key.double())
    found, wanted = values(observed(rounded.maps())), values(observed(exact.maps()))
    assert found == pytest.approx(wanted, rel=1e-5, abs=1e-6)


def test_what_is_masked_has_no_influence() -> None:
    of = causal(padded(biased(call(length=6, keys=6))))
    hidden = ~(of.allowed & of.queries[:, None, :, None])
    unseen = hidden.all(dim=2)[:, 0]  # (B, Lk)
    wild = replace(of, query=of.query.clone(), key=of.key.clone())
    wild.query[(~of.queries)[:, None].expand(-1, 4, -1)] = torch.nan
    wild.key[unseen[:, None].expand(-1, 4, -1)] = 1e30
    same, changed = of.maps(), wild.maps()
    for name, numbers in same.values.items():
        np.testing.assert_array_equal(numbers, changed.values[name], err_msg=name)
    np.testing.assert_array_equal(same.histogram, changed.histogram)


def test_a_sequence_is_the_same_alone_and_padded_in_a_batch() -> None:
    of = causal(padded(call(length=50, keys=50)))
    together = of.maps()
    for b in range(5):
        length = int(of.queries[b].sum())
        keys = min(int(of.allowed[b, 0, -1].sum()), length)
        alone = Call(of.query[b : b + 1, :, :length], of.key[b : b + 1, :, :keys])
        order = torch.ones(length, keys, dtype=torch.bool).tril()[None, None]
        single = replace(alone, allowed=order).maps()
        for name, numbers in single.values.items():
            np.testing.assert_allclose(numbers[0], together.values[name][b], rtol=1e-11, atol=1e-13)
        np.testing.assert_array_equal(single.histogram[0], together.histogram[b])


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    of = biased(causal(padded(call())))
    whole = of.maps()
    monkeypatch.setitem(maps_of.__globals__["_ENTRIES"], "cpu", 1)
    single = of.maps()
    for name, numbers in whole.values.items():
        np.testing.assert_allclose(numbers, single.values[name], rtol=1e-12, atol=1e-14)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 4), st.booleans())
def test_batches_order_and_merges_do_not_matter(seed: int, parts: int, scattered: bool) -> None:
    rng = np.random.default_rng(seed)
    of = padded(call(seed=seed % 1000, batch=8), seed)
    units = rng.integers(0, 200, 8) if scattered else np.arange(8)
    blocks = np.unique(block_of(units))
    whole = dict(observed(of.maps(), units).evaluate(blocks))
    order = rng.permutation(8)
    merged = SelfAttention(NAMES, grouped=True)
    for piece in np.array_split(order, parts):
        merged.merge(observed(of.part(torch.from_numpy(piece)).maps(), units[piece]))
    for name, found in merged.evaluate(blocks).items():
        assert found.value == pytest.approx(whole[name].value, rel=1e-10, abs=1e-12), name
        np.testing.assert_allclose(found.without, whole[name].without, rtol=1e-9, atol=1e-11)


def test_a_head_that_attends_to_one_key() -> None:
    of = call(heads=2, own=2)
    of.key[:, 0] = 0.0
    of.key[:, 0, 2] = 1e6
    of.query[:, 0] = of.query[:, 0].abs()
    part = observed(of.maps())
    heads = part.heads()
    assert heads is not None
    assert heads.entropy[0] == pytest.approx(0, abs=1e-12)
    assert heads.row_max[0] == 1
    assert values(part)["entropy_lowest"] == pytest.approx(0, abs=1e-12)
    assert values(part)["entropy"] > 0.3


def test_uniform_attention_is_what_isotropic_says() -> None:
    of = causal(call(length=6, keys=6))
    of.query[:] = 0
    for name, found in evaluated(observed(of.maps())).items():
        if name.removeprefix("attention_").split("_")[0] in ("entropy", "row", "sequence"):
            assert found.value == pytest.approx(found.isotropic), name
    plain = values(observed(of.maps()))
    assert plain["score_std"] == plain["score_mean"] == plain["query_norm"] == 0
    assert plain["entropy"] == 1
    assert plain["row_max"] == pytest.approx(np.mean([1 / n for n in range(1, 7)]))


def test_a_row_that_sees_one_key_has_no_entropy() -> None:
    found = evaluated(observed(call(keys=1).maps()))
    assert found["attention_row_max"].value == found["attention_row_min"].value == 1
    entropy = found["attention_entropy"]
    assert (entropy.value, entropy.vacuous) == (None, True)
    assert entropy.undefined == "no query may see more than one key"


def test_all_keys_masked_but_one() -> None:
    of = replace(call(), allowed=torch.arange(7)[None, None, None] == 3)
    found = values(observed(of.maps()))
    assert found["row_max"] == found["row_median"] == found["sequence_min"] == 1
    assert math.isnan(found["entropy"])
    assert math.isnan(found["key_cosine"])


def test_constant_scores() -> None:
    of = call()
    of.query[:] = of.query[:1, :1, :1]
    of.key[:] = of.key[:1, :1, :1]
    found = values(observed(of.maps()))
    score = 0.5 * float(of.query[0, 0, 0] @ of.key[0, 0, 0])
    assert [found[f"score_{name}"] for name in ("mean", "q05", "median", "q95")] == [
        pytest.approx(score)
    ] * 4
    assert found["score_std"] == pytest.approx(0, abs=1e-12)
    assert found["entropy"] == pytest.approx(1)
    assert [found["query_cosine"], found["key_cosine"]] == pytest.approx([1, 1])


def test_a_large_common_score_costs_no_digits() -> None:
    of = call()
    moved = replace(of, bias=torch.full((1, 1, 1, 1), 1e9, dtype=torch.float64))
    plain, far = values(observed(of.maps())), values(observed(moved.maps()))
    assert far["score_std"] == pytest.approx(plain["score_std"], rel=1e-6)
    assert far["entropy"] == pytest.approx(plain["entropy"], rel=1e-6)


@pytest.mark.parametrize("factor", [1e-25, 1e-8, 1e18])
def test_very_small_and_very_large_vectors_keep_their_direction(factor: float) -> None:
    of = call()
    plain = values(observed(of.maps()))
    small = replace(of, query=(of.query * factor).float(), key=(of.key * factor).float())
    scaled = values(observed(small.maps()))
    for name in ("query", "key"):
        assert scaled[f"{name}_cosine"] == pytest.approx(plain[f"{name}_cosine"], rel=1e-5)
        assert scaled[f"{name}_norm"] == pytest.approx(plain[f"{name}_norm"] * factor, rel=1e-5)


def test_scores_whose_squares_overflow_float32() -> None:
    of = call()
    large = replace(of, query=(of.query * 1e12).float(), key=(of.key * 1e12).float())
    found = values(observed(large.maps()))
    assert found["score_std"] == pytest.approx(values(observed(of.maps()))["score_std"] * 1e24)
    assert (found["row_max"], found["entropy"]) == (1, 0)


def test_only_vectors_of_zero_length_is_a_fault_and_one_vector_is_none() -> None:
    of = call()
    of.query[:] = 0
    zero = evaluated(observed(of.maps()))["attention_query_cosine"]
    assert (zero.undefined, zero.vacuous) == ("every query has zero length", False)
    single = evaluated(observed(call(length=1).maps()))["attention_query_cosine"]
    assert (single.value, single.vacuous) == (None, True)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("where", ["query", "key", "bias"])
def test_what_is_not_finite_is_an_error_that_names_the_head(where: str, value: float) -> None:
    of = replace(call(), bias=torch.zeros(1, 4, 7, 7, dtype=torch.float64))
    getattr(of, where)[0, 2, 1, 1] = value
    with pytest.raises(NonFiniteError, match="head 2 has"):
        of.maps()


def test_scores_that_overflow_are_an_error_and_overflow_in_half_precision_is_none() -> None:
    of = call()
    of.query[:, 1], of.key[:, 1] = 1e200, 1e200
    with pytest.raises(NonFiniteError, match="head 1 has scores that are NaN, infinite"):
        of.maps()
    half = replace(of, query=of.query.clip(max=300).half(), key=of.key.clip(max=300).half())
    assert values(observed(half.maps()))["row_max"] > 0


@pytest.mark.parametrize(
    "changes",
    [
        {"key": torch.zeros(5, 3, 7, 3)},
        {"key": torch.zeros(5, 4, 7, 2)},
        {"allowed": torch.ones(5, 4, 7, 7, dtype=torch.bool)},
        {"bias": torch.zeros(7, 7)},
        {"queries": torch.ones(5, 6, dtype=torch.bool)},
        {"sequences": 2},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_does_not_fit_together_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(MeasurementError, match="expected"):
        call().maps(**changes)


def test_histograms_count_every_score_and_add_up() -> None:
    of = causal(padded(call(length=50, keys=60)))
    of.query[0] *= 1e4
    scores = [s for heads in of.heads() for head in heads for row in head.rows for s in row]
    bounds = np.concatenate([[-np.inf], edges(), [np.inf]])
    expected = np.histogram(scores, bins=bounds)[0]
    maps = of.maps()
    np.testing.assert_array_equal(maps.histogram.sum(axis=0), expected)
    assert maps.histogram.shape == (5, BINS)
    assert maps.thinned
    heads = observed(maps).heads()
    assert heads is not None
    assert sum(heads.histogram) == len(scores)


def test_what_was_left_out_is_recorded() -> None:
    long = evaluated(observed(call(length=ROWS + 1).maps()))
    short = evaluated(observed(call(length=ROWS).maps()))
    assert long["attention_entropy"].basis == "at most 32 queries of each sequence, evenly spaced"
    assert long["attention_query_norm"].basis is None
    assert {found.basis for found in short.values()} == {None}


def test_representations_say_nothing_of_attention() -> None:
    layer = LayerStatistics(["anisotropy", *NAMES], grouped=False)
    layer.update(torch.rand(4, 3, 5), torch.arange(4))
    estimates = layer.estimates()
    assert estimates["anisotropy"].value is not None
    for name in NAMES:
        assert estimates[name].undefined == "no attention at this layer"
        assert estimates[name].vacuous
    part = layer.part(SelfAttention)
    assert part is not None
    part.refuse("why")
    refused = layer.estimates()["attention_entropy"]
    assert (refused.undefined, refused.vacuous) == ("not observable: why", False)


def test_the_error_bar_is_that_of_sequence_means() -> None:
    of = call()
    layer = LayerStatistics(["attention_row_max"], grouped=False)
    layer.update(torch.rand(5, 3, 5), torch.arange(5))
    part = layer.part(SelfAttention)
    assert part is not None
    observed(of.maps(), into=part)
    single = [naive.metrics([heads])["row_max"] for heads in of.heads()]
    estimate = layer.estimates()["attention_row_max"]
    assert estimate.blocks == pytest.approx(single)
    assert estimate.se == pytest.approx(np.std(single, ddof=1) / math.sqrt(5))
