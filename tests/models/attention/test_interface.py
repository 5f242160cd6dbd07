"""What is seen of attention through transformers' interface is what ``eager`` returns."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from transformers.modeling_utils import AttentionInterface

from isotest.attention import AttentionOfLayers
from isotest.errors import NonFiniteError
from isotest.models.attention.call import AttentionCall, NotObservable
from isotest.models.attention.registry import observer_of
from isotest.models.feed import placed
from isotest.observation import Observer
from isotest.statistics.layer import LayerStatistics
from isotest.statistics.registry import METRICS
from tests.models.attention.families import NAMES, SPEECH, TEXT, loaded, pieces
from tests.statistics import naive_attention as naive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isotest.estimate import Estimate
    from isotest.models.loaded import LoadedModel, ObservedLayer, Piece

ATTENTION = [name for name in METRICS if "attention_" in name]
SELF = [name for name in ATTENTION if name.startswith("attention_")]
DECODERS = {"gpt2", "llama", "gpt_neox"}
TWO_STACKS = {"t5", "bart", "whisper"}


def measured(
    model: LoadedModel, sequences: Sequence[Piece], *, batch_size: int = 16
) -> dict[str, dict[str, Estimate]]:
    """Estimates by layer, as a measurement yields them."""
    sums = {layer.name: LayerStatistics(ATTENTION, grouped=False) for layer in model.layers}
    attention = AttentionOfLayers(model, sums, "m")
    observer = Observer(model, sums, "positions", "include", "m", attention)
    with observer.hooked() as run:
        for start in range(0, len(sequences), batch_size):
            run(sequences[start : start + batch_size])
    return {name: of_layer.estimates() for name, of_layer in sums.items()}


def eager(model: LoadedModel, sequences: Sequence[Piece]) -> tuple[Any, Any]:
    """What the library returns of the weights, and the inputs."""
    module: Any = model.module
    inputs = placed(model.feed.batch(sequences), module)
    before = module.config._attn_implementation
    module.set_attn_implementation("eager")
    # Swin's output has the weights of each stage's last block only.
    blocks: list[Any] = []
    handles = [
        part.register_forward_hook(lambda _module, _args, result: blocks.append(result[1]))
        for part in module.modules()
        if type(part).__name__ == "SwinAttention"
    ]
    with torch.inference_mode():
        output = module(**inputs.arguments, output_attentions=True)
    for handle in handles:
        handle.remove()
    module.set_attn_implementation(before)
    if blocks:
        output.attentions = tuple(blocks)
    return output, inputs


def weights_of(name: str, layer: ObservedLayer, output: Any) -> dict[str, list[Any]]:
    """By prefix of the metrics, (B, H, Lq, Lk) weights of each attention module of a layer."""
    *stack, number = layer.name.split(".")
    if number in ("0", "final"):
        return {"attention_": [], "cross_attention_": []}
    k = int(number) - 1
    if name in TWO_STACKS:
        if stack == ["encoder"]:
            return {"attention_": [output.encoder_attentions[k]], "cross_attention_": []}
        return {
            "attention_": [output.decoder_attentions[k]],
            "cross_attention_": [output.cross_attentions[k]],
        }
    if name in ("segformer", "swin"):
        # One for each block, and a layer is a stage of [1, 2, 1, 1], or of [2, 2], blocks.
        of_stage = {"segformer": [[0], [1, 2], [3], [4]], "swin": [[0, 1], [2, 3]]}[name][k]
        return {"attention_": [output.attentions[i] for i in of_stage], "cross_attention_": []}
    return {"attention_": [output.attentions[k]], "cross_attention_": []}


def expected(maps: list[Any], queries: Any) -> dict[str, float]:
    """Metrics of (B, H, Lq, Lk) weights; a key that a query may not see has weight 0."""
    count = len(queries)
    table: list[list[dict[str, float]]] = [[] for _ in range(count)]
    for of_module in maps:
        windows = len(of_module) // count
        for b, own in enumerate(table):
            for h in range(of_module.shape[1]):
                rows = []
                for w in range(windows):
                    weights = of_module[b * windows + w, h].double().numpy()
                    here = [i for i in range(len(weights)) if windows > 1 or queries[b][i]]
                    for n in naive.chosen(len(here)):
                        row = weights[here[n]]
                        rows.append(row[row > 1e-30].tolist())  # Swin hides keys by −100
                own.append(naive.of_maps(rows))
    return naive.over(table)


@pytest.mark.parametrize("name", NAMES)
def test_rows_equal_the_weights_that_eager_returns(name: str) -> None:
    model = loaded(name)
    sequences = pieces(name, model)
    assert len(sequences) > 1
    output, inputs = eager(model, sequences)
    found = measured(model, sequences)
    compared = 0
    for layer in model.layers:
        for prefix, maps in weights_of(name, layer, output).items():
            estimates = {
                key.removeprefix(prefix): estimate
                for key, estimate in found[layer.name].items()
                if key.startswith(prefix)
            }
            if not maps:
                assert all(estimate.vacuous for estimate in estimates.values()), layer.name
                continue
            positions = inputs.positions.get(layer.stream)
            queries = [[True] * maps[0].shape[2]] * len(sequences)
            if positions is not None:
                queries = positions.valid.tolist()
            for metric, value in expected(maps, queries).items():
                estimate = estimates[metric]
                assert estimate.value == pytest.approx(value, rel=2e-4, abs=2e-6), (
                    layer.name,
                    prefix + metric,
                )
                compared += 1
            assert 0.01 < (estimates["entropy"].value or 0) < 0.999
    assert compared >= 7 * 2


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("name", NAMES)
def test_observing_changes_no_bit_and_leaves_nothing_behind(name: str, implementation: str) -> None:
    model = loaded(name)
    module: Any = model.module
    module.set_attn_implementation(implementation)
    arguments = placed(model.feed.batch(pieces(name, model)), module).arguments
    interface, config = AttentionInterface.get_interface, module.config.to_dict()
    hooks = [len(part._forward_hooks) + len(part._forward_pre_hooks) for part in module.modules()]
    seen: list[AttentionCall] = []

    def receive(_path: str, call: AttentionCall | NotObservable) -> None:
        assert isinstance(call, AttentionCall)
        seen.append(call)

    observer = observer_of(model)
    assert not isinstance(observer, NotObservable)
    outputs = []
    for context in (nullcontext(), observer.observed(model, receive)):
        with torch.inference_mode(), context:
            outputs.append(module(**arguments))
    assert seen
    for key in outputs[0]:
        value = outputs[0][key]
        if isinstance(value, torch.Tensor):
            assert torch.equal(value, outputs[1][key]), key
    assert module.config.to_dict() == config
    assert AttentionInterface.get_interface is interface
    assert hooks == [
        len(part._forward_hooks) + len(part._forward_pre_hooks) for part in module.modules()
    ]


def test_an_exception_leaves_nothing_behind() -> None:
    model = loaded("bert")
    interface = AttentionInterface.get_interface

    def receive(_path: str, _call: object) -> None:
        raise RuntimeError("in the midst")

    observer = observer_of(model)
    assert not isinstance(observer, NotObservable)
    arguments = model.feed.batch(pieces("bert", model)).arguments
    with (
        pytest.raises(RuntimeError, match="in the midst"),
        observer.observed(model, receive),
        torch.inference_mode(),
    ):
        model.module(**arguments)
    assert AttentionInterface.get_interface is interface
    assert not any(part._forward_pre_hooks for part in model.module.modules())


@pytest.mark.parametrize("name", ["bert", "llama", "t5", "segformer"])
def test_sdpa_and_eager_yield_the_same(name: str) -> None:
    model = loaded(name)
    module: Any = model.module
    sequences = pieces(name, model)
    found = []
    for implementation in ("sdpa", "eager"):
        module.set_attn_implementation(implementation)
        found.append(measured(model, sequences))
    for layer, estimates in found[0].items():
        for metric, estimate in estimates.items():
            other = found[1][layer][metric]
            assert estimate.undefined == other.undefined
            if estimate.value is not None:
                assert estimate.value == pytest.approx(other.value, rel=1e-4, abs=1e-5), metric


@pytest.mark.parametrize("name", [*TEXT, "whisper", "wav2vec2, layer norm", "swin"])
def test_batches_do_not_matter(name: str) -> None:
    model = loaded(name)
    sequences = pieces(name, model)
    together, alone = (measured(model, sequences, batch_size=size) for size in (16, 1))
    for layer, estimates in together.items():
        for metric, estimate in estimates.items():
            other = alone[layer][metric]
            assert estimate.undefined == other.undefined
            if estimate.value is not None:
                assert estimate.value == pytest.approx(other.value, rel=2e-4, abs=2e-5), metric


@pytest.mark.parametrize("name", sorted(DECODERS))
@pytest.mark.parametrize("length", [1, 40])
def test_causality_holds_where_no_mask_is_made(name: str, length: int) -> None:
    """Without padding, sdpa is told to be causal instead of given a mask."""
    model = loaded(name)
    tokens = torch.arange(3 * length).reshape(3, length) % 500 + 5
    calls: list[Any] = []
    observer = observer_of(model)
    assert not isinstance(observer, NotObservable)
    with torch.inference_mode(), observer.observed(model, lambda _path, seen: calls.append(seen)):
        model.module(input_ids=tokens)
    for seen in calls:
        assert not seen.cross
        allowed = torch.ones(length, length, dtype=torch.bool)
        if seen.allowed is not None:
            allowed = seen.allowed.expand(3, 1, length, length)[0, 0]
        assert torch.equal(allowed, torch.ones(length, length, dtype=torch.bool).tril())


def test_scores_and_vectors_are_those_of_the_weights() -> None:
    """BERT's first block, computed from its embedding output and weights alone."""
    model = loaded("bert")
    module: Any = model.module
    sequences = pieces("bert", model)
    inputs = model.feed.batch(sequences)
    arguments = dict(inputs.arguments)
    mask = arguments.pop("attention_mask")
    with torch.inference_mode():
        x = module.embeddings(**arguments)
    own = module.encoder.layer[0].attention.self

    def heads(linear: Any) -> Any:
        y = x @ linear.weight.T + linear.bias
        return y.view(*y.shape[:2], 4, 8).transpose(1, 2).detach().numpy()

    query, key = heads(own.query), heads(own.key)
    here = mask.bool().numpy()
    length = here.shape[1]
    reference = [
        [
            naive.head_of(
                query[b, h],
                key[b, h],
                1 / math.sqrt(8),
                np.zeros((length, length)),
                np.broadcast_to(here[b], (length, length)),
                here[b],
            )
            for h in range(4)
        ]
        for b in range(len(sequences))
    ]
    found = measured(model, sequences)["1"]
    for metric, value in naive.metrics(reference).items():
        assert found[f"attention_{metric}"].value == pytest.approx(value, rel=1e-9), metric


