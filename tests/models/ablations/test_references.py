"""Each switch, and all of them together, against blocks written out on the same weights."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
import torch

from isotest.blocks import TransformerBlock
from isotest.blocks.weights import from_bert_layer
from isotest.models.ablations import Ablation, ablated
from tests.models.ablations.families import batch, model, states
from tests.models.ablations.reference import REFERENCES

COMBINATIONS = [Ablation(*switches) for switches in product((True, False), repeat=4)]

# RMSNorm in transformers computes in float32 whatever the model's dtype; XLNet and Llama make
# their positions in it.
TOLERANCE = {"llama": 2e-4, "xlnet": 2e-5}


@pytest.mark.parametrize("family", REFERENCES)
def test_all_combinations_equal_the_reference(family: str) -> None:
    module, inputs = model(family), batch(family)
    embedded = states(module, inputs)[0]
    masks = inputs.get("attention_mask", torch.ones(embedded.shape[:2])).bool()
    for switches in COMBINATIONS:
        with ablated(module, switches):
            last = states(module, inputs)[-1]
        for x, y, valid in zip(embedded, last, masks, strict=True):
            with torch.no_grad():
                expected = REFERENCES[family](module, x, valid, switches)
            scale = expected[valid].abs().max()
            error = (y - expected)[valid].abs().max() / scale
            assert error < TOLERANCE.get(family, 1e-10), switches


@pytest.mark.parametrize("switches", COMBINATIONS)
def test_bert_equals_the_synthetic_block(switches: Ablation) -> None:
    module, inputs = model("bert"), batch("bert")
    with ablated(module, switches):
        observed = states(module, inputs)
    x, valid = observed[0], inputs["attention_mask"].bool()
    for layer, expected in zip(module.encoder.layer, observed[1:-1], strict=True):
        whole = from_bert_layer(layer)
        config = replace(
            whole.config,
            attention_skip=switches.attention_skip,
            mlp=switches.mlp,
            mlp_skip=switches.mlp_skip,
            layer_norm="post" if switches.layer_norm else "none",
        )
        block = TransformerBlock(config).double()
        block.load_state_dict(
            {name: whole.state_dict()[name] for name in block.state_dict()}, strict=True
        )
        with torch.no_grad():
            x = block(x, valid)
        torch.testing.assert_close(x[valid], expected[valid], rtol=1e-10, atol=1e-10)
