"""Modality ``embeddings`` without ``[drift]``: a stack of blocks, measured layer by layer."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from isotest import measure
from isotest.blocks import BlockConfig, TransformerStack
from isotest.cache import ProfileCache
from isotest.data.embeddings import EmbeddingTable, draw
from isotest.entry import Settings, measure_entry
from isotest.errors import IsotestError, NonFiniteError, SourceError, SuiteError
from isotest.selftest import selftest
from isotest.suite import load_suite

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tests.plugin.project import Project

SMALL: dict[str, Any] = {"width": 16, "heads": 2, "depth": 3, "initialisation": "xavier"}
DATA = "embeddings:normal?std=1&vocabulary=50&length=12"
SUITE = """
modality = "embeddings"
[data]
source = "embeddings:normal?std=1&vocabulary=50&length=12&bias=8"
samples = 16
[measure]
dtype = "float64"
metrics = ["mean_norm"]
[[models]]
name = "net"
source = "block:san?seed=0"
config = { width = 16, heads = 2, depth = 3, initialisation = "xavier" }
[checks.rank_residual]
max = 0.9
trend = { direction = "falls" }
baseline = { margin = 0.01 }
"""


def curve(source: str = "block:san?seed=0", data: str = DATA, **options: Any) -> Any:
    options = {"dtype": "float64", "config": SMALL, "samples": 3, **options}
    metrics = ("rank_residual", "rank_residual_composite", "mean_norm")
    return measure(source, data, modality="embeddings", metrics=metrics, **options)


def residual(x: NDArray[np.float64]) -> float:
    """Written out from the definition, sequence by sequence."""
    ratios = [np.linalg.norm(y - y.mean(axis=0)) / np.linalg.norm(y) for y in x]
    return float(np.mean(ratios))


def test_the_curve_is_that_of_the_stack_on_what_the_drift_experiment_reads() -> None:
    stack = TransformerStack(BlockConfig(layer_norm="post", mlp=False, hidden=8, **SMALL), seed=2)
    profile = curve("block:bert?seed=2", config={**SMALL, "mlp": False, "hidden": 8})
    table = EmbeddingTable(std=1.0, vocabulary=50, length=12)
    x = torch.from_numpy(draw(table, sequences=3, width=16, seed=0, replicate=0).x).double()
    expected = [x.numpy()]
    with torch.inference_mode():
        for block in stack.double().blocks:
            x = block(x)
            expected.append(x.numpy())
    assert [layer.name for layer in profile.layers] == ["0", "1", "2", "3"]
    for layer, y in zip(profile.layers, expected, strict=True):
        assert_allclose(layer.estimates["rank_residual"].value, residual(y), rtol=1e-9)
        norms = np.linalg.norm(y, axis=-1)
        assert_allclose(layer.estimates["mean_norm"].value, norms.mean(), rtol=1e-9)
    assert profile.provenance.protocol["dtype"] == "float64"
    assert profile.units == 3


def test_a_bias_is_added_to_every_vector() -> None:
    plain, biased = curve(), curve(data=f"{DATA}&bias=30")
    assert plain.layers[0].estimates["rank_residual"].value > 0.9
    table = EmbeddingTable(std=1.0, vocabulary=50, length=12)
    drawn = draw(table, sequences=3, width=16, seed=0, replicate=0)
    expected = residual(drawn.x + 30 * drawn.direction)  # about √16 / 30
    assert_allclose(biased.layers[0].estimates["rank_residual"].value, expected, rtol=1e-5)
    assert plain.provenance.data != biased.provenance.data


def test_batches_change_nothing_and_what_is_drawn_is_told_apart() -> None:
    one, all_of_them = curve(batch_size=1), curve(batch_size=8)
    for mine, other in zip(one.layers, all_of_them.layers, strict=True):
        for name, estimate in mine.estimates.items():
            assert_allclose(estimate.value, other.estimates[name].value, rtol=1e-9, atol=1e-13)
    assert one.provenance.data == all_of_them.provenance.data
    assert len({curve(seed=s, samples=n).provenance.data for s in (0, 1) for n in (3, 4)}) == 4


def test_attention_is_observed() -> None:
    profile = measure(
        "block:san", DATA, modality="embeddings", samples=3, config=SMALL,
        metrics=["attention_score_std"],
    )  # fmt: skip
    values = [layer.estimates["attention_score_std"].value for layer in profile.layers]
    assert values[0] is None
    assert all(value is not None for value in values[1:])


@pytest.mark.parametrize("depth", [64])
def test_what_a_deep_stack_does_is_a_value_or_one_message(depth: int) -> None:
    """At the float floor a value; beyond float32's range the layer; in float64 a value again."""
    deep = {**SMALL, "depth": depth}
    collapsed = [each.estimates["rank_residual"].value for each in curve(config=deep).layers]
    assert len(collapsed) == depth + 1
    assert max(collapsed[10:]) < 1e-12
    # BERT's initialisation shrinks vectors by 0.02²·16 a block: 1e-140 in the end.
    shrinks = {**deep, "initialisation": "bert"}
    assert 0 < curve(config=shrinks).layers[-1].estimates["mean_norm"].value < 1e-100
    gone = curve(config=shrinks, dtype="float32").layers[-1]
    assert gone.zero_length == gone.representations
    assert "zero length" in str(gone.estimates["rank_residual"].undefined)
    with pytest.raises(NonFiniteError, match="layer"):
        curve(data=f"{DATA}&bias=1e30", config={**deep, "layer_norm": "pre"}, dtype="float16")


