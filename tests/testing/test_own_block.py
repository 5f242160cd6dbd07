"""What must hold of the synthetic block, whatever it is made of.

Blocks and inputs are Hypothesis's; what it prints of a failure is one line that makes both again.
In float64, so that what is exact on paper can be told from what is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from isotest.blocks import BlockConfig, SelfAttention, TransformerBlock
from isotest.testing import attention_maps, blocks, embedding_tables, token_batches
from isotest.testing.properties.attention import ATTENTION_PROPERTIES
from isotest.testing.recorder.record import record
from isotest.testing.seeded_block import SeededBlock
from isotest.testing.subject import Claims, Subject
from isotest.testing.token_batch import TokenBatch

if TYPE_CHECKING:
    from typing import Any

    from hypothesis.strategies import DrawFn
    from torch import Tensor

    from isotest.testing.attention_map import AttentionMap
    from isotest.testing.property import Property
    from isotest.testing.seeded_table import SeededTable

Example = tuple[SeededBlock, TokenBatch]

CLOSE = 1e-8
"""Of two float64 results that are equal on paper: the machine epsilon, times 1/√layer_norm_eps, by
which a LayerNorm may magnify what is lost where the entries of a vector cancel, times 50."""

tried = settings(max_examples=40, deadline=None)


@st.composite
def examples(draw: DrawFn, /, sequences: int = 1, length: int = 1, **fixed: Any) -> Example:
    """A block and a batch of its width."""
    block = draw(blocks(**fixed))
    batch = draw(token_batches(block.config.width, sequences=sequences, length=length))
    return block, batch


def made(example: Example) -> tuple[TransformerBlock, Tensor]:
    """Block and input in float64, without gradients."""
    block, batch = example
    module = block.module().double().requires_grad_(False)
    return module, batch.tensor(torch.float64)


def attention_of(block: TransformerBlock) -> SelfAttention:
    assert block.attention is not None
    return block.attention


def drawn(batch: TokenBatch, *shape: int) -> Tensor:
    """N(0, 1) beside the batch."""
    generator = torch.Generator().manual_seed(batch.seed + 1)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def some_valid(batch: TokenBatch) -> Tensor:
    """(B, L) bool: at least the last position is masked; perhaps all of them are."""
    valid = drawn(batch, batch.sequences, batch.length) > 0
    valid[:, -1] = False
    return valid


def equal(got: Tensor, expected: Tensor) -> None:
    scale = max(1.0, float(expected.abs().max())) if expected.numel() else 1.0
    torch.testing.assert_close(got, expected, rtol=0, atol=CLOSE * scale)


# The softmax


@given(examples())
@tried
def test_rows_of_the_softmax_sum_to_one(example: Example) -> None:
    """Vaswani et al. 2017, equation 1. Of every block; keys that are not seen weigh nothing, and a
    row without any key is zero."""
    block, x = made(example)
    valid = some_valid(example[1])
    for mask in (None, valid):
        weights = block.trace(x, mask).weights
        allowed = attention_of(block).allowed(x, mask)
        seen = torch.ones_like(weights) if allowed is None else allowed.expand_as(weights)
        assert (weights >= 0).all()
        assert (weights[~seen.bool()] == 0).all()
        equal(weights.sum(-1), seen.bool().any(-1).double())


@given(examples(sequences=2, length=2))
@tried
def test_scores_are_inner_products_over_the_root_of_their_width(example: Example) -> None:
    """Vaswani et al. 2017, section 3.2.1, from the weights, entry by entry."""
    block, x = made(example)
    attention, heads = attention_of(block), block.config.heads
    entering = block.attention_norm(x) if block.config.layer_norm == "pre" else x
    query, key = (
        functional.linear(entering, part.weight, part.bias).unflatten(-1, (heads, -1))
        for part in (attention.query, attention.key)
    )
    expected = torch.einsum("bihd,bjhd->bhij", query, key) / query.shape[-1] ** 0.5
    scores = block.trace(x).scores
    seen = torch.isfinite(scores)
    equal(scores[seen], expected[seen])


@given(examples(bias=True))
@tried
def test_a_common_shift_of_scores_changes_nothing(example: Example) -> None:
    """softmax(s + c) = softmax(s): a bias of the keys adds q·b to all scores of a row. Of every
    block, masks and causality included."""
    block, x = made(example)
    valid = some_valid(example[1])
    before = block(x), block(x, valid)
    attention_of(block).key.bias.add_(drawn(example[1], example[1].width))
    for got, expected in zip((block(x), block(x, valid)), before, strict=True):
        equal(got, expected)


# The values


@given(examples())
@tried
def test_heads_stay_in_the_hull_of_their_values(example: Example) -> None:
    """Weights that are not negative and sum to one average: no coordinate leaves its range. Of
    every block, in front of the output projection; so pure attention never separates."""
    block, x = made(example)
    trace = block.trace(x)
    low, high = trace.value.amin(2, keepdim=True), trace.value.amax(2, keepdim=True)
    slack = CLOSE * trace.value.abs().max()
    assert (trace.heads >= low - slack).all()
    assert (trace.heads <= high + slack).all()


@given(st.lists(attention_maps(5), min_size=1, max_size=5), st.integers(0, 999))
@tried
def test_layers_of_pure_attention_never_widen_a_coordinate(
    maps: list[AttentionMap], seed: int
) -> None:
    """However many maps, whatever they are: Dong et al. 2021's pure attention can only contract."""
    values = TokenBatch(1, 5, 3, seed=seed).tensor(torch.float64)[0]
    for example in maps:
        averaged = example.tensor()[0] @ values
        width = values.amax(0) - values.amin(0)
        assert (averaged.amax(0) - averaged.amin(0) <= width + 1e-12).all()
        values = averaged


