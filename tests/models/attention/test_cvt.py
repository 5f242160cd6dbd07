"""CvT's attention against the softmax inside it, seen at the dropout behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from transformers import CvtConfig, CvtModel

from isotest.models.attention.cvt import observer
from tests.models.attention.witness import probabilities, watched
from tests.models.tiny import TRANSFORMERS

if TYPE_CHECKING:
    from torch import Tensor

IMAGE = {"pixel_values": torch.randn(2, 3, 64, 48, generator=torch.Generator().manual_seed(0))}


def model(**config: Any) -> CvtModel:
    torch.manual_seed(0)
    module = CvtModel(CvtConfig(**(TRANSFORMERS["cvt"] | config))).double()
    with torch.no_grad():
        for name, value in module.state_dict().items():
            if "running" in name:
                # Batch norms that have seen something.
                value.copy_(torch.rand_like(value) + 0.5)
    return module


@pytest.mark.parametrize("config", [{}, {"num_heads": [1, 1, 4]}, {"qkv_bias": [False] * 3}])
def test_equals_the_softmax_inside(config: dict[str, Any]) -> None:
    # transformers takes output_attentions here and does nothing with it.
    module = model(**config)
    witness: dict[str, list[Tensor]] = {}
    for name, child in module.named_modules():
        if name.endswith("attention.attention.dropout"):
            path = name.removesuffix(".dropout")
            child.register_forward_hook(
                lambda _m, args, _o, path=path: witness.setdefault(path, []).append(args[0])
            )
    seen = watched(module, {"pixel_values": IMAGE["pixel_values"].double()}, observer)
    assert len(seen.calls) == 6
    assert set(seen.calls) == set(witness)
    for path, calls in seen.calls.items():
        (call,) = calls
        torch.testing.assert_close(probabilities(call), witness[path][-1], rtol=0, atol=1e-10)


def test_keys_are_fewer_than_queries_and_the_last_stage_has_a_class_token() -> None:
    seen = watched(model().float(), IMAGE, observer)
    sizes = [
        (call.query.shape[2], call.key.shape[2], call.cross) for (call,) in seen.calls.values()
    ]
    # Maps of 16×12, 8×6 and 4×3, of whose keys every second in each direction is kept.
    assert sizes == [(192, 48, False), (48, 12, False), (48, 12, False), *[(13, 5, False)] * 3]
