"""What holds for every family: nothing off, nothing changed; everything is taken back."""

from __future__ import annotations

from typing import Any

import pytest
import timm
import torch
import transformers

from isotest.errors import SourceError
from isotest.models.ablations import NAMED, Ablation, ablated
from tests.models.ablations.families import FAMILIES, batch, model, states


def equal(first: list[torch.Tensor], second: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("family", FAMILIES)
def test_all_switches_on_is_bit_equal_and_every_switch_does_something(family: str) -> None:
    module, inputs = model(family), batch(family)
    untouched = states(module, inputs)
    with ablated(module, "full"):
        assert equal(states(module, inputs), untouched)
    for switch in ("attention_skip", "mlp_skip", "mlp", "layer_norm"):
        with ablated(module, {switch: False}):
            changed = states(module, inputs)
        assert torch.equal(changed[0], untouched[0])  # embeddings are before all blocks
        assert all(
            not torch.allclose(a, b, atol=1e-3)
            for a, b in zip(changed[1:], untouched[1:], strict=True)
        )
    assert equal(states(module, inputs), untouched)


def traces(module: torch.nn.Module) -> dict[str, tuple[set[str], int, int]]:
    """What an edit could leave behind: attributes and hooks of instances."""
    return {
        path: (set(vars(part)), len(part._forward_hooks), len(part._forward_pre_hooks))
        for path, part in module.named_modules()
    }


def fail(module: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> None:
    with ablated(module, {"attention_skip": False, "mlp_skip": False, "layer_norm": False}):
        states(module, inputs)
        with ablated(module, "san"):
            states(module, inputs)
            raise RuntimeError("in between")


@pytest.mark.parametrize("family", FAMILIES)
def test_everything_is_taken_back_after_an_exception(family: str) -> None:
    module, inputs = model(family), batch(family)
    untouched = states(module, inputs)
    before = traces(module)
    with pytest.raises(RuntimeError, match="in between"):
        fail(module, inputs)
    assert traces(module) == before
    assert equal(states(module, inputs), untouched)


def test_a_model_beside_it_is_not_touched() -> None:
    first, second, inputs = model("gpt2"), model("gpt2"), batch("gpt2")
    untouched = states(second, inputs)
    with ablated(first, "san"):
        assert equal(states(second, inputs), untouched)


def test_a_context_inside_another_leaves_it_as_it_was() -> None:
    module, inputs = model("vit"), batch("vit")
    with ablated(module, "san+skip"):
        outer = states(module, inputs)
        with ablated(module, {"attention_skip": False}):
            assert not equal(states(module, inputs), outer)
        assert equal(states(module, inputs), outer)


def test_a_head_model_is_ablated_like_its_base() -> None:
    config = transformers.BertConfig(
        hidden_size=16, num_attention_heads=2, num_hidden_layers=2, intermediate_size=24
    )
    whole = transformers.BertForMaskedLM(config).eval()
    ids = torch.arange(5, 12)[None]
    with torch.no_grad():
        with ablated(whole, "san"):
            from_head = whole.bert(ids).last_hidden_state
        with ablated(whole.bert, "san"):
            from_base = whole.bert(ids).last_hidden_state
    assert torch.equal(from_head, from_base)


def test_hooks_on_blocks_see_the_ablated_output() -> None:
    module, inputs, seen = model("llama"), batch("llama"), []
    handle = module.layers[0].register_forward_hook(lambda _m, _i, output: seen.append(output))
    with ablated(module, "san"):
        second = states(module, inputs)[1]
    handle.remove()
    assert torch.equal(seen[0], second)


def _timm() -> Any:
    return timm.create_model("vit_tiny_patch16_224", depth=2, embed_dim=24, num_heads=2)


def _t5() -> Any:
    return transformers.T5EncoderModel(
        transformers.T5Config(d_model=8, d_kv=4, d_ff=8, num_layers=2, num_heads=2, vocab_size=20)
    )


@pytest.mark.parametrize(
    ("build", "found"),
    [
        (_timm, "VisionTransformer, whose blocks are Block of timm"),
        (_t5, "T5EncoderModel, whose blocks are T5Block of transformers"),
        (lambda: torch.nn.Linear(2, 2), "Linear, whose blocks are Linear of torch"),
    ],
)
def test_an_unknown_family_is_refused_and_the_known_are_named(build: Any, found: str) -> None:
    with pytest.raises(SourceError, match=found) as caught, ablated(build(), "full"):
        pass
    assert "AlbertLayer, BertLayer" in str(caught.value)


def test_a_third_sublayer_is_refused() -> None:
    config = transformers.BertConfig(
        hidden_size=16,
        num_attention_heads=2,
        num_hidden_layers=1,
        intermediate_size=24,
        is_decoder=True,
        add_cross_attention=True,
    )
    module = transformers.BertModel(config)
    with pytest.raises(SourceError, match="third sublayer"), ablated(module, "san"):
        pass


def test_an_mlp_in_chunks_is_refused_where_it_would_be_wrong() -> None:
    module = model("albert")
    module.encoder.albert_layer_groups[0].albert_layers[0].chunk_size_feed_forward = 2
    with pytest.raises(SourceError, match="chunk_size_feed_forward = 0"), ablated(module, "san"):
        pass


def test_an_mlp_in_chunks_changes_nothing_elsewhere() -> None:
    module, inputs = model("bert"), batch("bert")
    with ablated(module, "san+mlp"):
        whole = states(module, inputs)
        for layer in module.encoder.layer:
            layer.chunk_size_feed_forward = 1
        chunks = states(module, inputs)
    torch.testing.assert_close(chunks, whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("sann", "unknown variant 'sann'; did you mean 'san'"),
        ({"skip": False}, "unknown switch 'skip'"),
        ({"mlp": 0}, "expected mlp to be true or false, found 0"),
        ({}, "expected one of full, san, san\\+mlp"),
        (None, "expected one of full, san"),
    ],
)
def test_what_is_no_ablation_is_one_message(given: Any, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        Ablation.of(given)


def test_what_is_off_is_described_once_and_nothing_off_is_no_difference() -> None:
    assert Ablation(mlp=False, mlp_skip=False).describe() == Ablation(mlp=False).describe()
    assert NAMED["san+mlp"].describe() == {"ablated": "attention_skip, mlp_skip"}
    assert NAMED["full"].describe() == {}
