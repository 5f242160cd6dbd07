"""MANTa-LM against its equations, written out as loops, and against what is public about it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from isotest.errors import MeasurementError
from isotest.models.architectures.manta import MantaConfig, MantaModel
from isotest.models.architectures.manta.pooling import MantaPooling
from isotest.models.architectures.manta.segmentation import (
    block_counts,
    block_moments,
    memberships,
)
from isotest.models.seeding import seeded

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from torch import Tensor

Spread = Literal["variance", "deviation"]
SPREADS: tuple[Spread, ...] = ("variance", "deviation")
EPSILON = 1e-6

TINY: dict[str, Any] = {
    "byte_embedding_dim": 16,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "frontier_predictor_num_attention_heads": 2,
    "frontier_predictor_attention_window": 4,
    "max_length_inputs": 96,
    "max_length_encoder_decoder": 24,
}


def tiny(seed: int = 0, **changes: Any) -> MantaModel:
    with seeded(seed):
        model = MantaModel(MantaConfig(**{**TINY, **changes}))
    model.train(False)
    return model


def texts(*lengths: int) -> list[Tensor]:
    draw = torch.Generator().manual_seed(7)
    return [torch.randint(3, 259, (length,), generator=draw) for length in lengths]


def padded(rows: list[Tensor], *, left: bool = False, width: int = 0) -> tuple[Tensor, Tensor]:
    width = max(width, *(len(row) for row in rows))
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for at, row in enumerate(rows):
        where = slice(width - len(row), width) if left else slice(0, len(row))
        ids[at, where], mask[at, where] = row, 1
    return ids, mask


def load(folder: Path) -> MantaModel:
    auto: Any = MantaModel
    model: MantaModel
    model, report = auto.from_pretrained(folder, output_loading_info=True)
    assert not any(report.values()), report
    model.train(False)
    return model


# The equations, one text at a time, without torch.


def naive_segmentation(
    frontiers: NDArray[np.float64], spread: Spread
) -> tuple[NDArray[np.float64], int]:
    """(bytes, blocks) memberships of one text from its frontier probabilities."""
    means, variances = [], []
    mean = variance = 0.0
    for i, p in enumerate(frontiers):
        if i > 0:
            mean += p
            variance += p * (1 - p)
        means.append(mean)
        variances.append(variance + EPSILON)
    reach = max(m + 3 * v**0.5 for m, v in zip(means, variances, strict=True))
    blocks = min(len(frontiers), int(np.floor(reach)) + 1)
    table = np.zeros((len(frontiers), blocks))
    for i, (m, v) in enumerate(zip(means, variances, strict=True)):
        width = v if spread == "variance" else v**0.5
        scores = np.array([-((k - m) ** 2) / (2 * width) for k in range(blocks)])
        weights = np.exp(scores - scores.max())
        table[i] = weights / weights.sum()
    return table, blocks


def naive_pooling(
    embeddings: NDArray[np.float64],
    table: NDArray[np.float64],
    kernel: NDArray[np.float64],
    *,
    mean: bool,
) -> NDArray[np.float64]:
    """(blocks, width) of one text: convolve each block's weighted bytes, then pool."""
    length, width = embeddings.shape
    size = len(kernel)
    pooled = np.zeros((table.shape[1], width))
    for k in range(table.shape[1]):
        share = table[:, k] / max(1.0, table[:, k].sum()) if mean else table[:, k]
        convolved = np.zeros((length, width))
        for i in range(length):
            for j in range(size):
                at = i + j - (size - 1) // 2
                if 0 <= at < length:
                    convolved[i] += kernel[j] * share[at] * embeddings[at]
        pooled[k] = convolved.sum(0) if mean else convolved.max(0)
    return pooled


