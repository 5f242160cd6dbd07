"""What is stored is what is read; every file that is something else is one message."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from isotest.blocks.config import BlockConfig
from isotest.blocks.tasks.config import NetworkConfig
from isotest.blocks.tasks.network import TaskNetwork
from isotest.blocks.tasks.sorting import Sorting
from isotest.blocks.tasks.stored import load, load_network, rounded, save
from isotest.errors import BlockError, IsotestError, MissingError, SourceError

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = Sorting().network_config("modern")


def said(**changed: Any) -> dict[str, Any]:
    return {"task": "sorting", "design": "modern", "network": CONFIG.to_dict(), **changed}


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    file = tmp_path / "sorting-modern.safetensors"
    save(file, TaskNetwork(CONFIG, seed=1).state_dict(), said(seed=1))
    return file


def rewritten(file: Path, **changed: torch.Tensor | None) -> Path:
    """The same file with tensors in place of others, or without them."""
    tensors: dict[str, Any] = {**load_file(file), **changed}
    metadata = {name: json.dumps(value) for name, value in said().items()}
    kept = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    save_file(kept, file, metadata=metadata)
    return file


def refusal(file: Path, error: type[IsotestError] = SourceError) -> str:
    with pytest.raises(error) as caught:
        load_network(file, task="sorting", design="modern")
    text = str(caught.value)
    assert str(file) in text
    assert "\n" not in text
    assert "python -m isotest.blocks.tasks" in text
    return text


def test_a_rounded_network_comes_back_bit_for_bit(stored: Path) -> None:
    expected = TaskNetwork(CONFIG, seed=1)
    exact = expected.state_dict()["head.weight"].clone()
    rounded(expected)
    found = load_network(stored, task="sorting", design="modern")
    assert not found.training
    for (name, one), (other, two) in zip(
        found.state_dict().items(), expected.state_dict().items(), strict=True
    ):
        assert name == other
        assert one.dtype == torch.float32
        assert torch.equal(one, two)
        assert np.array_equal(one.numpy(), one.numpy().astype(np.float16).astype(np.float32))
    assert not torch.equal(exact, found.state_dict()["head.weight"])


def test_metadata_come_back(stored: Path) -> None:
    assert load(stored).metadata == said(seed=1)


def test_no_file_is_missing(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "none.safetensors", MissingError)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "a.safetensors").mkdir()
    assert "no such file" in refusal(tmp_path / "a.safetensors", MissingError)


@pytest.mark.parametrize("size", [0, 5, 100, 20_000])
def test_a_file_that_is_cut_short_is_refused(stored: Path, size: int) -> None:
    stored.write_bytes(stored.read_bytes()[:size])
    assert "expected a whole safetensors file" in refusal(stored)


def test_another_kind_of_file_is_refused(stored: Path) -> None:
    torch.save({"head.weight": torch.zeros(3)}, stored)
    assert "expected a whole safetensors file" in refusal(stored)


def test_a_missing_tensor_is_named(stored: Path) -> None:
    rewritten(stored, **{"stack.blocks.3.mlp.gate.weight": None})
    assert "expected stack.blocks.3.mlp.gate.weight, found none" in refusal(stored)


def test_a_tensor_too_many_is_named(stored: Path) -> None:
    rewritten(stored, extra=torch.zeros(2, dtype=torch.float16))
    assert "found extra, which the network has not" in refusal(stored)


def test_a_wrong_shape_is_named(stored: Path) -> None:
    rewritten(stored, **{"head.weight": torch.zeros(9, 48, dtype=torch.float16)})
    assert "expected head.weight of shape (10, 48), found (9, 48)" in refusal(stored)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_weights_that_are_not_finite_are_named(stored: Path, value: float) -> None:
    bias = torch.zeros(10, dtype=torch.float16)
    bias[3] = value
    rewritten(stored, **{"head.bias": bias})
    assert "finite numbers in head.bias" in refusal(stored)


def test_another_precision_is_refused(stored: Path) -> None:
    rewritten(stored, **{"head.bias": torch.zeros(10)})
    assert "expected head.bias in float16, found float32" in refusal(stored)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"task": "convex-hull"}, 'expected task = "sorting", found "convex-hull"'),
        ({"design": "bert"}, 'expected design = "modern", found "bert"'),
        ({"network": {}}, "expected network = "),
    ],
)
def test_a_file_of_something_else_is_refused(
    stored: Path, changed: dict[str, Any], message: str
) -> None:
    save(stored, TaskNetwork(CONFIG).state_dict(), said(**changed))
    assert message in refusal(stored)


def test_a_file_that_says_nothing_of_itself_is_refused(stored: Path) -> None:
    save_file(load_file(stored), stored)
    assert 'expected task = "sorting", found nothing said of it' in refusal(stored)


def test_metadata_that_are_no_json_are_refused(stored: Path) -> None:
    save_file(load_file(stored), stored, metadata={"task": "sorting"})
    assert "expected metadata in JSON" in refusal(stored)


def test_a_file_cannot_ask_for_a_large_network(stored: Path) -> None:
    large = NetworkConfig(BlockConfig(width=10**6, heads=1, depth=10**6), 10).to_dict()
    save(stored, TaskNetwork(CONFIG).state_dict(), said(network=large))
    assert "expected network = " in refusal(stored)


@pytest.mark.parametrize("value", [torch.nan, 1e6])
def test_weights_that_float16_cannot_hold_are_not_written(tmp_path: Path, value: float) -> None:
    file = tmp_path / "weights.safetensors"
    with pytest.raises(SourceError, match="finite numbers in head"):
        save(file, {"head": torch.tensor([0.0, value])}, {})
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be written"):
        save(tmp_path / "none" / "a.safetensors", {"x": torch.zeros(1)}, {})


def test_a_network_is_its_seed() -> None:
    one, again, other = (TaskNetwork(CONFIG, seed=seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(one[name], again[name]) for name in one)
    for name in ("embedding.token", "embedding.linear.weight", "head.weight"):
        assert not torch.equal(one[name], other[name])
    assert not one["head.bias"].any()


def test_designs_have_about_as_many_weights() -> None:
    sizes = [
        sum(p.numel() for p in TaskNetwork(Sorting().network_config(design)).stack.parameters())
        for design in ("bert", "modern")
    ]
    assert sizes[1] == pytest.approx(sizes[0], rel=0.05)


def test_positions_are_told_apart_only_where_they_have_embeddings() -> None:
    with_positions = TaskNetwork(CONFIG)
    without = TaskNetwork(replace(CONFIG, positions=None))
    tokens = torch.tensor([[4, 4, 1]])
    with torch.no_grad():
        one, two = with_positions(tokens)[0, :2]
        same, also = without(tokens)[0, :2]
    assert not torch.allclose(one, two)
    torch.testing.assert_close(same, also)
    with pytest.raises(BlockError, match="at most 8 positions, found 9"):
        with_positions(torch.zeros(1, 9, dtype=torch.int64))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"classes": 0}, "classes"),
        ({"classes": 2, "vocabulary": 0}, "vocabulary"),
        ({"classes": 2, "positions": 4}, "positions go with a vocabulary"),
    ],
)
def test_a_network_that_cannot_be_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(BlockError, match=message):
        NetworkConfig(BlockConfig(width=8, heads=2, hidden=8), **fields)


def test_fields_that_there_are_none_of_are_refused() -> None:
    for fields in ({}, {"block": {}, "classes": 2, "colour": 1}, {"block": {"x": 1}, "classes": 2}):
        with pytest.raises(BlockError, match="NetworkConfig"):
            NetworkConfig.from_dict(fields)
