"""Real architectures as a sum over paths, and what paths of each length contribute."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from isotest.blocks.paths.enumeration import all_paths
from isotest.blocks.paths.evaluation import evaluate
from isotest.blocks.paths.model import fixed_model
from isotest.errors import BlockError

SIZES = {"num_hidden_layers": 3, "num_attention_heads": 2, "hidden_size": 12}


def tiny(name: str, **changes: Any) -> Any:
    """In float64, with random biases and norms, so that they matter."""
    import transformers

    configs = {
        "Bert": {**SIZES, "intermediate_size": 20, "vocab_size": 30},
        "GPT2": {"n_layer": 3, "n_head": 2, "n_embd": 12, "vocab_size": 30, "n_positions": 16},
        "ViT": {**SIZES, "intermediate_size": 20, "image_size": 8, "patch_size": 4},
    }
    config = getattr(transformers, f"{name}Config")(**configs[name], **changes)
    model = getattr(transformers, f"{name}Model")(config).double().eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for path, parameter in model.named_parameters():
            drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            norm = path.endswith("weight") and parameter.dim() == 1
            parameter.copy_(0.3 * drawn + (1 if norm else 0))
    return model


def batch_for(name: str) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    if name == "ViT":
        return {"pixel_values": torch.randn(2, 3, 8, 8, generator=generator, dtype=torch.float64)}
    return {"input_ids": torch.randint(1, 30, (2, 6), generator=generator)}


def masks_for(name: str) -> list[dict[str, torch.Tensor]]:
    right = torch.tensor([[1, 1, 1, 1, 0, 0], [1] * 6])
    return [{}] if name == "ViT" else [{}, {"attention_mask": right}]


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("name", ["Bert", "GPT2", "ViT"])
def test_all_paths_sum_up_to_the_model(name: str, attention: str) -> None:
    model = tiny(name, attn_implementation=attention)
    for masks in masks_for(name):
        inputs = {**batch_for(name), **masks}
        with torch.no_grad():
            before = model(**inputs).last_hidden_state
        network = fixed_model(model, inputs)
        with torch.no_grad():
            assert torch.equal(model(**inputs).last_hidden_state, before)
        paths = all_paths(3, 2)
        outputs = torch.zeros(len(paths), *before.shape, dtype=torch.float64)
        for rows, some in evaluate(network, paths):
            outputs[torch.from_numpy(rows)] = some
        valid = network.valid
        assert int(valid.sum()) == int(masks.get("attention_mask", valid).sum())
        # The eager attention of ViT rounds the softmax to float32.
        rounding = 1e-6 if (name, attention) == ("ViT", "eager") else 1e-10
        torch.testing.assert_close(outputs.sum(0)[valid], before[valid], rtol=0, atol=rounding)
        lengths = (paths > 0).sum(axis=1)
        for length, exact in enumerate(network.by_length()):
            summed = outputs[torch.from_numpy(lengths == length)].sum(0)
            torch.testing.assert_close(summed, exact, rtol=0, atol=1e-10)


def test_padding_on_the_left() -> None:
    model = tiny("GPT2")
    mask = torch.tensor([[0, 0, 1, 1, 1, 1], [1] * 6])
    inputs = {**batch_for("GPT2"), "attention_mask": mask}
    network = fixed_model(model, inputs)
    with torch.no_grad():
        expected = model(**inputs).last_hidden_state[network.valid]
    found = network.by_length().sum(0)[network.valid]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_a_path_by_another_way() -> None:
    """What the first head's path adds is what leaves with its output weights set to zero.

    In the last layer of GPT-2 nothing comes behind it but a LayerNorm, which is fixed.
    """
    model, inputs = tiny("GPT2"), batch_for("GPT2")
    network = fixed_model(model, inputs)
    last, final = network.layers[-1], network.final
    assert final is not None
    without = replace(last, output=last.output * torch.tensor([0.0, 1.0])[:, None, None])
    cut = replace(network, layers=(*network.layers[:-1], without))
    through = [path for path in all_paths(3, 2) if path[-1] == 1]
    total = torch.stack([some.sum(0) for _, some in evaluate(network, np.array(through))]).sum(0)
    torch.testing.assert_close(total, network.output() - cut.output(), rtol=0, atol=1e-10)


def test_a_head_on_top_is_no_obstacle() -> None:
    from transformers import BertForMaskedLM

    base = tiny("Bert")
    model = BertForMaskedLM(base.config).double().eval()
    inputs = batch_for("Bert")
    network = fixed_model(model, inputs)
    with torch.no_grad():
        expected = model.bert(**inputs).last_hidden_state
    torch.testing.assert_close(network.output(), expected, rtol=0, atol=1e-10)


def test_a_part_that_is_not_known_is_named_by_its_effect() -> None:
    """A model that does something else behind an MLP is not taken apart wrongly."""
    model = tiny("GPT2")

    class Doubled(nn.Module):
        def __init__(self, norm: nn.Module) -> None:
            super().__init__()
            self.norm = norm

        def forward(self, hidden_states: torch.Tensor, **_: Any) -> Any:
            return 2 * self.norm(hidden_states)

    model.h[1].attn.resid_dropout = Doubled(nn.Identity())
    with pytest.raises(BlockError, match="GPT2Model differs from its output"):
        fixed_model(model, batch_for("GPT2"))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: nn.Linear(2, 2), "BertModel, GPT2Model, ViTModel.*found Linear"),
        (lambda: tiny("Bert").train(), "training mode"),
        (lambda: tiny("Bert").half(), "float16"),
    ],
)
def test_models_that_are_not_taken_apart(model: Any, message: str) -> None:
    with pytest.raises(BlockError, match=message):
        fixed_model(model(), batch_for("Bert"))


def test_an_overflow_names_the_layer() -> None:
    model, inputs = tiny("ViT"), batch_for("ViT")
    network = fixed_model(model, inputs)
    huge = replace(network.layers[1], output=network.layers[1].output * 1e308)
    cut = replace(network, layers=(network.layers[0], huge, huge))
    with pytest.raises(BlockError, match=r"layers 1 to [23] of 3 is no finite float64"):
        cut.by_length()
    with pytest.raises(BlockError, match="what a path computes is no finite float64"):
        list(evaluate(cut, np.array([[0, 1, 1]])))