def segment(frontiers: Tensor, mask: Tensor, spread: Spread) -> tuple[Tensor, Tensor]:
    mean, variance = block_moments(frontiers, mask, regularization=EPSILON)
    counts = block_counts(mean, variance, mask)
    return memberships(mean, variance, counts, mask, spread=spread), counts


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("left", [False, True])
def test_segmentation_is_the_equations(spread: Spread, left: bool) -> None:
    draw = np.random.default_rng(0)
    rows = [draw.uniform(size=length) ** 2 for length in (1, 2, 9, 31)]
    frontiers = torch.full((4, 31), 0.9, dtype=torch.float64)  # padding would be a frontier
    _, mask = padded([torch.ones(len(row), dtype=torch.long) for row in rows], left=left)
    for at, row in enumerate(rows):
        frontiers[at, mask[at] == 1] = torch.from_numpy(row)
    found, counts = segment(frontiers, mask, spread)
    for at, row in enumerate(rows):
        expected, blocks = naive_segmentation(row, spread)
        assert counts[at] == blocks
        inside = found[at][mask[at] == 1].numpy()
        np.testing.assert_allclose(inside[:, :blocks], expected, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(inside.sum(-1), 1.0, rtol=1e-12)
        assert (inside[:, blocks:] == 0).all()
        assert (found[at][mask[at] == 0] == 0).all()


@pytest.mark.parametrize("spread", SPREADS)
def test_without_frontiers_there_is_one_block(spread: Spread) -> None:
    found, counts = segment(torch.zeros(1, 20), torch.ones(1, 20), spread)
    assert counts.tolist() == [1]
    assert torch.equal(found, torch.ones(1, 20, 1))


@pytest.mark.parametrize("spread", SPREADS)
def test_with_frontiers_everywhere_each_byte_is_its_block(spread: Spread) -> None:
    found, counts = segment(torch.ones(1, 20), torch.ones(1, 20), spread)
    assert counts.tolist() == [20]
    torch.testing.assert_close(found, torch.eye(20)[None])


def test_fair_coins_give_the_binomial_moments() -> None:
    half = torch.full((1, 65), 0.5, dtype=torch.float64)
    mask = torch.ones(1, 65)
    mean, variance = block_moments(half, mask, regularization=0.0)
    coins = torch.arange(65, dtype=torch.float64)[None]
    assert torch.equal(mean, coins / 2)
    assert torch.equal(variance, coins / 4)
    # The last byte is Binomial(64, 1/2): mean 32, deviation 4, so blocks 0 to 32 + 3 · 4.
    counts = block_counts(mean, variance, mask)
    assert counts.tolist() == [45]
    # Its Gaussian is within 0.002 of the exact distribution (de Moivre), cut off at 3σ.
    found = memberships(mean + 0, variance + 1e-9, counts, mask, spread="variance")[0, -1]
    exact = torch.distributions.Binomial(64, torch.tensor(0.5).double())
    expected = exact.log_prob(torch.arange(45, dtype=torch.float64)).exp()
    torch.testing.assert_close(found, expected, rtol=0, atol=0.002)


def test_half_precision_frontiers_are_summed_in_single() -> None:
    # 2,000 halves sum to 999.5; bfloat16 would stop at 256, where adding 0.5 changes nothing.
    mean, _ = block_moments(
        torch.full((1, 2000), 0.5, dtype=torch.bfloat16), torch.ones(1, 2000), regularization=1e-6
    )
    assert mean.dtype == torch.float32
    assert mean[0, -1] == 999.5


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("kernel", [1, 2, 3])
def test_pooling_is_the_formula(mean: bool, kernel: int) -> None:
    config = MantaConfig(**TINY, pooling_kernel_size=kernel, pooling_mean_pool=mean)
    config.max_length_encoder_decoder = 96
    with seeded(1):
        pooling = MantaPooling(config).double()
        torch.nn.init.normal_(pooling.convolution)
        # More blocks than are pooled at once, and a shorter text beside.
        frontiers = torch.rand(2, 60, dtype=torch.float64) ** 0.25
        embeddings = torch.randn(2, 60, 16, dtype=torch.float64)
    mask = torch.ones(2, 60)
    mask[1, 25:] = 0
    with torch.no_grad():
        found, block_mask = pooling(frontiers, embeddings, mask)
        assert found.shape[1] > 40
        for at, length in enumerate((60, 25)):
            table, blocks = naive_segmentation(frontiers[at, :length].numpy(), "variance")
            expected = naive_pooling(
                embeddings[at, :length].numpy(),
                table,
                pooling.convolution[0, 0].numpy(),
                mean=mean,
            )
            projected = pooling.out_projection(torch.from_numpy(expected))
            torch.testing.assert_close(found[at, :blocks], projected, rtol=1e-10, atol=1e-12)
            assert block_mask[at].tolist() == [k < blocks for k in range(found.shape[1])]


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("mean", [False, True])
def test_gradients_of_segmentation_and_pooling(spread: Spread, mean: bool) -> None:
    config = MantaConfig(**TINY, pooling_spread=spread, pooling_mean_pool=mean)
    with seeded(2):
        pooling = MantaPooling(config).double()
        torch.nn.init.normal_(pooling.convolution)
        frontiers = (0.1 + 0.8 * torch.rand(2, 9, dtype=torch.float64)).requires_grad_()
        embeddings = torch.randn(2, 9, 16, dtype=torch.float64).requires_grad_()
    mask = torch.ones(2, 9)
    mask[1, 6:] = 0
    assert torch.autograd.gradcheck(
        lambda p, e: pooling(p, e, mask)[0], (frontiers, embeddings), fast_mode=True
    )
    slopes = torch.autograd.grad(pooling(frontiers, embeddings, mask)[0].square().sum(), frontiers)
    # Neither a text's first byte nor padding decides anything.
    assert (slopes[0][0, 1:] != 0).all()
    assert (slopes[0][1, 1:6] != 0).all()
    assert (slopes[0][:, 0] == 0).all()
    assert (slopes[0][1, 6:] == 0).all()


def test_gradients_reach_the_frontier_predictor() -> None:
    model = tiny().double()
    # In float64 Longformer has no gradient where a padding byte sees nothing but padding.
    ids, mask = padded(texts(20, 18))
    with seeded(3):
        weights = torch.randn(2, 24, 32, dtype=torch.float64)

    def loss() -> Tensor:
        embeddings = model.byte_embeddings(ids)
        blocks, _ = model.pooling(model.frontier_predictor(embeddings, mask), embeddings, mask)
        total: Tensor = (blocks * weights[:, : blocks.shape[1]]).sum()
        return total

    def slope(parameter: torch.nn.Parameter, direction: Tensor, step: float) -> float:
        with torch.no_grad():
            parameter.add_(direction, alpha=step)
            above = loss()
            parameter.add_(direction, alpha=-2 * step)
            below = loss()
            parameter.add_(direction, alpha=step)
        return float((above - below) / (2 * step))

    loss().backward()
    predictor = dict(model.frontier_predictor.named_parameters())
    # Longformer takes its softmax in float32, so its own parameters get a wider step and margin.
    for name, step, margin in (
        ("output_projection.weight", 1e-6, 1e-6),
        ("output_projection.bias", 1e-6, 1e-6),
        ("local_transformer.encoder.layer.1.output.dense.weight", 1e-6, 1e-6),
        ("local_transformer.encoder.layer.0.attention.self.value.weight", 1e-3, 1e-3),
        ("local_transformer.encoder.layer.0.attention.self.query.weight", 3e-2, 2e-2),
    ):
        gradient = predictor[name].grad
        assert gradient is not None
        direction = gradient / gradient.norm()
        assert gradient.norm() > 0
        assert slope(predictor[name], direction, step) == pytest.approx(
            float(gradient.norm()), rel=margin
        )


def test_a_loss_on_the_decoder_trains_where_to_cut() -> None:
    model = tiny().train()
    ids, mask = padded(texts(17, 11))
    model(ids, mask, ids[:, :5]).last_hidden_state.square().sum().backward()
    for name, parameter in model.named_parameters():
        if "_global" in name or "word_embeddings" in name:
            continue  # Longformer's; no byte attends globally, and ids are never seen
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        if not name.endswith("key.bias"):  # the softmax does not see it
            assert parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize(
    "changes", [{}, {"pooling_mean_pool": True, "pooling_spread": "deviation"}]
)
@pytest.mark.parametrize("left", [False, True])
def test_alone_or_in_a_padded_batch_of_eight(changes: dict[str, Any], left: bool) -> None:
    model = tiny(**changes)
    rows = texts(1, 2, 3, 8, 21, 40, 64, 95)
    ids, mask = padded(rows, left=left, width=96)
    targets, target_mask = padded(texts(5, 1, 9, 2, 7, 3, 8, 4), left=left)
    with torch.no_grad():
        batch = model(ids, mask, targets, target_mask, output_hidden_states=True)
        for at, row in enumerate(rows):
            shown = target_mask[at] == 1
            length = int(shown.sum())
            alone = model(
                row[None],
                torch.ones(1, len(row)),
                targets[at : at + 1, shown],
                torch.ones(1, length),
                output_hidden_states=True,
            )
            kept = batch.block_mask[at]
            assert alone.block_mask.all()
            assert int(kept.sum()) == alone.block_mask.shape[1]
            pairs = [
                (batch.frontier_predictions[at][mask[at] == 1], alone.frontier_predictions[0]),
                (batch.encoder_last_hidden_state[at][kept], alone.encoder_last_hidden_state[0]),
                (batch.last_hidden_state[at][shown], alone.last_hidden_state[0]),
            ]
            for whole, own in zip(
                batch.encoder_hidden_states, alone.encoder_hidden_states, strict=True
            ):
                pairs.append((whole[at][kept], own[0]))
            for whole, own in zip(
                batch.decoder_hidden_states, alone.decoder_hidden_states, strict=True
            ):
                pairs.append((whole[at][shown], own[0]))
            for found, expected in pairs:
                torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
        # The comparison can fail: padding that counts as bytes is seen.
        blind = model(ids, torch.ones_like(mask), targets, target_mask)
    assert not torch.equal(blind.block_mask, batch.block_mask)


def test_surplus_blocks_are_cut_off_text_by_text() -> None:
    model = tiny()
    ids, mask = padded(texts(95, 8))
    with torch.no_grad():
        model.frontier_predictor.output_projection.bias.fill_(100.0)  # frontiers everywhere
        out = model(ids, mask, ids[:, :3])
    assert out.block_mask.sum(-1).tolist() == [24, 8]


def test_a_frontier_depends_on_the_bytes_in_its_window() -> None:
    model = tiny().double()
    (row,) = texts(40)
    other = row.clone()
    other[20] = (row[20] - 3 + 1) % 256 + 3
    with torch.no_grad():
        first, second = (
            model.frontier_predictor(model.byte_embeddings(ids[None]), torch.ones(1, 40))[0]
            for ids in (row, other)
        )
    # Two layers that see two bytes on either side each.
    assert (first != second).nonzero().flatten().tolist() == list(range(16, 25))


def test_hooks_find_the_states_and_the_mask() -> None:
    model = tiny()
    ids, mask = padded(texts(12, 30))
    seen: list[Any] = []
    model.pooling.register_forward_hook(lambda _module, _inputs, output: seen.append(output))
    with torch.no_grad():
        out = model(ids, mask, ids[:, :5], output_hidden_states=True)
    blocks, block_mask = seen[0]
    assert block_mask.dtype == torch.bool
    assert torch.equal(block_mask, out.block_mask)
    assert torch.equal(blocks, out.encoder_hidden_states[0])
    assert torch.equal(out.encoder_hidden_states[-1], out.encoder_last_hidden_state)
    assert torch.equal(out.decoder_hidden_states[-1], out.last_hidden_state)
    assert len(out.encoder_hidden_states) == len(out.decoder_hidden_states) == 3


def test_both_attention_implementations_agree() -> None:
    model = tiny()
    ids, mask = padded(texts(12, 30))
    with torch.no_grad():
        fused = model(ids, mask, ids[:, :5]).last_hidden_state
        model.set_attn_implementation("eager")
        out = model(ids, mask, ids[:, :5], output_attentions=True)
    torch.testing.assert_close(out.last_hidden_state, fused, rtol=1e-5, atol=1e-5)
    blocks = out.block_mask.shape[1]
    assert out.cross_attentions[1].shape == (2, 4, 5, blocks)
    # No byte of the decoder looks at a block that is not there.
    assert (out.cross_attentions[1][0, :, :, ~out.block_mask[0]] == 0).all()


def test_saved_and_loaded_it_is_the_same(tmp_path: Path) -> None:
    model = tiny()
    model.save_pretrained(tmp_path)
    loaded = load(tmp_path)
    assert loaded.config.pooling_spread == "variance"
    ids, mask = padded(texts(12, 30))
    with torch.no_grad():
        first, second = (m(ids, mask, ids[:, :5]) for m in (model, loaded))
    assert torch.equal(first.last_hidden_state, second.last_hidden_state)
    assert torch.equal(first.encoder_last_hidden_state, second.encoder_last_hidden_state)


def test_the_seed_decides_the_weights() -> None:
    first, again, other = tiny(0).state_dict(), tiny(0).state_dict(), tiny(1).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["pooling.convolution"], other["pooling.convolution"])


