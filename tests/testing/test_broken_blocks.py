"""Each mistake is caught under its name, and the block without it has none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import pytest
import torch

from isotest.blocks import BlockConfig, TransformerBlock
from isotest.testing import BlockReport, Result, TokenBatch, check_block
from tests.testing import broken_blocks
from tests.testing.broken_blocks import HEADS, WIDTH, Healthy, HealthyCausal


@dataclass(frozen=True)
class Mistake:
    """A broken block, and what must be said of it.

    Attributes:
        broken: the block.
        caught: the property that has the mistake's name.
        also: further properties that do not hold with this mistake either.
        masked: whether it takes a mask.
        raises: whether it also refuses some inputs, whatever is tried on them.
    """

    broken: type[Healthy]
    caught: str
    also: frozenset[str] = frozenset()
    masked: bool = False
    raises: bool = False


# Weights that do not sum to one make no average, so outputs leave the range of the values.
NO_AVERAGE = frozenset({"softmax_rows", "convex_hull"})

MISTAKES = (
    Mistake(broken_blocks.CausalLeak, "causal"),
    # What is added to a row of scores cancels in the softmax over that row, and in no other.
    Mistake(broken_blocks.WrongSoftmaxAxis, "softmax_rows", also=NO_AVERAGE | {"key_shift"}),
    Mistake(broken_blocks.MaskAfterSoftmax, "masked_keys", also=NO_AVERAGE, masked=True),
    Mistake(broken_blocks.MaskAddedAfterSoftmax, "masked_keys", also=NO_AVERAGE, masked=True),
    # A single vector has no variance, and torch says so.
    Mistake(broken_blocks.BatchNorm, "batch_independence", raises=True),
    Mistake(broken_blocks.ForgottenScale, "attention_scale"),
    Mistake(broken_blocks.DropoutLeftOn, "deterministic"),
    # What neighbours are taken for heads differs by position, even where all hold the same.
    Mistake(
        broken_blocks.HeadsNotTransposed,
        "permutation_equivariance",
        also=frozenset({"constant_rows"}),
    ),
    Mistake(broken_blocks.ChangedInput, "input_unchanged"),
)


def healthy_twin(mistake: Mistake) -> type[Healthy]:
    return HealthyCausal if issubclass(mistake.broken, HealthyCausal) else Healthy


@cache
def checked(name: str, *, masked: bool) -> BlockReport:
    block: type[Healthy] = getattr(broken_blocks, name)
    return check_block(
        block, width=WIDTH, heads=HEADS, causal=block.causal, masked=masked, examples=10
    )


by_name = pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.broken.__name__)


@by_name
def test_a_mistake_is_caught_by_its_name(mistake: Mistake) -> None:
    report = checked(mistake.broken.__name__, masked=mistake.masked)
    assert not report
    refused = [o.property for o in report.violated if o.text.startswith("the block raised")]
    shown = {o.property for o in report.violated} - set(refused)
    assert shown == {mistake.caught} | mistake.also, str(report)
    assert ("shape" in refused) == bool(refused) == mistake.raises


@by_name
def test_the_healthy_twin_has_none(mistake: Mistake) -> None:
    report = checked(healthy_twin(mistake).__name__, masked=mistake.masked)
    assert not report.violated, str(report)
    assert report[mistake.caught].result is Result.HOLDS


@by_name
def test_one_line_shows_the_mistake_again(mistake: Mistake) -> None:
    """Pasted into a session that knows the block."""
    outcome = checked(mistake.broken.__name__, masked=mistake.masked)[mistake.caught]
    names = {"check_block": check_block, "TokenBatch": TokenBatch}
    names[mistake.broken.__name__] = mistake.broken
    again: BlockReport = eval(outcome.reproduce, names)
    assert [o.property for o in again.violated] == [mistake.caught]
    assert again[mistake.caught].text == outcome.text


def test_the_healthy_block_is_the_synthetic_block() -> None:
    """Two readings of the same papers: with the same weights they give the same."""
    healthy = Healthy()
    config = BlockConfig(width=WIDTH, heads=HEADS, hidden=2 * WIDTH, layer_norm_eps=1e-5)
    synthetic = TransformerBlock(config)
    home = {name: f"attention.{name}" for name in ("query", "key", "value", "output")}
    home |= {"mlp.0": "mlp.hidden", "mlp.2": "mlp.output"}
    weights = {}
    for name, weight in healthy.state_dict().items():
        part, _, kind = name.rpartition(".")
        weights[f"{home.get(part, part)}.{kind}"] = weight
    synthetic.load_state_dict(weights)
    x = TokenBatch(2, 5, WIDTH).tensor()
    valid = torch.tensor([[True] * 5, [True, False, True, False, False]])
    for arguments in ((x,), (x, valid)):
        torch.testing.assert_close(healthy(*arguments), synthetic(*arguments))
