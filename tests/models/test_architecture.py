"""Digests: equal for what computes the same, different for what doesn't."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from isotest.models import load_model
from isotest.models.architecture import architecture, weights_fingerprint
from tests.models.tiny import VIT


def vit(**config: Any) -> dict[str, str]:
    return dict(load_model("init:vit", config={**VIT, **config}).architecture)


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_dropout_prob": 0.3},
        {"attention_probs_dropout_prob": 0.3},
        {"initializer_range": 0.5},
        {"num_labels": 5},
        {"id2label": {0: "cat"}, "label2id": {"cat": 0}},
        {"pooler_act": "relu"},
    ],
)
def test_what_does_not_decide_the_computation_does_not_count(change: dict[str, Any]) -> None:
    assert vit(**change) == vit()


@pytest.mark.parametrize(
    "change", [{"hidden_act": "relu"}, {"layer_norm_eps": 1e-3}, {"num_attention_heads": 2}]
)
def test_what_decides_the_computation_without_a_shape_is_in_the_configuration(
    change: dict[str, Any],
) -> None:
    assert vit(**change)["config"] != vit()["config"]
    assert vit(**change)["parameters"] == vit()["parameters"]


def test_shapes_count() -> None:
    assert vit(num_hidden_layers=2)["parameters"] != vit()["parameters"]
    assert vit(intermediate_size=65)["parameters"] != vit()["parameters"]


def test_names_do_not_count_because_libraries_rename() -> None:
    old, new = nn.Module(), nn.Module()
    old.layer, new.blocks = nn.Linear(2, 3), nn.Linear(2, 3)
    assert architecture(old) == architecture(new)
    new.extra = nn.Linear(2, 3)
    assert architecture(old)["parameters"] != architecture(new)["parameters"]


def test_buffers_count_but_training_steps_do_not() -> None:
    one, other = nn.BatchNorm2d(3), nn.BatchNorm2d(3)
    assert other.num_batches_tracked is not None
    other.num_batches_tracked += 7
    assert weights_fingerprint(one) == weights_fingerprint(other)
    assert other.running_mean is not None
    other.running_mean += 1e-6
    assert weights_fingerprint(one) != weights_fingerprint(other)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_storage_counts(dtype: torch.dtype) -> None:
    module = nn.Linear(3, 3)
    before = weights_fingerprint(module)
    assert weights_fingerprint(module.to(dtype)) != before


def test_swapped_tensors_and_views_are_seen() -> None:
    a, b = torch.rand(4, 4), torch.rand(4, 4)

    def digest(first: torch.Tensor, second: torch.Tensor) -> str:
        module = nn.Module()
        module.register_buffer("a", first)
        module.register_buffer("b", second)
        return weights_fingerprint(module)

    assert digest(a, b) != digest(b, a)
    assert digest(a.t(), b) == digest(a.t().contiguous(), b)
    assert digest(torch.tensor(1.0), b) == digest(torch.tensor(1.0), b)