# What is public about almanach/manta-lm-base and -small: docs/manta.md says where.

PUBLIC_BASE = {
    "architectures": ["MantaForConditionalGeneration"],
    "byte_embedding_dim": 128,
    "d_ff": 3072,
    "d_kv": 64,
    "d_model": 768,
    "dense_act_fn": "gelu_new",
    "dropout_rate": 0.1,
    "eos_token_id": 1,
    "feed_forward_proj": "gated-gelu",
    "frontier_predictor_attention_window": 16,
    "frontier_predictor_num_attention_heads": 8,
    "frontier_predictor_num_layers": 2,
    "initializer_factor": 1.0,
    "is_encoder_decoder": True,
    "is_gated_act": True,
    "layer_norm_epsilon": 1e-06,
    "max_length_encoder_decoder": 512,
    "max_length_inputs": 2048,
    "model_type": "manta",
    "num_decoder_layers": 12,
    "num_heads": 12,
    "num_layers": 12,
    "pad_token_id": 0,
    "pooling_depthwise_convolution": True,
    "pooling_kernel_size": 3,
    "pooling_mean_pool": False,
    "pooling_variance_regularization": 1e-06,
    "relative_attention_max_distance": 128,
    "relative_attention_num_buckets": 32,
    "tie_word_embeddings": False,
    "use_cache": True,
    "vocab_size": 384,
}
PUBLIC_SMALL = {
    "byte_embedding_dim": 64,
    "d_ff": 2048,
    "d_model": 512,
    "frontier_predictor_num_layers": 1,
    "max_length_encoder_decoder": 256,
    "max_length_inputs": 1024,
    "num_decoder_layers": 6,
    "num_heads": 8,
    "num_layers": 6,
}


