"""``block:`` in a suite: what it builds, how it is told apart, and that its attention is seen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from isotest.blocks import BlockConfig, TransformerBlock, TransformerStack
from isotest.errors import SourceError, SuiteError
from isotest.models.architecture import architecture, weights_fingerprint
from isotest.models.attention.registry import observer_of
from isotest.models.identity import model_identity
from isotest.models.registry import Request, build
from isotest.source import MODEL_SCHEMES, parse_source
from isotest.suite import load_suite
from tests.models.attention.witness import probabilities, watched

SMALL: dict[str, Any] = {"width": 12, "heads": 3, "hidden": 20}


def built(source: str, **config: Any) -> Any:
    return build(Request(parse_source(source, MODEL_SCHEMES), config, Path())).module


def identity(source: str, **config: Any) -> str | None:
    return model_identity(parse_source(source, MODEL_SCHEMES), config=config, base=None)


def test_it_is_a_stack_of_the_preset_with_the_suites_overrides() -> None:
    stack = built("block:vit?seed=3", depth=2, **SMALL)
    config = BlockConfig(layer_norm="pre", layer_norm_eps=1e-6, depth=2, **SMALL)
    assert stack.config == config
    same = TransformerStack(config, seed=3)
    assert weights_fingerprint(stack) == weights_fingerprint(same)
    assert built("block:bert").config == BlockConfig.bert()
    assert built("block:modern").config == BlockConfig.modern()
    other = built("block:modern", causal=True, gated=False, normalisation="layernorm", **SMALL)
    assert not other.config.gated
    assert isinstance(other.blocks[0].mlp_norm, torch.nn.LayerNorm)


def test_a_seed_repeats_and_another_differs() -> None:
    first, again, other = (
        weights_fingerprint(built(f"block:bert?seed={seed}", **SMALL)) for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("source", "config", "message"),
    [
        ("block:bart", {}, "unknown block 'bart'; did you mean 'bert'?"),
        ("block:zzz", {}, "unknown block 'zzz'; known: bert, modern, san, vit"),
        ("block:bert?sed=1", {}, "unknown option 'sed'; did you mean 'seed'?"),
        ("block:bert?seed=x", {}, "expected seed to be a whole number from 0, found 'x'"),
        ("block:bert", {"widht": 8}, "no configuration key 'widht'; did you mean 'width'?"),
        ("block:bert", {"to_dict": 8}, "no configuration key 'to_dict'"),
        ("block:bert", {"width": 10}, "width to be a multiple of heads"),
        ("block:modern", {"gated": "yes"}, "expected gated to be true or false, found 'yes'"),
        ("block:bert", {"normalisation": "rms"}, "unknown normalisation 'rms'"),
        ("block:bert", {"causal": "yes"}, "expected causal to be true or false, found 'yes'"),
        ("block:bert", {"width": 12 * 10**9}, "cannot build it: "),
    ],
)
def test_bad_input_is_one_clear_message(source: str, config: dict[str, Any], message: str) -> None:
    with pytest.raises(SourceError) as caught:
        built(source, **config)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"source '{source}': ")
    assert "\n" not in str(caught.value)


def test_its_identity_is_what_decides_the_weights() -> None:
    identities = {
        identity("block:bert?seed=0"),
        identity("block:bert?seed=1"),
        identity("block:vit?seed=0"),
        identity("block:bert?seed=0", width=1536),
    }
    assert len(identities) == 4
    assert None not in identities
    assert identity("block:bert?seed=0") == identity("block:bert?seed=0")


def test_blocks_with_the_same_parameters_and_other_switches_are_not_comparable() -> None:
    bidirectional, causal = (
        architecture(TransformerStack(BlockConfig(causal=causal, **SMALL)))
        for causal in (False, True)
    )
    assert bidirectional["parameters"] == causal["parameters"]
    assert bidirectional["config"] != causal["config"]


def test_blocks_with_another_normalisation_or_gate_are_not_comparable() -> None:
    found = [
        architecture(TransformerStack(BlockConfig(**SMALL, **changes)))
        for changes in ({}, {"normalisation": "rmsnorm"}, {"gated": True})
    ]
    for key in ("parameters", "config"):
        assert len({each[key] for each in found}) == 3


def suite(folder: Path, source: str, config: str) -> Any:
    text = f"""
modality = "vision"
[data]
source = "sample:digits"
[[models]]
name = "block"
source = "{source}"
config = {config}
[checks.anisotropy]
max = 0.5
"""
    (folder / "suite.toml").write_text(text)
    return load_suite(folder / "suite.toml")


def test_a_suite_may_give_it_a_config(tmp_path: Path) -> None:
    loaded = suite(tmp_path, "block:bert?seed=1", "{ width = 24, heads = 2 }")
    assert loaded.models[0].config == {"width": 24, "heads": 2}
    with pytest.raises(SuiteError, match="to init:, block:, and path: with architecture="):
        suite(tmp_path, "sample:digits-vit", "{ width = 24 }")


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("layer_norm", ["post", "pre"])
@pytest.mark.parametrize("normalisation", ["layernorm", "rmsnorm"])
def test_what_is_observed_is_what_the_block_attends_with(
    normalisation: Any, layer_norm: Any, causal: bool, masked: bool
) -> None:
    config = BlockConfig(
        causal=causal, layer_norm=layer_norm, normalisation=normalisation, depth=2, **SMALL
    )
    stack = TransformerStack(config)
    x = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(0))
    inputs = {"x": x}
    if masked:
        inputs["valid"] = torch.tensor([[True] * 3 + [False] * 2, [False] * 2 + [True] * 3])
    seen = watched(stack, inputs, observer_of)
    assert not seen.unseen
    assert list(seen.calls) == ["blocks.0.attention", "blocks.1.attention"]
    with torch.inference_mode():
        for block, calls in zip(stack.blocks, seen.calls.values(), strict=True):
            assert isinstance(block, TransformerBlock)
            trace = block.trace(x, inputs.get("valid"))
            (call,) = calls
            assert torch.equal(call.query, trace.query)
            assert torch.equal(call.key, trace.key)
            torch.testing.assert_close(probabilities(call), trace.weights)
            x = block(x, inputs.get("valid"))


def test_naming_a_block_costs_no_torch() -> None:
    """A suite with one is read, and its identity found in the cache, in a fraction of a second."""
    code = (
        "import sys, isotest.blocks, isotest.models.identity as i, isotest.suite\n"
        "from isotest.source import *\n"
        "s = parse_source('block:bert', MODEL_SCHEMES)\n"
        "assert i.model_identity(s, config={}, base=None)\n"
        "assert isotest.blocks.BlockConfig.vit().layer_norm == 'pre'\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