def test_position_biases_are_part_of_the_scores() -> None:
    model = loaded("t5")
    sequences = pieces("t5", model)
    module: Any = model.module
    before = measured(model, sequences)
    bias = module.encoder.block[0].layer[0].SelfAttention.relative_attention_bias
    with torch.no_grad():
        bias.weight += 5.0
    after = measured(model, sequences)
    for layer in ("encoder.1", "encoder.3"):
        old, new = (found[layer]["attention_score_mean"].value for found in (before, after))
        assert old is not None
        assert new == pytest.approx(old + 5)
        same = [found[layer]["attention_entropy"].value for found in (before, after)]
        assert same[0] == pytest.approx(same[1])


def test_windows_joined_by_a_shift_do_not_see_each_other() -> None:
    model = loaded("swin")
    calls: dict[str, Any] = {}
    observer = observer_of(model)
    assert not isinstance(observer, NotObservable)
    arguments = model.feed.batch(pieces("swin", model)).arguments
    with torch.inference_mode(), observer.observed(model, calls.__setitem__):
        model.module(**arguments)
    plain, shifted = (calls[f"encoder.layers.0.blocks.{block}.attention"] for block in (0, 1))
    assert plain.allowed is None
    assert plain.bias is not None
    # 16 × 16 patches in windows of 4 × 4, shifted by 2: 9 of 16 windows are whole.
    whole = shifted.allowed.flatten(1).all(1)
    assert (len(whole), int(whole.sum())) == (3 * 16, 3 * 9)
    assert abs(float(shifted.bias.max())) < 10
    assert float(shifted.bias.min()) > -10