def test_the_default_is_the_public_configuration() -> None:
    ours, public = MantaConfig(), MantaConfig.from_dict(PUBLIC_BASE)
    for name in PUBLIC_BASE.keys() - {"architectures", "dense_act_fn", "is_gated_act", "use_cache"}:
        assert getattr(ours, name) == getattr(public, name) == PUBLIC_BASE[name], name


@pytest.mark.parametrize(
    ("changes", "stored"),
    [
        ({}, "1.02 GB"),
        ({"feed_forward_proj": "relu"}, "798 MB"),  # the first upload of base
        (PUBLIC_SMALL, "228 MB"),
    ],
)
def test_as_many_parameters_as_the_public_files_store(changes: dict[str, Any], stored: str) -> None:
    with torch.device("meta"):
        model = MantaModel(MantaConfig(**changes))
    size = 4 * sum(parameter.numel() for parameter in model.parameters())
    shown = f"{size / 1e9:.2f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
    assert shown == stored


def test_the_base_size_part_by_part() -> None:
    with torch.device("meta"):
        model = MantaModel(MantaConfig())

    def count(module: torch.nn.Module) -> int:
        return sum(parameter.numel() for parameter in module.parameters())

    attention, feed_forward, norm, bias = 4 * 768 * 768, 3 * 768 * 3072, 768, 32 * 12
    assert count(model.encoder) == 12 * (attention + feed_forward + 2 * norm) + norm + bias
    assert count(model.decoder) == (
        12 * (2 * attention + feed_forward + 3 * norm) + norm + bias + 384 * 768
    )
    assert count(model.byte_embeddings) == 384 * 128
    assert count(model.pooling) == 3 * 128 + 768 * 129
    # Longformer: query, key, value, each twice, and output; two dense layers; two norms.
    layer = 7 * 128 * 129 + 512 * 129 + 128 * 513 + 2 * 256
    embeddings = (1 + 2 + 2065) * 128 + 256
    assert count(model.frontier_predictor) == 2 * layer + embeddings + 129
    assert count(model) == 256_056_577


