"""Ablated entries of a suite: measured, cached and compared as what they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from transformers import XLNetConfig, XLNetModel

from isotest import measure
from isotest.cache import ProfileCache
from isotest.comparability import comparable
from isotest.entry import Settings, measure_entry
from isotest.errors import SourceError
from isotest.suite import load_suite

if TYPE_CHECKING:
    from pathlib import Path

    from isotest.suite import Suite

SUITE = """\
modality = "text"

[data]
source = "sample:passages"
samples = 8

[measure]
tokenizer = "sample:tokenizer"
packing = "documents"
length = 32
metrics = ["rank_residual"]

[checks.rank_residual]
max = 1.0
"""
MODEL = """
[[models]]
name = "{name}"
source = "init:bert?seed=0"
config = {{ hidden_size = 32, num_hidden_layers = 4, num_attention_heads = 2 }}
{ablate}
"""
ENTRIES = {
    "untouched": "",
    "full": 'ablate = "full"',
    "san": 'ablate = "san"',
    "the same": "ablate = { attention_skip = false, mlp = false, mlp_skip = false }",
    "skip": 'ablate = "san+skip"',
}


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    path = tmp_path / "rank.toml"
    path.write_text(
        SUITE + "".join(MODEL.format(name=name, ablate=key) for name, key in ENTRIES.items())
    )
    return load_suite(path, root=tmp_path)


def test_entries_are_measured_cached_and_compared_by_what_is_off(
    suite: Suite, tmp_path: Path
) -> None:
    cache = ProfileCache(tmp_path / "cache")
    measured = {
        spec.name: measure_entry(suite, spec, Settings(), cache=cache) for spec in suite.models
    }
    assert {name for name, each in measured.items() if each.cached} == {"full", "the same"}
    curves = {
        name: [float(layer.estimates["rank_residual"].value or 0) for layer in each.profile.layers]
        for name, each in measured.items()
    }
    assert curves["full"] == curves["untouched"]
    # Rank collapse (Dong et al. 2021): without skips and MLPs little is left after four layers.
    assert curves["san"][0] == curves["untouched"][0]
    assert curves["san"][-1] < 0.05 < curves["skip"][-1]
    assert measured["san"].profile.provenance.protocol["ablated"] == "attention_skip, mlp"
    assert "ablated" not in measured["full"].profile.provenance.protocol

    def compared(first: str, second: str) -> object:
        return comparable(measured[first].profile, replace(measured[second].profile, model=first))

    assert not compared("untouched", "full")
    assert not compared("san", "the same")
    assert "ablated" in str(compared("san", "untouched"))
    assert "ablated" in str(compared("san", "skip"))


def test_a_model_without_a_recognised_family_is_one_message(tmp_path: Path) -> None:
    path = tmp_path / "rank.toml"
    model = '[[models]]\nname = "a"\nsource = "init:resnet"\nablate = "san"\n'
    path.write_text(
        f'modality = "vision"\n[data]\nsource = "sample:digits"\nsamples = 8\n{model}'
        "[checks.rank_residual]\nmax = 1.0\n"
    )
    suite = load_suite(path, root=tmp_path)
    with pytest.raises(SourceError, match="nothing is known of how to switch off parts of ResNet"):
        measure_entry(suite, suite.models[0], Settings())


def test_from_python_attention_is_observed_in_what_is_left() -> None:
    texts = [f"{word} is a word of its own, and {word} again" for word in ("one", "two", "three")]
    module = XLNetModel(XLNetConfig(d_model=16, n_layer=2, n_head=2, d_inner=32, vocab_size=5096))
    profile = measure(
        module,
        texts,
        modality="text",
        tokenizer="sample:tokenizer",
        packing="documents",
        metrics=["attention_entropy", "rank_residual"],
        ablate={"attention_skip": False, "layer_norm": False},
    )
    assert profile.provenance.protocol["ablated"] == "attention_skip, layer_norm"
    entropies = [layer.estimates["attention_entropy"].value for layer in profile.layers[1:]]
    assert all(value is not None and 0 < value <= 1 for value in entropies)