@given(examples())
@tried
def test_positions_that_are_alike_stay_alike(example: Example) -> None:
    """An average of one vector is that vector. Of every block without positions, causal ones
    included: they see fewer copies of the same."""
    block, batch = example
    alike = TokenBatch(batch.sequences, batch.length, batch.width, batch.seed, "constant")
    module, x = made((block, alike))
    output = module(x)
    equal(output, output[:, :1].expand_as(output))


# Who sees whom


@given(examples(length=2, causal=False))
@tried
def test_a_permutation_of_positions_permutes_the_output(example: Example) -> None:
    """Nothing tells positions apart. Of blocks that are not causal; a mask is permuted along."""
    block, x = made(example)
    batch = example[1]
    order = drawn(batch, batch.length).argsort()
    valid = some_valid(batch)
    equal(block(x[:, order]), block(x)[:, order])
    equal(block(x[:, order], valid[:, order]), block(x, valid)[:, order])


def test_a_causal_block_is_not_permuted_along() -> None:
    """So the property could fail."""
    block, x = made((SeededBlock(BlockConfig(4, 2, 4, causal=True), 0, 0.3), TokenBatch(1, 4, 4)))
    order = torch.tensor([3, 2, 1, 0])
    assert (block(x[:, order]) - block(x)[:, order]).abs().max() > 0.1


@given(examples(length=2, causal=True))
@tried
def test_a_causal_block_never_looks_ahead(example: Example) -> None:
    """Whatever comes after a position leaves its output as it is. Of causal blocks; the gradient
    says the same."""
    block, x = made(example)
    batch = example[1]
    at = batch.seed % (batch.length - 1)
    changed = x.clone()
    changed[:, at + 1 :] = 10 * drawn(batch, *x[:, at + 1 :].shape)
    equal(block(changed)[:, : at + 1], block(x)[:, : at + 1])
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(block(x)[:, : at + 1].square().sum(), x)
    assert (gradient[:, at + 1 :] == 0).all()


@given(examples(length=2, causal=False, moved=0.3, layer_norm="none", attention_skip=False))
@tried
def test_a_block_that_is_not_causal_looks_ahead(example: Example) -> None:
    """So the property could fail: the last position has a gradient at the first output."""
    block, x = made(example)
    if block.config.mlp:
        # What a dead ReLU hides is not the attention's doing.
        block.mlp = None
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(block(x)[:, 0].square().sum(), x)
    assert (gradient[:, -1] != 0).any() or (x == 0).all()