def test_grouped_heads_read_the_key_head_of_their_group() -> None:
    model = loaded("llama")
    output, _ = eager(model, pieces("llama", model))
    assert model.module.config.num_key_value_heads == 2  # type: ignore[union-attr]
    assert output.attentions[0].shape[1] == 4
    calls: list[Any] = []
    observer = observer_of(model)
    assert not isinstance(observer, NotObservable)
    arguments = model.feed.batch(pieces("llama", model)).arguments
    with torch.inference_mode(), observer.observed(model, lambda _path, seen: calls.append(seen)):
        model.module(**arguments)
    assert (calls[0].query.shape[1], calls[0].key.shape[1]) == (4, 2)


def test_infinity_in_one_heads_scores_is_an_error_that_names_it() -> None:
    model = loaded("bert")
    module: Any = model.module
    with torch.no_grad():
        module.encoder.layer[1].attention.self.query.weight[16:24] = 1e200
        module.encoder.layer[1].attention.self.key.weight[16:24] = 1e200
    message = (
        r"^model 'm', layer 2 \(encoder.layer.1.attention.self\), batch 0 \(.*\): head 2 has "
        r"scores that are NaN, infinite or beyond 1e\+150; look at the inputs of this attention "
        "first$"
    )
    with pytest.raises(NonFiniteError, match=message):
        measured(model, pieces("bert", model))


def test_whispers_silence_is_seen_and_does_not_ask() -> None:
    """Its encoder attends to all thirty seconds; only what is recorded counts as query."""
    model = loaded("whisper")
    sequences = pieces("whisper", model)
    positions = model.feed.batch(sequences).positions["encoder"].valid
    assert 0 < int(positions[0].sum()) < positions.shape[1]
    found = measured(model, sequences)
    uniform = found["encoder.1"]["attention_row_max"].isotropic
    assert uniform == pytest.approx(1 / positions.shape[1])
    cross = found["decoder.1"]["cross_attention_row_max"].isotropic
    assert cross == pytest.approx(1 / positions.shape[1])


@pytest.mark.parametrize("name", SPEECH)
def test_an_encoder_has_no_cross_attention(name: str) -> None:
    model = loaded(name)
    found = measured(model, pieces(name, model))
    crossing = {
        layer
        for layer, estimates in found.items()
        if estimates["cross_attention_entropy"].value is not None
    }
    assert crossing == ({"decoder.1", "decoder.2", "decoder.3"} if name == "whisper" else set())
