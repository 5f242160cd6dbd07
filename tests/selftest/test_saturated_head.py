"""However a family lays out its projections: one head is altered, the first, in one block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
import torch
import transformers

from isotest.faults import FAULTS
from isotest.models.loaded import LoadedModel, ObservedLayer

if TYPE_CHECKING:
    from torch import Tensor, nn

    from isotest.data.dataset import Dataset

(FAULT,) = [fault for fault in FAULTS if fault.name == "saturated head"]
NOWHERE = cast("Dataset", None)
MIDDLE = 1  # of three blocks

TINY: dict[str, tuple[str, str, dict[str, Any]]] = {
    "separate": ("Bert", "encoder.layer", {"intermediate_size": 32}),
    "one shared block": (
        "Albert",
        "encoder.albert_layer_groups.0",
        {"intermediate_size": 32, "embedding_size": 16},
    ),
    "all queries first": ("GPT2", "h", {}),
    "head by head": ("GPTNeoX", "layers", {"intermediate_size": 32}),
    "rotated, keys shared": (
        "Llama",
        "layers",
        {"intermediate_size": 32, "num_key_value_heads": 2},
    ),
}


def tiny(family: str, options: dict[str, Any]) -> nn.Module:
    sizes = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4}
    config = getattr(transformers, f"{family}Config")(
        **sizes, **options, attn_implementation="eager"
    )
    torch.manual_seed(0)
    model: nn.Module = getattr(transformers, f"{family}Model")(config).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    return model


def layer(path: str, number: int) -> ObservedLayer:
    shared = path.endswith("groups.0")
    return ObservedLayer(
        str(number + 1),
        path if shared else f"{path}.{number}",
        lambda output: cast("Tensor", output),
        "tokens",
        call=number if shared else 0,
        calls=3 if shared else 1,
    )


def loaded(model: nn.Module, path: str) -> LoadedModel:
    return LoadedModel(
        module=model,
        layers=tuple(layer(path, number) for number in range(3)),
        feed=cast("Any", None),
        architecture={},
        weights="",
        commit=None,
        versions={},
        default_representation="positions",
    )


@pytest.mark.parametrize("layout", TINY)
@torch.inference_mode()
def test_only_the_first_head_of_the_middle_block_is_sharper(layout: str) -> None:
    family, path, options = TINY[layout]
    model = tiny(family, options)
    ids = torch.randint(50, (2, 9), generator=torch.Generator().manual_seed(1))

    def attentions() -> list[Tensor]:
        return list(model(ids, output_attentions=True).attentions)

    before = attentions()
    with FAULT.plant(loaded(model, path), NOWHERE, 1.0):
        altered = attentions()
    assert all(torch.equal(*pair) for pair in zip(attentions(), before, strict=True))
    assert torch.equal(altered[0], before[0])
    old, new = before[MIDDLE], altered[MIDDLE]
    torch.testing.assert_close(new[:, 1:], old[:, 1:], rtol=0, atol=0)
    # Scores of the first head × 64 are the softmax's rows to the power of 64, made to sum to 1.
    # Of a causal model, what a row must not see stays unseen.
    expected = torch.softmax(64 * old[:, 0].double().log(), dim=-1)
    torch.testing.assert_close(new[:, 0].double(), expected, rtol=0, atol=1e-3)
    assert new[:, 0].amax(-1).mean() > old[:, 0].amax(-1).mean()