def test_a_checkpoint_with_the_public_names_loads(tmp_path: Path) -> None:
    model = tiny(pooling_spread="deviation")
    model.save_pretrained(tmp_path)
    stored = load_file(tmp_path / "model.safetensors")
    expected = {
        "encoder.byte_embeddings.weight": (384, 16),
        "encoder.frontier_predictor.local_transformer.embeddings.position_embeddings.weight": (
            101,
            16,
        ),
        "encoder.frontier_predictor.local_transformer.encoder.layer.0.attention.self.key.bias": (
            16,
        ),
        "encoder.frontier_predictor.output_projection.weight": (1, 16),
        "encoder.pooler.conv_layers.0.weight": (1, 1, 3, 16),
        "encoder.pooler.out_projection.bias": (32,),
        "encoder.t5_encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight": (32, 4),
        "encoder.t5_encoder.final_layer_norm.weight": (32,),
        "decoder.embed_tokens.weight": (384, 32),
        "decoder.block.1.layer.1.EncDecAttention.q.weight": (32, 32),
    }
    assert expected.items() <= {name: tuple(t.shape) for name, t in stored.items()}.items()
    stored["lm_head.weight"] = torch.zeros(384, 32)
    stored["decoder_embeddings.weight"] = stored["decoder.embed_tokens.weight"].clone()
    surplus = "encoder.frontier_predictor.local_transformer.pooler.dense."
    stored[f"{surplus}weight"], stored[f"{surplus}bias"] = torch.zeros(16, 16), torch.zeros(16)
    save_file(stored, tmp_path / "model.safetensors", metadata={"format": "pt"})
    config = {**PUBLIC_BASE, **TINY}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    loaded = load(tmp_path)
    assert loaded.config.pooling_spread == "deviation"
    for name, weight in model.state_dict().items():
        assert torch.equal(weight, loaded.state_dict()[name]), name


@pytest.mark.parametrize(
    ("length", "message"),
    [(0, r"text 1 .*holds no byte"), (97, r"text 1 .*\(97 bytes\).* 96 bytes")],
)
def test_texts_it_cannot_read(length: int, message: str) -> None:
    ids, mask = padded(texts(5, length))
    with pytest.raises(MeasurementError, match=message):
        tiny()(ids, mask, ids[:, :3])


def test_a_pass_without_decoder_input() -> None:
    ids, mask = padded(texts(5, 6))
    with pytest.raises(MeasurementError, match="decoder_input_ids"):
        tiny()(ids, mask)


@pytest.mark.parametrize(
    "changes", [{"pooling_depthwise_convolution": False}, {"pooling_kernel_size": 0}]
)
def test_configurations_that_are_not_built(changes: dict[str, Any]) -> None:
    with pytest.raises(Exception, match=next(iter(changes))):
        MantaConfig(**changes)
