"""What is seen of attention is what it computes, however it is written."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from isotest.testing.recorder.record import record
from isotest.testing.subject import Claims, Subject
from isotest.testing.token_batch import TokenBatch
from tests.testing.attention_forms import (
    FORMS,
    HEAD,
    HEADS,
    NO_ATTENTION,
    WIDTH,
    Form,
    Rotary,
    RotaryHalves,
    SharedKeys,
    SharedKeysFused,
    Sink,
)

NOTHING = Claims(False, False, False, False, False, True)


def subject_of(module: nn.Module, claims: Claims = NOTHING, width: int = WIDTH) -> Subject:
    return Subject(module.eval(), type(module).__name__, width, HEADS, claims)


def heads_of(form: Form, x: torch.Tensor) -> torch.Tensor:
    """(B, H, L, dk) each head's output, in float64."""
    value = form.split(x.double() @ form.value.weight.double().T + form.value.bias.double())
    return form.weights_of(x) @ value


@pytest.mark.parametrize("form", FORMS)
def test_every_way_of_writing_attention_is_recognised(form: type[Form]) -> None:
    """Weights and outputs are those of the equations, written out in float64."""
    module, x = form(), TokenBatch(2, 5, WIDTH).tensor()
    subject = subject_of(module)
    recording = record(subject, x)
    torch.testing.assert_close(recording.output, subject.run(x), rtol=0, atol=0)
    weights = torch.cat([attention.weights for attention in recording.attentions])
    output = torch.cat([attention.output for attention in recording.attentions])
    expected = module.weights_of(x).flatten(0, 1)
    torch.testing.assert_close(weights.double(), expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(
        output.double(), heads_of(module, x).flatten(0, 1), rtol=0, atol=1e-6
    )
    for attention in recording.attentions:
        assert attention.complete


@pytest.mark.parametrize("form", FORMS)
def test_queries_keys_and_values_are_found_in_their_projections(form: type[Form]) -> None:
    module, x = form(), TokenBatch(2, 5, WIDTH).tensor()
    recording = record(subject_of(module), x)
    linear = {"query": module.query, "key": module.key, "values": module.value}
    for name, projection in linear.items():
        operands = [getattr(attention, name) for attention in recording.attentions]
        found = torch.cat([operand.projected for operand in operands])
        with torch.no_grad():
            expected = module.split(projection(x)).flatten(0, 1)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
        for operand in operands:
            assert sorted(operand.projection.tokens.tolist()) == list(range(10))


@pytest.mark.parametrize("form", FORMS)
def test_logits_and_products_belong_to_their_weights(form: type[Form]) -> None:
    """The softmax of the logits, found by their addresses, are the weights."""
    x = TokenBatch(2, 5, WIDTH).tensor()
    for attention in record(subject_of(form()), x).attentions:
        logits = attention.logits[attention.rows.long()]
        torch.testing.assert_close(
            logits.softmax(-1), attention.weights.double(), rtol=0, atol=1e-6
        )
        products = attention.query.value.double() @ attention.key.value.double().mT
        torch.testing.assert_close(
            attention.products[attention.rows.long()], products, rtol=0, atol=1e-5
        )


@pytest.mark.parametrize("form", NO_ATTENTION)
def test_what_is_no_softmax_attention_is_not_taken_for_it(form: type[Form]) -> None:
    assert record(subject_of(form()), TokenBatch(2, 5, WIDTH).tensor()).attentions == ()


def test_a_sink_makes_it_incomplete() -> None:
    (attention,) = record(subject_of(Sink()), TokenBatch(2, 5, WIDTH).tensor()).attentions
    assert not attention.complete
    assert (attention.weights.sum(-1) < 1).all()


@pytest.mark.parametrize("form", [SharedKeys, SharedKeysFused])
def test_heads_that_share_keys_each_have_them(form: type[Form]) -> None:
    module, x = form(), TokenBatch(2, 5, WIDTH).tensor()
    (attention,) = record(subject_of(module), x).attentions
    with torch.no_grad():
        keys = module.split(module.key(x))[:, :1].expand(-1, HEADS, -1, -1).flatten(0, 1)
    torch.testing.assert_close(attention.key.value, keys, rtol=0, atol=1e-6)
    torch.testing.assert_close(attention.key.projected, keys, rtol=0, atol=1e-6)


@pytest.mark.parametrize("form", [Rotary, RotaryHalves])
def test_a_rotation_keeps_lengths_and_the_projection(form: type[Form]) -> None:
    module, x = form(), TokenBatch(2, 5, WIDTH).tensor()
    (attention,) = record(subject_of(module), x).attentions
    for operand in (attention.query, attention.key):
        assert not torch.allclose(operand.value, operand.projected)
        torch.testing.assert_close(operand.value.norm(dim=-1), operand.projected.norm(dim=-1))


def test_transformers_and_torch_say_the_same_weights() -> None:
    """Independent witnesses: what the libraries return as attention weights."""
    from transformers import BertConfig
    from transformers.models.bert.modeling_bert import BertAttention

    config = BertConfig(hidden_size=WIDTH, num_attention_heads=HEADS)
    config._attn_implementation = "eager"

    class Bert(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = BertAttention(config)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            output: torch.Tensor
            output, self.weights = self.attention(x)
            return output

    class Torch(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            output: torch.Tensor
            output, self.weights = self.attention(x, x, x, average_attn_weights=False)
            return output

    x = TokenBatch(2, 5, WIDTH, scale=3.0).tensor()
    for module in (Bert(), Torch()):
        (attention,) = record(subject_of(module), x).attentions
        said = module.weights.flatten(0, 1)
        torch.testing.assert_close(attention.weights, said, rtol=0, atol=1e-6)
        assert said.std() > 0.01


def test_a_projection_can_be_changed_in_passing() -> None:
    """Keys of zero: all of them are alike, so the output is the mean of the values."""
    module, x = Form(), TokenBatch(2, 5, WIDTH).tensor()
    subject = subject_of(module)
    (before,) = record(subject, x).attentions
    assert before.key.projection is not None
    changes = {before.key.projection.number: torch.zeros_like}
    (after,) = record(subject, x, changes=changes).attentions
    mean = before.values.value.mean(1, keepdim=True).expand_as(after.output)
    torch.testing.assert_close(after.output, mean, rtol=0, atol=1e-6)
    assert not torch.allclose(before.output, mean, atol=1e-2)


def test_nothing_is_left_behind() -> None:
    """Neither the fast path nor torch's dispatch is different afterwards, also after a failure."""

    class Fails(Form):
        def weigh(self, scores: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("in the middle")

    x = TokenBatch(2, 5, WIDTH).tensor()
    original = x.clone()
    with pytest.raises(RuntimeError, match="in the middle"):
        record(subject_of(Fails()), x)
    assert torch.backends.mha.get_fastpath_enabled()
    record(subject_of(Form()), x)
    assert torch.backends.mha.get_fastpath_enabled()
    assert torch.equal(x, original)
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None


def test_torchs_fast_path_is_seen_as_what_it_stands_for() -> None:
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 16, batch_first=True)
    subject, x = subject_of(layer), TokenBatch(2, 5, WIDTH).tensor()
    recording = record(subject, x)
    torch.testing.assert_close(recording.output, subject.run(x), rtol=0, atol=1e-5)
    (attention,) = recording.attentions
    assert attention.query.value.shape == (2 * HEADS, 5, HEAD)