@given(examples(length=2))
@tried
def test_a_masked_key_has_no_influence_and_no_gradient(example: Example) -> None:
    """Its weight is the exponential of −∞. Of every block; at positions that are valid."""
    block, x = made(example)
    batch = example[1]
    valid = some_valid(batch)
    changed = torch.where(valid[..., None], x, 10 * drawn(batch, *x.shape))
    equal(block(changed, valid)[valid], block(x, valid)[valid])
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(block(x, valid)[valid].square().sum(), x)
    assert (gradient[~valid] == 0).all()


@given(examples(sequences=2, length=2))
@tried
def test_a_sequence_is_the_same_alone_in_a_batch_and_padded(example: Example) -> None:
    """No sublayer mixes sequences. Of every block; padding on the right, masked."""
    block, x = made(example)
    output = block(x)
    for index, sequence in enumerate(x):
        equal(block(sequence[None])[0], output[index])
    length = x.shape[1]
    padded = functional.pad(x, (0, 0, 0, 3), value=7.0)
    valid = torch.arange(length + 3).expand(len(x), -1) < length
    equal(block(padded, valid)[:, :length], output)


# The input


@st.composite
def embedded(draw: DrawFn) -> tuple[SeededBlock, SeededTable]:
    block = draw(blocks())
    return block, draw(embedding_tables(block.config.width))


@given(embedded())
@tried
def test_a_bias_on_the_input_shifts_the_expected_queries_and_keys(
    example: tuple[SeededBlock, SeededTable],
) -> None:
    """E(Q) = W_Q x̄ + b_Q and E(K) = W_K x̄ + b_K, since expectation is linear and projections are
    affine (Godey et al. 2023, section 4); so x + b shifts both by W·b. Of blocks whose attention
    gets their own input: post-norm and no norm."""
    seeded, table = example
    block, x = seeded.module().double().requires_grad_(False), table.tensor().double()
    if block.config.layer_norm == "pre":
        x = block.attention_norm(x)
        block.attention_norm = torch.nn.Identity()
    b = table.bias(10.0).double()
    attention = attention_of(block)
    plain, moved = block.trace(x), block.trace(x + b)
    for name, part in (("query", attention.query), ("key", attention.key)):
        expected, shifted = (
            getattr(trace, name).transpose(1, 2).flatten(2).mean((0, 1)) for trace in (plain, moved)
        )
        offset = 0.0 if part.bias is None else part.bias
        equal(expected, part.weight @ x.mean((0, 1)) + offset)
        equal(shifted - expected, part.weight @ b)


def test_a_norm_in_front_takes_the_shift_away() -> None:
    """So the statement could fail, and its condition is needed."""
    config = BlockConfig(width=6, heads=2, hidden=4, layer_norm="pre", layer_norm_eps=1e-6)
    block, x = made((SeededBlock(config, 0, 0.3), TokenBatch(2, 5, 6)))
    b = 3 * torch.ones(6, dtype=torch.float64)
    shift = (block.trace(x + b).query - block.trace(x).query).abs().max()
    assert shift < 1e-6 < 0.1 < (attention_of(block).query.weight @ b).abs().max()


def rotation(width: int, batch: TokenBatch, *, keep_ones: bool) -> Tensor:
    """Orthogonal, at random; with ``keep_ones`` it leaves (1, …, 1) as it is."""
    turn: Tensor = torch.linalg.qr(drawn(batch, width, width)).Q
    if not keep_ones:
        return turn
    ones = torch.ones(width, 1, dtype=torch.float64)
    basis = torch.linalg.qr(torch.cat((ones, torch.eye(width).double()[:, 1:]), 1)).Q
    inner = torch.eye(width, dtype=torch.float64)
    inner[1:, 1:] = torch.linalg.qr(drawn(batch, width - 1, width - 1)).Q
    kept: Tensor = basis @ inner @ basis.T
    return kept


def rotate_weights(block: TransformerBlock, turn: Tensor) -> None:
    """What reads x gets W·R, what writes to it Rᵀ·W, for x·R instead of x."""
    reads, writes = [], []
    if block.attention is not None:
        reads += [block.attention.query, block.attention.key, block.attention.value]
        writes.append(block.attention.output)
    if block.mlp is not None:
        reads.append(block.mlp.hidden)
        if block.mlp.gate is not None:
            reads.append(block.mlp.gate)
        writes.append(block.mlp.output)
    for part in reads:
        part.weight.copy_(part.weight @ turn)
    for part in writes:
        part.weight.copy_(turn.T @ part.weight)
        if part.bias is not None:
            part.bias.copy_(part.bias @ turn)


