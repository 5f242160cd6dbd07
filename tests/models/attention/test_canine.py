"""CANINE's attention against the probabilities that transformers returns."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import CanineConfig, CanineModel

from isotest.models.attention.canine import observer
from tests.models.attention.witness import probabilities, watched

LOCAL = "initial_char_encoder.layer.0.attention"
LAYERS = [
    LOCAL,
    "encoder.layer.0.attention",
    "encoder.layer.1.attention",
    "final_char_encoder.layer.0.attention",
]


def model(**config: Any) -> CanineModel:
    torch.manual_seed(0)
    tiny = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "local_transformer_stride": 8,
        "num_hash_buckets": 32,
        "max_position_embeddings": 64,
        "initializer_range": 0.3,
    }
    return CanineModel(CanineConfig(**(tiny | config)))


def inputs(length: int, valid: int) -> dict[str, torch.Tensor]:
    ids = torch.randint(1, 999, (2, length), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[1, valid:] = 0
    return {"input_ids": ids, "attention_mask": mask}


# Whole chunks, a short last one, one chunk alone, a chunk of padding only, and nothing padded.
@pytest.mark.parametrize(("length", "valid"), [(32, 29), (20, 18), (8, 5), (24, 6), (24, 24)])
def test_equals_the_librarys_probabilities(length: int, valid: int) -> None:
    # In float32: in float64, transformers' mask of the first layer is not a number.
    module = model()
    given = inputs(length, valid)
    local: list[torch.Tensor] = []
    # Of the chunks, transformers returns the first only.
    module.get_submodule(f"{LOCAL}.self.dropout").register_forward_hook(
        lambda _m, args, _o: local.append(args[0])
    )
    seen = watched(module, given, observer, output_attentions=True)
    assert list(seen.calls) == LAYERS
    assert all(len(calls) == 1 and not calls[0].cross for calls in seen.calls.values())
    chunks = local[len(local) // 2 :]
    assert len(chunks) == -(-length // 8)

    call = seen.calls[LOCAL][0]
    found = probabilities(call).unflatten(0, (2, -1))
    assert call.queries is not None
    counted = call.queries.unflatten(0, (2, -1))
    assert torch.equal(counted.flatten(1)[:, :length], given["attention_mask"].bool())
    assert int(counted.sum()) == int(given["attention_mask"].sum())
    for number, expected in enumerate(chunks):
        size = expected.shape[-1]
        for text in range(2):
            rows = counted[text, number, :size]
            torch.testing.assert_close(
                found[text, number, :, :size, :size][:, rows],
                expected[text][:, rows],
                rtol=0,
                atol=1e-5,
            )

    for path, expected in zip(LAYERS[1:], seen.output.attentions[1:], strict=True):
        torch.testing.assert_close(probabilities(seen.calls[path][0]), expected, rtol=0, atol=1e-5)


def test_other_chunks_are_named() -> None:
    module = model()
    attention: Any = module.get_submodule(LOCAL)
    attention.always_attend_to_first_position = True
    seen = watched(module, inputs(32, 30), observer)
    assert list(seen.calls) == LAYERS[1:]
    assert "first position" in seen.unseen[LOCAL]