def test_identical_tokens_stay_identical() -> None:
    """A table of one direction: a bias of 1e20 leaves nothing of the vectors in float32."""
    profile = curve(data=f"{DATA}&bias=1e20")
    assert profile.layers[0].estimates["rank_residual"].value == 0.0
    assert all(layer.estimates["rank_residual"].value < 1e-14 for layer in profile.layers)


def test_it_is_recorded_gated_and_cached(project: Project, tmp_path: Path) -> None:
    project.write("suites/tiny.toml", SUITE)
    project.record()
    result = project.run()
    assert result.ret == 0, result.stdout.str()
    document = json.loads(project.baseline().read_bytes())
    assert document["modality"] == "embeddings"
    assert [layer["name"] for layer in document["layers"]] == ["0", "1", "2", "3"]
    other = SUITE.replace("xavier", "bert").replace("trend", "# trend").replace("0.01", "1e-9")
    project.write("suites/tiny.toml", other)
    result = project.run("-rf")
    assert result.ret == 1
    # A stack with another initialisation computes something else: its curve is no regression.
    assert "not comparable" in result.stdout.str()
    suite = load_suite(project.write("suites/tiny.toml", SUITE))
    cache = ProfileCache(tmp_path / "cache")
    first = measure_entry(suite, suite.models[0], Settings(), cache=cache)
    again = measure_entry(suite, suite.models[0], Settings(), cache=cache)
    assert (first.cached, again.cached) == (False, True)
    more = measure_entry(suite, suite.models[0], Settings(samples=5), cache=cache)
    assert not more.cached
    with pytest.raises(IsotestError, match="expected a number of samples"):
        measure_entry(suite, suite.models[0], Settings(samples="all"))


def test_faults_planted_in_a_stack_are_noticed(project: Project) -> None:
    text = SUITE.replace('"xavier"', '"xavier", attention_skip = true').replace("bias=8", "bias=3")
    project.write("suites/tiny.toml", text)
    project.record()
    suites = project.path / "suites"
    found = selftest(
        suites / "tiny.toml",
        suites=suites,
        baselines=project.path / "baselines",
        strengths=(1.0,),
        say=lambda _: None,
    )
    (entry,) = found.entries
    assert not entry.unchanged
    noticed = {trial.fault.name for trial in entry.trials if trial.probes and not trial.missed}
    expected = {"sequence mean", "duplicated rows", "permuted data", "not a number"}
    assert expected | {"dropped layer", "common direction"} <= noticed


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("", "", ""),
        ("xavier", 'xavier", attention_skip = true, layer_norm = "post', "does not fall from"),
        ("xavier", 'xavier", causal = true, layer_norm = "none', "not 3 ± 0.3"),
        ("float64", "float32", "there is nothing to fit: 2 of 4 layers"),
    ],
)
def test_only_pure_attention_in_float64_has_the_exponent_three(
    project: Project, before: str, after: str, words: str
) -> None:
    near = SUITE[: SUITE.index("[checks")].replace("std=1", "std=0.1").replace("= 16, h", "= 64, h")
    text = f"{near}[checks.collapse_exponent]\nby = 0.3\n"
    project.write("suites/tiny.toml", text.replace(before, after) if before else text)
    result = project.run("-rf")
    assert result.ret == (1 if words else 0), result.stdout.str()
    assert words in result.stdout.str()


@pytest.mark.parametrize(
    ("before", "after", "line", "words"),
    [
        ('name = "net"', 'name = "net"\nblock = "blocks.0"', 10, "'block' belongs to the drift"),
        ('name = "net"', 'name = "net"\nwidth = 16', 10, "'width' belongs to the drift"),
        ('name = "net"', 'name = "net"\npreprocess = { size = 3 }', 10, "is about images"),
        ("samples = 16\n", "", 3, "say how many sequences"),
        ("dtype", 'tokenizer = "bytes"\ndtype', 6, "'tokenizer' has no place"),
        ("[checks.rank_residual]", "[checks.score_sign]", 12, "this suite has no table .drift."),
        ("max = 0.9\n", "max = 0.9\n[checks.fixed_point]\n[checks.anisotropy]\n", 14, "'fixed_p"),
        ("max = 0.9\n", "max = 1\n[checks.block_properties]\n[checks.anisotropy]\n", 14, "'block_"),
    ],
)
def test_keys_of_the_experiment_are_refused(
    tmp_path: Path, before: str, after: str, line: int, words: str
) -> None:
    path = tmp_path / "suite.toml"
    path.write_text(SUITE.lstrip("\n").replace(before, after, 1))
    with pytest.raises(SuiteError) as caught:
        load_suite(path)
    assert re.search(rf"suite.toml:{line}: .*{words}", str(caught.value)), caught.value


class Unknown(torch.nn.Module):
    """Blocks of a width that nothing says."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = TransformerStack(BlockConfig(hidden=8, **SMALL)).blocks

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return x


class OfImages(Unknown):
    """As models of images name their input."""

    main_input_name = "pixel_values"


@pytest.mark.parametrize(
    ("model", "data", "words"),
    [
        (Unknown(), DATA, "Unknown does not say how wide (it has no config.width)"),
        (OfImages(), DATA, "takes images, and the modality is 'embeddings'"),
        ("block:san", "sample:digits", "modality 'embeddings' has no samples, but sample: does"),
        ("block:san", "embeddings:uniform", "expected 'normal'"),
    ],
)
def test_what_does_not_fit_is_one_message(model: Any, data: str, words: str) -> None:
    with pytest.raises(SourceError) as caught:
        measure(model, data, modality="embeddings", samples=2)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_vectors_are_for_no_other_modality() -> None:
    with pytest.raises(SourceError, match="its samples are vectors, of modality 'embeddings'"):
        measure(OfImages(), DATA, samples=2)
