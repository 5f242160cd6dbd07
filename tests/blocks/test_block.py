"""The block against its equations, each switch by itself; its masks; its quantities; bad input."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from isotest.blocks import BlockConfig, TransformerBlock, TransformerStack
from isotest.errors import BlockError
from tests.blocks.naive import (
    ACTIVATIONS,
    naive_attention,
    naive_block,
    naive_rms_norm,
    random_block,
)

SMALL = BlockConfig(width=12, heads=3, hidden=20, layer_norm_eps=1e-6)

MODERN: dict[str, Any] = {
    "layer_norm": "pre",
    "normalisation": "rmsnorm",
    "activation": "silu",
    "gated": True,
    "bias": False,
}
SWITCHES: dict[str, dict[str, Any]] = {
    "attention off": {"attention": False},
    "attention skip off": {"attention_skip": False},
    "mlp off": {"mlp": False},
    "mlp skip off": {"mlp_skip": False},
    "pre-norm": {"layer_norm": "pre"},
    "no norm": {"layer_norm": "none"},
    "rms norm": {"normalisation": "rmsnorm"},
    "gated": {"gated": True},
    "causal": {"causal": True},
    "no bias": {"bias": False},
    "gelu by tanh": {"activation": "gelu_tanh"},
    "relu": {"activation": "relu"},
    "silu": {"activation": "silu"},
    "one head": {"heads": 1},
    "a coarse eps": {"layer_norm_eps": 0.1},
}
COMBINATIONS: dict[str, dict[str, Any]] = {
    "as BERT": {},
    **SWITCHES,
    "pure attention": {
        "attention_skip": False,
        "mlp": False,
        "layer_norm": "none",
        "bias": False,
    },
    "mlp alone": {"attention": False, "mlp_skip": False, "layer_norm": "none"},
    "as GPT-2": {"layer_norm": "pre", "causal": True, "activation": "gelu_tanh"},
    "no skips": {"attention_skip": False, "mlp_skip": False, "layer_norm": "pre"},
    "rms norm first": {"layer_norm": "pre", "normalisation": "rmsnorm"},
    "a coarse eps in the root": {"normalisation": "rmsnorm", "layer_norm_eps": 0.1},
    "gated by relu": {"gated": True, "activation": "relu", "mlp_skip": False},
    "modern": MODERN,
    "modern and causal": {**MODERN, "causal": True},
}


def inputs(sequences: int = 2, length: int = 5, width: int = 12, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(sequences, length, width, generator=generator, dtype=torch.float64)


# Padded on the right, and on the left: there the first causal queries see no key at all.
VALID = torch.tensor([[True, True, True, False, False], [False, False, True, True, True]])


@pytest.mark.parametrize("valid", [None, VALID], ids=["no mask", "masked"])
@pytest.mark.parametrize("changes", COMBINATIONS.values(), ids=COMBINATIONS)
def test_the_block_is_its_equations(changes: dict[str, Any], valid: Tensor | None) -> None:
    block = random_block(replace(SMALL, **changes))
    with torch.no_grad():
        output = block(inputs(), valid)
    assert output.shape == (2, 5, 12)
    np.testing.assert_allclose(output.numpy(), naive_block(block, inputs(), valid), atol=1e-12)


@pytest.mark.parametrize("changes", SWITCHES.values(), ids=SWITCHES)
def test_each_switch_matters(changes: dict[str, Any]) -> None:
    """So the test above can fail: with a switch ignored, the output would be another."""
    block = random_block(SMALL)
    other = random_block(replace(SMALL, **changes))
    # Where they have the same parts, the same parameters; a gate is the other's own.
    shared = block.state_dict()
    other.load_state_dict(
        {name: shared.get(name, own) for name, own in other.state_dict().items()}, strict=True
    )
    with torch.no_grad():
        difference = (block(inputs()) - other(inputs())).abs().max()
    assert difference > 1e-4


def test_every_field_of_the_configuration_is_tried_here() -> None:
    tried = {name for changes in SWITCHES.values() for name in changes}
    sizes_and_weights = {"width", "hidden", "depth", "initialisation"}
    assert tried | sizes_and_weights == {field.name for field in fields(BlockConfig)}


@pytest.mark.parametrize("valid", [None, VALID], ids=["no mask", "masked"])
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
def test_a_trace_has_every_quantity(causal: bool, valid: Tensor | None) -> None:
    block = random_block(replace(SMALL, causal=causal))
    attention = block.attention
    assert attention is not None
    parameters = {name: value.detach().numpy() for name, value in block.named_parameters()}
    expected = naive_attention(parameters, block.config, inputs().numpy(), valid)
    with torch.no_grad():
        trace = attention.trace(inputs(), valid)
    scores = trace.scores.numpy()
    assert np.array_equal(np.isneginf(scores), np.isnan(expected.scores))
    np.testing.assert_allclose(
        np.where(np.isneginf(scores), np.nan, scores), expected.scores, atol=1e-12
    )
    np.testing.assert_allclose(trace.weights.numpy(), expected.weights, atol=1e-12)
    np.testing.assert_allclose(trace.heads.numpy(), expected.heads, atol=1e-12)
    bias = parameters["attention.output.bias"]
    total = trace.contributions.sum(1).numpy() + bias
    np.testing.assert_allclose(total, expected.output, atol=1e-12)
    assert trace.query.shape == trace.key.shape == trace.value.shape == (2, 3, 5, 4)
    assert trace.contributions.shape == (2, 3, 5, 12)


@pytest.mark.parametrize("layer_norm", ["post", "pre", "none"])
def test_the_output_is_computed_from_what_the_trace_shows(layer_norm: Any) -> None:
    """Bit for bit: what is analysed is what the block did."""
    config = replace(SMALL, layer_norm=layer_norm, attention_skip=False, mlp=False)
    block = random_block(config).float()
    attention = block.attention
    assert attention is not None
    x = inputs().float()
    with torch.no_grad():
        heads = block.trace(x, VALID).heads
        attended = attention.output(heads.transpose(1, 2).reshape(2, 5, 12))
        expected = block.attention_norm(attended) if layer_norm == "post" else attended
        assert torch.equal(block(x, VALID), expected)


def test_a_head_reads_its_own_entries() -> None:
    """With keys and queries zero, each head averages its own quarter of the values."""
    block = random_block(replace(SMALL, bias=False))
    attention = block.attention
    assert attention is not None
    x = inputs()
    with torch.no_grad():
        attention.query.weight.zero_()
        attention.value.weight.copy_(torch.eye(12))
        heads = attention.trace(x).heads
    for head in range(3):
        mean = x[:, :, 4 * head : 4 * head + 4].mean(1, keepdim=True).expand(2, 5, 4)
        torch.testing.assert_close(heads[:, head], mean)


def test_a_query_without_keys_gets_the_bias_and_no_nan() -> None:
    block = random_block(SMALL)
    attention = block.attention
    assert attention is not None
    valid = torch.tensor([[False] * 5, [True] * 5])
    x = inputs().requires_grad_()
    trace = attention.trace(x, valid)
    assert torch.equal(trace.weights[0], torch.zeros(3, 5, 5, dtype=torch.float64))
    output = attention(x, valid)
    assert torch.equal(output[0], attention.output.bias.expand(5, 12))
    output.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad[0], torch.zeros(5, 12, dtype=torch.float64))
    assert all(
        parameter.grad is not None and bool(parameter.grad.isfinite().all())
        for parameter in attention.parameters()
    )
    assert bool(block(x, valid).isfinite().all())


def test_padding_changes_nothing_elsewhere() -> None:
    block = random_block(SMALL)
    x, other = inputs(), inputs(seed=2)
    padded = torch.where(VALID[..., None], x, other)
    with torch.no_grad():
        assert torch.equal(block(x, VALID)[VALID], block(padded, VALID)[VALID])
        assert not torch.equal(block(x)[VALID], block(padded)[VALID])


def test_a_causal_block_does_not_look_ahead() -> None:
    x, other = inputs(), inputs(seed=2)
    x_then_other = torch.cat([x[:, :3], other[:, 3:]], 1)
    for causal in (True, False):
        block = random_block(replace(SMALL, causal=causal))
        with torch.no_grad():
            same = torch.equal(block(x)[:, :3], block(x_then_other)[:, :3])
        assert same is causal


def test_a_stack_applies_its_blocks_in_turn() -> None:
    config = replace(SMALL, depth=3)
    stack = TransformerStack(config, seed=4)
    x = inputs().float()
    expected = x
    with torch.no_grad():
        for number in range(3):
            expected = TransformerBlock(config, seed=4, number=number)(expected, VALID)
        assert torch.equal(stack(x, VALID), expected)
    assert len(stack.blocks) == 3


def test_other_dtypes_stay_what_they_are() -> None:
    block = TransformerBlock(SMALL).to(torch.bfloat16)
    assert block(inputs().to(torch.bfloat16), VALID).dtype is torch.bfloat16


def test_presets_are_the_published_ones() -> None:
    bert, vit = BlockConfig.bert(), BlockConfig.vit()
    assert (bert.width, bert.heads, bert.hidden, bert.head_width) == (768, 12, 3072, 64)
    assert (bert.layer_norm, bert.layer_norm_eps) == ("post", 1e-12)
    assert (vit.layer_norm, vit.layer_norm_eps) == ("pre", 1e-6)
    modern = BlockConfig.modern()
    assert modern == replace(
        bert, layer_norm_eps=1e-6, hidden=2048, **{name: MODERN[name] for name in MODERN}
    )


def test_a_gated_mlp_of_two_thirds_the_width_has_as_many_weights() -> None:
    """Shazeer 2020, section 3: three maps of 2/3 the size in place of two."""
    gated, plain = (
        sum(matrix.numel() for matrix in mlp.parameters() if matrix.dim() == 2)
        for mlp in (
            TransformerBlock(BlockConfig.modern()).mlp,
            TransformerBlock(BlockConfig.bert()).mlp,
        )
        if mlp is not None
    )
    assert gated == plain


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_rms_norm_is_a_loop_over_numbers(scale: float) -> None:
    """Also where ε is as large as the mean square, and of what has a mean."""
    block = random_block(replace(SMALL, **MODERN))
    x = scale * (inputs() + 2)
    with torch.no_grad():
        found = block.mlp_norm(x).numpy()
    gain = block.get_parameter("mlp_norm.weight").detach().numpy()
    np.testing.assert_allclose(found, naive_rms_norm(x.numpy(), gain, 1e-6), rtol=1e-12)
    assert [name for name, _ in block.mlp_norm.named_parameters()] == ["weight"]


def test_rms_norm_takes_no_mean_off() -> None:
    """With gain 1, equal numbers of either sign become ±1; of LayerNorm they would be 0."""
    block = TransformerBlock(replace(SMALL, **MODERN)).double()
    x = torch.tensor([3.0, -3.0], dtype=torch.float64)[:, None].expand(2, 12)
    with torch.no_grad():
        torch.testing.assert_close(block.attention_norm(x), x / 3, rtol=1e-6, atol=0)


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu", "silu"])
def test_a_gated_mlp_is_its_formula(activation: Any) -> None:
    """Shazeer 2020, equation 6, with biases: (act(xV + c)·(xW + b))W₂ + b₂."""
    block = random_block(replace(SMALL, gated=True, activation=activation))
    weights = {name: value.detach().numpy() for name, value in block.named_parameters()}
    assert block.mlp is not None
    with torch.no_grad():
        found = block.mlp(inputs()).numpy()
    function = ACTIVATIONS[activation]
    for place in np.ndindex(2, 5):
        x = inputs().numpy()[place]
        gate = function(weights["mlp.gate.weight"] @ x + weights["mlp.gate.bias"])
        hidden = weights["mlp.hidden.weight"] @ x + weights["mlp.hidden.bias"]
        expected = weights["mlp.output.weight"] @ (gate * hidden) + weights["mlp.output.bias"]
        np.testing.assert_allclose(found[place], expected, atol=1e-12)


def test_a_gate_that_is_shut_lets_nothing_through() -> None:
    """silu(0) = 0: with no bias, a gate of zero weights makes the MLP zero."""
    block = random_block(replace(SMALL, **MODERN))
    assert block.mlp is not None
    assert block.mlp.gate is not None
    with torch.no_grad():
        assert block.mlp(inputs()).abs().max() > 0.1
        block.mlp.gate.weight.zero_()
        assert torch.equal(block.mlp(inputs()), torch.zeros(2, 5, 12, dtype=torch.float64))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heads": 5}, "width to be a multiple of heads, found width = 12 and heads = 5"),
        ({"width": 0}, "expected width to be a whole number of at least 1, found 0"),
        ({"hidden": 2.0}, "expected hidden to be a whole number of at least 1, found 2.0"),
        ({"depth": True}, "expected depth to be a whole number of at least 1, found True"),
        ({"depth": "2"}, "found '2'"),
        ({"causal": 1}, "expected causal to be true or false, found 1"),
        ({"layer_norm": "posst"}, "unknown layer_norm 'posst'; did you mean 'post'?"),
        ({"layer_norm": None}, "unknown layer_norm None"),
        ({"normalisation": "rms_norm"}, "unknown normalisation 'rms_norm'; did you mean 'rmsn"),
        ({"normalisation": True}, "unknown normalisation True"),
        ({"gated": "silu"}, "expected gated to be true or false, found 'silu'"),
        ({"gated": 1}, "expected gated to be true or false, found 1"),
        ({"activation": ["gelu"]}, "unknown activation ['gelu']"),
        ({"initialisation": "berd"}, "unknown initialisation 'berd'; did you mean 'bert'?"),
        ({"layer_norm_eps": 0.0}, "expected layer_norm_eps to be a positive number, found 0.0"),
        ({"layer_norm_eps": float("nan")}, "found nan"),
        ({"layer_norm_eps": "1"}, "found '1'"),
        ({"attention": False, "mlp": False}, "attention and mlp are both false"),
    ],
)
def test_a_bad_configuration_is_one_clear_message(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BlockError) as caught:
        replace(SMALL, **changes)
    assert message in str(caught.value)
    assert str(caught.value).startswith("BlockConfig: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("x", "valid", "message"),
    [
        (torch.zeros(5, 12), None, "(batch, length, 12), found (5, 12)"),
        (torch.zeros(2, 5, 13), None, "(batch, length, 12), found (2, 5, 13)"),
        (torch.zeros(2, 5, 12), torch.ones(2, 5), "bool of shape (2, 5), found float32"),
        (torch.zeros(2, 5, 12), torch.ones(5, 2).bool(), "found bool of shape (5, 2)"),
    ],
)
def test_bad_input_is_one_clear_message(x: Tensor, valid: Tensor | None, message: str) -> None:
    with pytest.raises(BlockError) as caught:
        TransformerBlock(SMALL)(x, valid)
    assert message in str(caught.value)


def test_without_attention_there_is_nothing_to_trace() -> None:
    block = TransformerBlock(replace(SMALL, attention=False))
    with pytest.raises(BlockError, match="attention = false, so there is nothing to trace"):
        block.trace(inputs().float())
