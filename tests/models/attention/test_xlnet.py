"""XLNet's attention against the probabilities that transformers returns."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import BertConfig, BertModel, XLNetConfig, XLNetModel

from isotest.models.attention.xlnet import observer
from tests.models.attention.witness import Seen, loaded, probabilities, watched


def model(**config: Any) -> XLNetModel:
    torch.manual_seed(0)
    tiny = {"d_model": 24, "n_layer": 3, "n_head": 3, "d_inner": 16, "vocab_size": 50}
    module = XLNetModel(XLNetConfig(**(tiny | config)))
    with torch.no_grad():
        for parameter in module.parameters():
            # Also what starts at zero: the biases of the query.
            parameter.copy_(torch.randn_like(parameter) * 0.5)
    return module.double()


def inputs(length: int = 7) -> dict[str, torch.Tensor]:
    ids = torch.randint(50, (2, length), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[1, :3] = 0
    types = torch.zeros_like(ids)
    types[:, length // 2 :] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def check(seen: Seen, layers: int) -> None:
    """Everywhere, also at padding: there, XLNet lets a position see itself."""
    assert list(seen.calls) == [f"layer.{n}.rel_attn" for n in range(layers)]
    for calls, expected in zip(seen.calls.values(), seen.output.attentions, strict=True):
        (call,) = calls
        assert not call.cross
        torch.testing.assert_close(probabilities(call), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("bi_data", [False, True])
def test_equals_the_librarys_probabilities(bi_data: bool) -> None:
    check(watched(model(bi_data=bi_data), inputs(), observer, output_attentions=True), 3)


@pytest.mark.parametrize("attn_type", ["bi", "uni"])
def test_without_padding_and_segments(attn_type: str) -> None:
    # In one direction only, transformers' XLNet takes no padding.
    ids = {"input_ids": inputs()["input_ids"]}
    check(watched(model(attn_type=attn_type), ids, observer, output_attentions=True), 3)


def test_in_float32() -> None:
    seen = watched(model().float(), inputs(), observer, output_attentions=True)
    for calls, expected in zip(seen.calls.values(), seen.output.attentions, strict=True):
        torch.testing.assert_close(probabilities(calls[0]), expected, rtol=0, atol=1e-5)


def test_keys_of_an_earlier_segment_come_first() -> None:
    module = model(mem_len=5, reuse_len=5)
    with torch.inference_mode():
        mems = module.eval()(**inputs()).mems
    seen = watched(module, inputs() | {"mems": mems}, observer, output_attentions=True)
    assert seen.calls["layer.0.rel_attn"][0].key.shape[2] == 12
    check(seen, 3)


def test_positions_and_segments_are_bias_and_content_is_not() -> None:
    module = model(n_layer=1)
    attention: Any = module.get_submodule("layer.0.rel_attn")
    with torch.no_grad():
        attention.r.zero_()
        attention.seg_embed.zero_()
    call = watched(module, inputs(), observer).calls["layer.0.rel_attn"][0]
    assert call.bias is not None
    assert call.bias.abs().max() == 0
    assert (call.scale * call.query @ call.key.mT).abs().max() > 0.1


def test_padding_is_seen_by_no_other_position() -> None:
    call = watched(model(), inputs(), observer).calls["layer.0.rel_attn"][0]
    assert call.allowed is not None
    allowed = call.allowed.expand(2, 1, 7, 7)[1, 0]
    expected = torch.ones(7, 7, dtype=torch.bool)
    expected[:, :3] = torch.eye(7, dtype=torch.bool)[:, :3]
    assert torch.equal(allowed, expected)


def test_two_streams_are_named() -> None:
    target = torch.zeros(2, 1, 7)
    target[:, 0, 6] = 1
    seen = watched(model().float(), inputs() | {"target_mapping": target}, observer)
    assert not seen.calls
    assert len(seen.unseen) == 3
    assert "target_mapping" in seen.unseen["layer.0.rel_attn"]


def test_another_family_is_left_to_others() -> None:
    config = BertConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
    )
    assert observer(loaded(BertModel(config))) is None
