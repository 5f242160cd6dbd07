"""VAN against its paper and against what was published of it."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torchvision.ops import StochasticDepth
from transformers import AutoConfig, AutoModel, AutoModelForImageClassification

from isotest.errors import SourceError
from isotest.models import load_model
from isotest.models.architectures import register
from isotest.models.architectures.van import VanConfig, VanForImageClassification, VanModel
from isotest.models.architectures.van.stages import LargeKernelAttention
from isotest.models.seeding import seeded
from tests.models.architectures.naive_van import NaiveVan

if TYPE_CHECKING:
    from pathlib import Path

TINY: dict[str, Any] = {
    "hidden_sizes": [4, 6, 8, 10],
    "depths": [1, 2, 1, 1],
    "mlp_ratios": [2, 2, 3, 3],
    "image_size": 64,
}


@pytest.fixture(autouse=True)
def registered() -> None:
    register("van")


def tiny(seed: int = 0, **config: Any) -> VanModel:
    """With weights and batch statistics that no part of the network is blind to."""
    with seeded(seed):
        model = VanModel(VanConfig(**{**TINY, **config}))
        with torch.no_grad():
            for name, tensor in model.state_dict().items():
                if not name.endswith("num_batches_tracked"):
                    tensor.copy_(torch.rand_like(tensor) - 0.3)
                if name.endswith("running_var"):
                    tensor.add_(0.5)
    model.eval()  # type: ignore[no-untyped-call]
    return model


def test_the_attention_map_is_the_papers() -> None:
    with seeded(0):
        attention = LargeKernelAttention(3).double()
        x = torch.randn(2, 3, 13, 16, dtype=torch.float64)
    for image, found in zip(x, attention(x), strict=True):
        expected = NaiveVan(attention).attention_map("", image.numpy())
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12, atol=1e-14)


def test_the_attention_map_reaches_as_far_as_its_kernels() -> None:
    # 5×5 reaches 2 positions, 7×7 with dilation 3 reaches 9: together 11 to each side.
    attention = LargeKernelAttention(1)
    for parameter in attention.parameters():
        torch.nn.init.ones_(parameter)
    x = torch.zeros(1, 1, 41, 41)
    away = attention(x)
    x[0, 0, 20, 20] = 1
    for reached in torch.nonzero((attention(x) - away)[0, 0]).unbind(dim=1):
        assert reached.min() == 20 - 11
        assert reached.max() == 20 + 11


def test_blocks_and_stages_are_the_papers() -> None:
    model, config = tiny().double(), VanConfig(**TINY)
    images = torch.rand(2, 3, 64, 48, dtype=torch.float64)
    with torch.no_grad():
        output = model(images, output_hidden_states=True)
    for index, image in enumerate(images):
        maps = NaiveVan(model).stages(image.numpy(), config)
        for found, expected in zip(output.hidden_states, maps, strict=True):
            np.testing.assert_allclose(found[index].numpy(), expected, rtol=1e-9, atol=1e-11)
        pooled = maps[-1].mean(axis=(1, 2))
        np.testing.assert_allclose(output.pooler_output[index].numpy(), pooled, rtol=1e-9)
    assert output.last_hidden_state is output.hidden_states[-1]


def test_stochastic_depth_rises_linearly_over_all_blocks() -> None:
    model = VanModel(VanConfig(**TINY, drop_path_rate=0.4))
    rates = [part.p for part in model.modules() if isinstance(part, StochasticDepth)]
    assert rates == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])


# What was published ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hidden_sizes", "depths", "millions"),
    [
        # Guo et al. 2022, the table of configurations (B0 … B3, at first called Tiny … Large): 4.1,
        # 13.9, 26.6 and 44.8 million, the classifier of 1000 classes included. The second decimal
        # is from the README of VAN in MMPretrain, which converted the authors' weights.
        ([32, 64, 160, 256], [3, 3, 5, 2], 4.11),
        ([64, 128, 320, 512], [2, 2, 4, 2], 13.86),
        ([64, 128, 320, 512], [3, 3, 12, 3], 26.58),
        ([64, 128, 320, 512], [3, 5, 27, 3], 44.77),
    ],
)
def test_the_number_of_parameters_is_the_published_one(
    hidden_sizes: list[int], depths: list[int], millions: float
) -> None:
    with torch.device("meta"):
        model = VanForImageClassification(
            VanConfig(hidden_sizes=hidden_sizes, depths=depths, num_labels=1000)
        )
    # The authors' network has no norm behind the last stage's.
    unread = model.van.layernorm
    count = sum(p.numel() for p in model.parameters()) - sum(p.numel() for p in unread.parameters())
    assert round(count / 1e6, 2) == millions


def published(config: VanConfig, labels: int) -> dict[str, list[int]]:
    """Names and shapes in Visual-Attention-Network/van-*, as transformers 4 wrote them."""

    def conv(name: str, out: int, into: int, kernel: int) -> dict[str, list[int]]:
        return {f"{name}.weight": [out, into, kernel, kernel], f"{name}.bias": [out]}

    def norm(name: str, width: int) -> dict[str, list[int]]:
        return {f"{name}.weight": [width], f"{name}.bias": [width]}

    def batch_norm(name: str, width: int) -> dict[str, list[int]]:
        return {
            **norm(name, width),
            f"{name}.running_mean": [width],
            f"{name}.running_var": [width],
            f"{name}.num_batches_tracked": [],
        }

    names: dict[str, list[int]] = {}
    into = 3
    stages = zip(
        config.patch_sizes, config.hidden_sizes, config.depths, config.mlp_ratios, strict=True
    )
    for number, (patch, width, depth, ratio) in enumerate(stages):
        stage = f"van.encoder.stages.{number}"
        names |= conv(f"{stage}.embeddings.convolution", width, into, patch)
        names |= batch_norm(f"{stage}.embeddings.normalization", width)
        for block in range(depth):
            layer = f"{stage}.layers.{block}"
            attention = f"{layer}.attention.attention_layer.attention"
            names |= batch_norm(f"{layer}.pre_normomalization", width)
            names |= conv(f"{layer}.attention.pre_projection.conv", width, width, 1)
            names |= conv(f"{attention}.depth_wise", width, 1, 5)
            names |= conv(f"{attention}.depth_wise_dilated", width, 1, 7)
            names |= conv(f"{attention}.point_wise", width, width, 1)
            names |= conv(f"{layer}.attention.post_projection", width, width, 1)
            names |= {f"{layer}.attention_scaling.weight": [width]}
            names |= batch_norm(f"{layer}.post_normalization", width)
            names |= conv(f"{layer}.mlp.in_dense", width * ratio, width, 1)
            names |= conv(f"{layer}.mlp.depth_wise", width * ratio, 1, 3)
            names |= conv(f"{layer}.mlp.out_dense", width, width * ratio, 1)
            names |= {f"{layer}.mlp_scaling.weight": [width]}
        names |= norm(f"{stage}.normalization", width)
        into = width
    names |= norm("van.layernorm", into)
    return names | {"classifier.weight": [labels, into], "classifier.bias": [labels]}


def test_names_and_shapes_are_the_published_ones() -> None:
    with torch.device("meta"):
        model = VanForImageClassification(VanConfig(num_labels=1000))
    found = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
    assert found == published(VanConfig(), 1000)


def checkpoint(folder: Path, without: str = "") -> dict[str, torch.Tensor]:
    """A tiny checkpoint as transformers 4 wrote it, of numbers that no initialisation draws."""
    shapes = published(VanConfig(**TINY), 3)
    with seeded(3):
        state = {
            name: torch.rand(shape) + 2 if shape else torch.tensor(7)
            for name, shape in shapes.items()
            if name != without
        }
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    labels = {str(k): name for k, name in enumerate(("tench", "goldfish", "shark"))}
    written = {
        "architectures": ["VanForImageClassification"],
        "model_type": "van",
        **TINY,
        "drop_path_rate": 0.0,
        "dropout_rate": 0.0,
        "hidden_act": "gelu",
        "id2label": labels,
        "initializer_range": 0.02,
        "layer_norm_eps": 1e-06,
        "layer_scale_init_value": 0.01,
        "label2id": {name: int(k) for k, name in labels.items()},
        "num_channels": 3,
        "patch_sizes": [7, 3, 3, 3],
        "strides": [4, 2, 2, 2],
        "torch_dtype": "float32",
        "transformers_version": "4.17.0.dev0",
    }
    (folder / "config.json").write_text(json.dumps(written))
    return state


def test_a_checkpoint_under_the_published_names_loads(tmp_path: Path) -> None:
    state = checkpoint(tmp_path)
    loaded = load_model(f"path:{tmp_path}")
    for name, tensor in loaded.module.state_dict().items():
        assert torch.equal(tensor, state[f"van.{name}"]), name
    # What it is compared with: the untrained network of its architecture.
    assert loaded.architecture == load_model("init:van", config=TINY).architecture


@pytest.mark.parametrize(
    "name",
    [
        "van.encoder.stages.2.layers.0.attention_scaling.weight",
        "van.encoder.stages.1.layers.1.pre_normomalization.running_mean",
        "van.encoder.stages.0.embeddings.convolution.bias",
    ],
)
def test_a_missing_weight_is_an_error(tmp_path: Path, name: str) -> None:
    checkpoint(tmp_path, without=name)
    with pytest.raises(SourceError, match=f"1 missing \\({name.removeprefix('van.')}\\)"):
        load_model(f"path:{tmp_path}")


# As a model of transformers ----------------------------------------------------------------------


def test_saved_and_loaded_is_the_same_to_the_bit(tmp_path: Path) -> None:
    model = tiny()
    model.save_pretrained(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path)
    assert type(loaded) is VanModel
    bookkeeping = {"_name_or_path", "dtype"}
    before, after = (
        {key: value for key, value in one.config.to_dict().items() if key not in bookkeeping}
        for one in (model, loaded)
    )
    assert before == after
    state = loaded.state_dict()
    assert list(state) == list(model.state_dict())
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, state[name]), name


def test_the_classifier_is_on_the_pooled_map_and_has_a_loss() -> None:
    config = AutoConfig.for_model("van", **TINY, num_labels=3)
    with seeded(0):
        model = AutoModelForImageClassification.from_config(config).eval()
        images = torch.rand(4, 3, 64, 64)
    assert type(model) is VanForImageClassification
    labels = torch.tensor([0, 1, 2, 1])
    with torch.no_grad():
        output = model(images, labels=labels, output_hidden_states=True)
        expected = model.classifier(output.hidden_states[-1].mean(dim=(2, 3)))
    assert torch.equal(output.logits, expected)
    assert torch.allclose(output.loss, torch.nn.functional.cross_entropy(expected, labels))
    assert model(images, return_dict=False)[0].shape == (4, 3)


def test_the_initial_weights_are_the_authors() -> None:
    model = load_model("init:van").module
    state = model.state_dict()
    for name, part in model.named_modules():
        if isinstance(part, torch.nn.Conv2d):
            fan_out = part.out_channels // part.groups * part.kernel_size[0] ** 2
            count = part.weight.numel()
            # Six standard errors of an estimated standard deviation.
            tolerance = 6 / math.sqrt(2 * count)
            assert part.weight.std().item() == pytest.approx(math.sqrt(2 / fan_out), rel=tolerance)
            assert not state[f"{name}.bias"].any()
    scales = [tensor for name, tensor in state.items() if name.endswith("_scaling.weight")]
    assert len(scales) == 2 * (3 + 3 + 12 + 3)
    assert all((scale == 0.01).all() for scale in scales)


def test_a_seed_repeats_and_another_differs() -> None:
    first, again, other = (
        load_model(f"init:van?seed={seed}", config=TINY).weights for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other


def test_an_image_is_the_same_alone_and_in_a_batch() -> None:
    model = tiny()
    images = torch.rand(5, 3, 64, 64)
    with torch.no_grad():
        together = model(images, output_hidden_states=True).hidden_states
        alone = model(images[2:3], output_hidden_states=True).hidden_states
    for one, all_of_them in zip(alone, together, strict=True):
        torch.testing.assert_close(one[0], all_of_them[2], rtol=1e-5, atol=1e-5)


def test_gradients_reach_every_parameter_that_is_read() -> None:
    model = tiny()  # in eval mode: in training, batch norms take biases before them away again
    model(torch.rand(2, 3, 64, 64)).last_hidden_state.pow(3).sum().backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    unread = {name for name, gradient in gradients.items() if gradient is None}
    assert unread == {"layernorm.weight", "layernorm.bias"}
    for name, gradient in gradients.items():
        if gradient is not None:
            assert gradient.isfinite().all(), name
            assert gradient.any(), name


# In isotest --------------------------------------------------------------------------------------


def test_layers_of_the_real_size_are_the_stem_and_the_stages() -> None:
    loaded = load_model("init:van?seed=0")
    assert [(layer.name, layer.path, layer.kind) for layer in loaded.layers] == [
        ("0", "encoder.stages.0.embeddings", "map"),
        ("1", "encoder.stages.0", "map"),
        ("2", "encoder.stages.1", "map"),
        ("3", "encoder.stages.2", "map"),
        ("4", "encoder.stages.3", "map"),
    ]
    assert loaded.default_representation == "flattened"
    seen: dict[str, torch.Tensor] = {}
    for layer in loaded.layers:
        loaded.module.get_submodule(layer.path).register_forward_hook(
            lambda _module, _inputs, output, name=layer.name: seen.update({name: output})
        )
    with torch.no_grad():
        output = loaded.module(torch.rand(1, 3, 224, 224), output_hidden_states=True)
    assert {name: tuple(tensor.shape) for name, tensor in seen.items()} == {
        "0": (1, 64, 56, 56),
        "1": (1, 64, 56, 56),
        "2": (1, 128, 28, 28),
        "3": (1, 320, 14, 14),
        "4": (1, 512, 7, 7),
    }
    for name, state in zip("1234", output.hidden_states, strict=True):
        assert torch.equal(seen[name], state)


@pytest.mark.parametrize(
    ("change", "decides"),
    [
        ({"hidden_act": "relu"}, True),
        ({"strides": [4, 2, 2, 1]}, True),
        ({"layer_norm_eps": 1e-3}, True),
        ({"drop_path_rate": 0.3}, False),
        ({"dropout_rate": 0.3}, False),
        ({"initializer_range": 0.3}, False),
        ({"num_labels": 7}, False),
    ],
)
def test_what_decides_the_computation_reaches_the_digest(
    change: dict[str, Any], decides: bool
) -> None:
    before, after = (
        load_model("init:van", config=config).architecture for config in (TINY, {**TINY, **change})
    )
    assert (before != after) is decides
    assert before["parameters"] == after["parameters"]


@pytest.mark.parametrize(
    ("source", "config", "message"),
    [
        ("init:van", {"depths": [1, 2]}, "expected one entry a stage in each list, found"),
        ("init:van", {"embed_dims": [1, 2]}, "no configuration key 'embed_dims'"),
        ("init:vaan", {}, "did you mean 'van'?"),
        ("init:character-bert", {}, "did you mean 'character_bert'?"),
    ],
)
def test_bad_input_is_one_clear_message(source: str, config: dict[str, Any], message: str) -> None:
    with pytest.raises(SourceError) as caught:
        load_model(source, config=config)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