@given(examples(layer_norm="none"))
@tried
def test_a_rotation_of_the_input_rotates_the_output_if_weights_are_rotated(
    example: Example,
) -> None:
    """T′(x·R) = T(x)·R, where what reads x is W·R and what writes to it is Rᵀ·W: no coordinate is
    special. Of blocks that do not normalise, MLP and causality included."""
    block, x = made(example)
    turn = rotation(example[1].width, example[1], keep_ones=False)
    expected = block(x) @ turn
    rotate_weights(block, turn)
    equal(block(x @ turn), expected)


@given(st.one_of(examples(layer_norm="post", moved=0.0), examples(layer_norm="pre", moved=0.0)))
@tried
def test_layer_norm_is_rotated_along_where_the_mean_direction_stays(example: Example) -> None:
    """LayerNorm takes the part along (1, …, 1) away, so R must keep that vector; and its gain must
    be one number, its bias zero, as they are after initialisation. RMSNorm knows lengths alone, so
    any R will do."""
    block, x = made(example)
    centring = block.config.normalisation == "layernorm"
    turn = rotation(example[1].width, example[1], keep_ones=centring)
    expected = block(x) @ turn
    rotate_weights(block, turn)
    equal(block(x @ turn), expected)


def complex_linear(batch: TokenBatch, seed: int, width: int) -> Tensor:
    """A real matrix that is one of complex numbers, so it commutes with a common phase."""
    drawn_ = TokenBatch(2, width // 2, width // 2, seed=batch.seed + seed).tensor(torch.float64)
    real, imaginary = drawn_ / width
    entries: Tensor = torch.stack((real, -imaginary, imaginary, real), -1).unflatten(-1, (2, 2))
    return entries.transpose(1, 2).flatten(2).flatten(0, 1)


@given(token_batches(6, length=2), st.floats(-3, 3))
@tried
def test_without_rotating_weights_it_holds_of_what_commutes(
    batch: TokenBatch, angle: float
) -> None:
    """T(x·R) = T(x)·R with the weights as they are, if W_QᵀW_K and W_OW_V commute with R. Here all
    are linear over the complex numbers, and R multiplies by a phase; one head, no bias, no norm."""
    config = BlockConfig(width=6, heads=1, hidden=1, mlp=False, layer_norm="none", bias=False)
    block, x = made((SeededBlock(config), batch))
    attention = attention_of(block)
    for seed, part in enumerate(
        (attention.query, attention.key, attention.value, attention.output)
    ):
        part.weight.copy_(complex_linear(batch, seed, 6))
    c, s = torch.tensor(angle).double().cos(), torch.tensor(angle).double().sin()
    turn = torch.block_diag(*[torch.stack((c, -s, s, c)).view(2, 2)] * 3)
    equal(block(x @ turn), block(x) @ turn)


def test_a_rotation_alone_is_not_followed() -> None:
    """So the property could fail: weights at random single out directions."""
    config = BlockConfig(width=6, heads=2, hidden=1, mlp=False, layer_norm="none")
    block, x = made((SeededBlock(config, 0, 0.3), TokenBatch(1, 4, 6)))
    turn = rotation(6, TokenBatch(1, 1, 6), keep_ones=False)
    assert (block(x @ turn) - block(x) @ turn).abs().max() > 0.01


# Normalisation, skips, precision


@given(examples(layer_norm="post", moved=0.0))
@tried
def test_the_output_of_a_post_norm_block_has_the_norm_of_its_layer_norm(example: Example) -> None:
    """‖LayerNorm(y)‖² = D·v/(v + ε), v the variance of y (Ba et al. 2016): √D unless v is as small
    as ε. The same of RMSNorm, v the mean square of y (Zhang & Sennrich 2019). Of post-norm blocks
    with unit gain and no bias, as after initialisation."""
    block, x = made(example)
    last = block.mlp_norm if block.config.mlp else block.attention_norm
    entered: list[Tensor] = []
    last.register_forward_pre_hook(lambda _module, args: entered.append(args[0]))
    squares = block(x).square().sum(-1)
    centring = block.config.normalisation == "layernorm"
    variance = entered[0].var(-1, correction=0) if centring else entered[0].square().mean(-1)
    eps, width = block.config.layer_norm_eps, block.config.width
    torch.testing.assert_close(squares, width * variance / (variance + eps), rtol=1e-6, atol=1e-9)


@given(examples(attention_skip=True, mlp_skip=True))
@tried
def test_the_skip_hands_the_input_on_where_sublayers_are_zero(example: Example) -> None:
    """x + 0 = x (He et al. 2016). Without a norm behind it, exactly; post-norm, up to that norm,
    applied as often as there are sublayers."""
    block, x = made(example)
    for sublayer in (block.attention, block.mlp):
        for parameter in [] if sublayer is None else sublayer.parameters():
            parameter.zero_()
    expected = x
    if block.config.layer_norm == "post":
        expected = block.mlp_norm(block.attention_norm(x))
    assert torch.equal(block(x), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@given(example=examples())
@settings(max_examples=25, deadline=None)
def test_dtypes_agree_within_what_rounding_explains(dtype: torch.dtype, example: Example) -> None:
    """A result in a coarser dtype is that of float64 for weights and inputs that are slightly
    others (Wilkinson's backward error): at most 32 times what relative changes of one epsilon do,
    the largest of 8 tries. So the bound follows the condition of the block at hand."""
    block, x = made(example)
    exact = block(x)
    eps = torch.finfo(dtype).eps
    generator = torch.Generator().manual_seed(example[1].seed)

    def changed(tensor: Tensor) -> Tensor:
        noise = torch.rand(tensor.shape, generator=generator, dtype=torch.float64) * 2 - 1
        return tensor * (1 + eps * noise)

    moved = torch.tensor(0.0, dtype=torch.float64)
    for _ in range(8):
        other, _x = made(example)
        for parameter in other.parameters():
            parameter.copy_(changed(parameter))
        moved = moved.maximum((other(changed(x)) - exact).abs().max())
    coarse = example[0].module().to(dtype)(x.to(dtype)).double()
    bound = 32 * (moved + eps * exact.abs().max())
    assert (coarse - exact).abs().max() <= bound


# What is tried on anybody's block holds of ours, and sees in it what is there


def subject_of(block: SeededBlock) -> Subject:
    config = block.config
    claims = Claims(
        causal=config.causal,
        normalised=config.layer_norm == "post",
        skip=config.attention_skip and config.mlp_skip,
        positions=False,
        masked=True,
        scaled=True,
    )
    return Subject(block.module(), repr(block), config.width, config.heads, claims)


@pytest.mark.parametrize("property_", ATTENTION_PROPERTIES, ids=lambda p: p.name)
@given(example=examples())
@settings(max_examples=25, deadline=None)
def test_every_property_of_attention_holds(property_: Property, example: Example) -> None:
    """Except `expectation`, which a norm in front excludes; nothing else is excluded."""
    subject = subject_of(example[0])
    reason = property_.excludes(subject)
    if property_.name == "expectation" and example[0].config.layer_norm == "pre":
        assert reason is not None
        return
    assert reason is None
    property_.check(subject, example[1])


@given(examples(length=2))
@tried
def test_the_recorder_sees_what_the_trace_says(example: Example) -> None:
    """Two ways to the same: operations in passing, and the block's own account."""
    subject, x, valid = subject_of(example[0]), example[1].tensor(), some_valid(example[1])
    assert isinstance(subject.module, TransformerBlock)
    with torch.no_grad():
        trace = subject.module.trace(x, valid)
    (attention,) = record(subject, x, valid).attentions
    torch.testing.assert_close(attention.weights, trace.weights.flatten(0, 1), rtol=0, atol=0)
    torch.testing.assert_close(attention.output, trace.heads.flatten(0, 1), rtol=0, atol=0)
    torch.testing.assert_close(attention.query.projected, trace.query.flatten(0, 1), rtol=0, atol=0)
    logits = attention.logits[attention.rows.long()].float()
    torch.testing.assert_close(logits, trace.scores.flatten(0, 1), rtol=0, atol=0)
