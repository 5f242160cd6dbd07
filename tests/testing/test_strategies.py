"""What the strategies yield: small, varied, and made again by the line that is printed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from isotest.blocks import BlockConfig
from isotest.data.embeddings import EmbeddingTable
from isotest.testing import attention_maps, blocks, embedding_tables, token_batches
from isotest.testing.attention_map import MAP_KINDS, AttentionMap
from isotest.testing.seeded_block import SeededBlock
from isotest.testing.seeded_table import SeededTable
from isotest.testing.token_batch import KINDS, TokenBatch

NAMES = {
    "BlockConfig": BlockConfig,
    "SeededBlock": SeededBlock,
    "EmbeddingTable": EmbeddingTable,
    "SeededTable": SeededTable,
    "AttentionMap": AttentionMap,
    "TokenBatch": TokenBatch,
}
ANY = st.one_of(blocks(), token_batches(4), embedding_tables(4), attention_maps())

quick = settings(max_examples=60, deadline=None)


def numbers_of(example: Any) -> torch.Tensor:
    if isinstance(example, SeededBlock):
        return torch.cat([p.detach().flatten() for p in example.module().parameters()])
    numbers: torch.Tensor = example.tensor()
    return numbers


@given(ANY)
@quick
def test_one_line_makes_it_again(example: Any) -> None:
    line = repr(example)
    assert "\n" not in line
    again = eval(line, dict(NAMES))
    assert again == example
    assert torch.equal(numbers_of(again), numbers_of(example))


@given(ANY)
@quick
def test_the_global_random_numbers_are_left_alone(example: Any) -> None:
    state = torch.random.get_rng_state()
    numbers_of(example)
    assert torch.equal(torch.random.get_rng_state(), state)


@given(blocks(), st.data())
@quick
def test_a_block_takes_the_batches_of_its_width(block: SeededBlock, data: st.DataObject) -> None:
    batch = data.draw(token_batches(block.config.width))
    module = block.module()
    assert not module.training
    assert module(batch.tensor()).shape == (batch.sequences, batch.length, batch.width)
    assert batch.width <= 18


@given(attention_maps())
@quick
def test_maps_are_averages(example: AttentionMap) -> None:
    weights = example.tensor()
    assert weights.shape == (example.heads, example.length, example.length)
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:2]).double())


@given(embedding_tables(4))
@quick
def test_sequences_are_rows_of_the_table(example: SeededTable) -> None:
    """No more different rows than the table has."""
    x = example.tensor()
    assert x.shape == (example.sequences, example.table.length, 4)
    assert len(x.flatten(0, 1).unique(dim=0)) <= example.table.vocabulary
    assert example.bias(3.0).norm().item() == pytest.approx(3.0, rel=1e-6)


def simplest(strategy: st.SearchStrategy[Any], condition: Any = lambda _: True) -> str:
    shrink = settings(max_examples=500, database=None, phases=(Phase.generate, Phase.shrink))
    return repr(find(strategy, condition, settings=shrink))


def reach(strategy: st.SearchStrategy[Any], condition: Any) -> None:
    """Demand that an example is found; it need not be the simplest."""
    find(strategy, condition, settings=settings(database=None, phases=(Phase.generate,)))


def test_what_fails_is_shrunk_to_what_matters() -> None:
    assert simplest(token_batches(4)) == "TokenBatch(sequences=1, length=1, width=4)"
    assert simplest(attention_maps()) == "AttentionMap(heads=1, length=1)"
    assert simplest(embedding_tables(4)) == (
        "SeededTable(table=EmbeddingTable(vocabulary=2, length=2), width=4)"
    )
    assert simplest(blocks()) == "SeededBlock(config=BlockConfig(width=2, heads=1, hidden=1))"
    assert simplest(blocks(), lambda block: block.config.causal) == (
        "SeededBlock(config=BlockConfig(width=2, heads=1, hidden=1, causal=True))"
    )
    assert simplest(token_batches(4), lambda batch: batch.kind == "sparse") == (
        "TokenBatch(sequences=1, length=1, width=4, kind='sparse')"
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("layer_norm", value) for value in ("post", "pre", "none")),
        *(("normalisation", value) for value in ("layernorm", "rmsnorm")),
        *(("initialisation", value) for value in ("bert", "xavier", "depth-scaled", "mup")),
        *(("activation", value) for value in ("gelu", "gelu_tanh", "relu", "silu")),
        *(
            (field, value)
            for field in ("attention_skip", "mlp", "mlp_skip", "causal", "bias", "gated")
            for value in (True, False)
        ),
    ],
)
def test_every_switch_is_tried(field: str, value: object) -> None:
    reach(blocks(), lambda block: getattr(block.config, field) == value)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_batch_is_tried(kind: str) -> None:
    reach(token_batches(4), lambda batch: batch.kind == kind)


@pytest.mark.parametrize("kind", MAP_KINDS)
def test_every_kind_of_map_is_tried(kind: str) -> None:
    reach(attention_maps(), lambda example: example.kind == kind)


@given(blocks(layer_norm="none", mlp=False, moved=0.5))
@quick
def test_fields_can_be_fixed(block: SeededBlock) -> None:
    assert block.config.layer_norm == "none"
    assert not block.config.mlp
    assert block.moved == 0.5


def test_a_failure_prints_configuration_and_seed() -> None:
    """In one line of what Hypothesis says, which makes the block again."""

    @given(block=blocks())
    @settings(max_examples=100, database=None, derandomize=True)
    def fails(block: SeededBlock) -> None:
        assert not (block.config.causal and block.seed >= 7)

    with pytest.raises(AssertionError) as caught:
        fails()
    (line,) = [
        line.strip()
        for note in caught.value.__notes__
        for line in note.splitlines()
        if "block=" in line
    ]
    again = eval(line.removeprefix("block=").rstrip(","), dict(NAMES))
    assert again.config.causal
    assert again.seed == 7


def test_moving_a_block_moves_every_parameter() -> None:
    """Gains and biases too, which are one and zero after initialisation."""
    config = BlockConfig(width=4, heads=2, hidden=3)
    still, moved = SeededBlock(config).module(), SeededBlock(config, moved=0.3).module()
    for before, after in zip(still.parameters(), moved.parameters(), strict=True):
        assert ((after - before) != 0).all()
