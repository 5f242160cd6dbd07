"""An entry of a suite whose block is tried: red where a property is violated, or none was tried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn

from isotest.cache import ProfileCache
from isotest.entry import Settings, measure_entry
from isotest.errors import MissingError, SourceError
from isotest.gate.checks import BlockPropertiesCheck
from isotest.suite import load_suite
from isotest.testing.of_entry import tried_properties
from isotest.testing.properties import PROPERTIES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from isotest.entry import Measurement

SUITE = """
modality = "embeddings"

[data]
source = "embeddings:normal?vocabulary=50&length=4"
samples = 2

[drift]
norms = [0, 4]
replicates = 2

[checks.block_properties]
examples = 2
heads = 2
{claims}

[[models]]
name = "block"
source = "{source}"
{config}
"""

SMALL = "config = {{ width = 8, heads = 2, hidden = 16, layer_norm = '{layer_norm}' }}"

MODULE = """
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, half=False):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, bias=False)

    def forward(self, x):
        return self.layer(x), "attention"


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Encoder().layer, nn.Linear(8, 8)])

    def forward(self, x):
        return self.layers[1](self.layers[0](x))
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Write a suite with one entry beside a module of the user's own."""
    monkeypatch.setenv("ISOTEST_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_blocks.py").write_text(MODULE)
    (tmp_path / "suites").mkdir()

    def write(source: str, *, claims: str = "", config: str = "") -> Path:
        path = tmp_path / "suites" / "drift.toml"
        path.write_text(SUITE.format(source=source, claims=claims, config=config))
        return path

    return write


def measured(path: Path, cache: ProfileCache | None = None) -> Measurement:
    suite = load_suite(path)
    return measure_entry(suite, suite.models[0], Settings(), cache=cache)


def results(path: Path, cache: ProfileCache | None = None) -> dict[str, str]:
    tried = measured(path, cache).profile.properties
    assert [each.name for each in tried] == [each.name for each in PROPERTIES]
    return {each.name: each.result for each in tried}


def test_what_a_block_claims_wrongly_is_violated(write: Callable[..., Path]) -> None:
    """A pre-norm block has a sum behind its last norm; a bidirectional one looks ahead."""
    found = results(
        write(
            "block:bert?seed=0",
            claims="normalised = true\ncausal = true",
            config=SMALL.format(layer_norm="pre"),
        )
    )
    assert {name for name, result in found.items() if result == "violated"} == {
        "output_norm",
        "causal",
    }


@pytest.mark.parametrize("source", ["block:bert?seed=0", "block:modern?seed=0"])
def test_a_healthy_block_violates_nothing(write: Callable[..., Path], source: str) -> None:
    found = results(write(source, config=SMALL.format(layer_norm="post")))
    assert "violated" not in found.values()
    assert {"output_norm", "softmax_rows", "attention_scale"} <= {
        name for name, result in found.items() if result == "holds"
    }


def test_claims_are_part_of_what_is_cached(write: Callable[..., Path]) -> None:
    small = SMALL.format(layer_norm="pre")
    path = write("block:bert?seed=0", config=small)
    healthy = results(path, ProfileCache())
    assert measured(path, ProfileCache()).cached
    assert results(path, ProfileCache()) == healthy
    claimed = write("block:bert?seed=0", config=small, claims="normalised = true")
    assert healthy["output_norm"] == "not applicable"
    assert results(claimed, ProfileCache())["output_norm"] == "violated"


def test_a_block_of_ones_own_that_returns_a_tuple(write: Callable[..., Path]) -> None:
    """The hidden states are its first, as for every observed layer."""
    found = results(write("python:own_blocks:Encoder"))
    assert found["shape"] == "holds"
    assert "violated" not in found.values()


def test_the_line_that_shows_it_again_names_the_users_class(write: Callable[..., Path]) -> None:
    path = write("python:own_blocks:Encoder", claims="causal = true")
    (causal,) = (e for e in measured(path).profile.properties if e.result == "violated")
    assert causal.name == "causal"
    assert causal.reproduce.startswith("check_block(own_blocks.Encoder, width=8, heads=2, ")


def test_a_block_inside_a_model(write: Callable[..., Path]) -> None:
    path = write("python:own_blocks:Two", config='block = "layers.0"', claims="causal = true")
    (causal,) = (e for e in measured(path).profile.properties if e.result == "violated")
    assert causal.reproduce.startswith("check_block(lambda: block, ")


def test_heads_that_cannot_be_seen_are_asked_for(write: Callable[..., Path]) -> None:
    path = write("python:own_blocks:Two", config='block = "layers.1"')
    path.write_text(path.read_text().replace("heads = 2\n", ""))
    with pytest.raises(SourceError, match=r"how many heads .*\[checks.block_properties\]"):
        measured(path)


def test_hypothesis_is_said_to_be_missing(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    path = write("block:bert?seed=0", config=SMALL.format(layer_norm="post"))
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(MissingError, match=r"pip install 'isotest\[testing\]'"):
        measured(path)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_block_in_another_dtype_is_tried_as_a_copy(dtype: torch.dtype) -> None:
    block = nn.Linear(4, 4).to(dtype)
    tried = tried_properties(
        block, BlockPropertiesCheck(examples=1), width=4, heads=1, source="hub:it", whole=True
    )
    assert {each.result for each in tried} == {"holds", "not applicable"}
    assert block.weight.dtype == dtype


def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, text: str) -> Any:
    monkeypatch.setenv("ISOTEST_CACHE_DIR", str(pytester.path / "cache"))
    monkeypatch.delenv("CI", raising=False)
    pytester.syspathinsert()
    pytester.makepyfile(own_blocks=MODULE)
    suites = pytester.mkdir("suites")
    (suites / "drift.toml").write_text(text)
    return pytester.runpytest_inprocess("--isotest", "-pno:cacheprovider")


def test_the_gate_is_red_with_the_counterexample(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = SUITE.format(source="python:own_blocks:Encoder", claims="causal = true", config="")
    result = run(pytester, monkeypatch, text)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "*::block::block_properties: causal is violated: other tokens from position 1 on *",
            "*check_block(own_blocks.Encoder, width=8, heads=2, causal=True, *",
        ]
    )


def test_the_gate_is_green_where_all_that_applies_holds(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = SUITE.format(source="python:own_blocks:Encoder", claims="", config="")
    result = run(pytester, monkeypatch, text)
    assert result.ret == 0, result.stdout.str()
