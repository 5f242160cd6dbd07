"""Hypothesis strategies for blocks and what goes through them.

Each yields a description of a few numbers, whose ``module()`` or ``tensor()`` makes the thing
itself: the same one every time, so that what Hypothesis prints of a failure is one line that shows
it again. All shrink to small sizes, seed 0 and the plainest kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from isotest.blocks import BlockConfig
from isotest.data.embeddings import EmbeddingTable
from isotest.testing.attention_map import MAP_KINDS, AttentionMap
from isotest.testing.seeded_block import SeededBlock
from isotest.testing.seeded_table import SeededTable
from isotest.testing.token_batch import KINDS, TokenBatch

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

_SEEDS = st.integers(0, 999)


def blocks(**fixed: Any) -> SearchStrategy[SeededBlock]:
    """Small synthetic blocks: up to three heads of two to six entries, every switch tried.

    Args:
        **fixed: fields of :class:`isotest.blocks.BlockConfig`, or ``moved``, that all of them have;
            ``heads`` and ``width`` together or not at all.
    """
    return _blocks(fixed)


@st.composite
def _blocks(draw: DrawFn, fixed: dict[str, Any]) -> SeededBlock:
    heads = draw(st.integers(1, 3))
    either = st.sampled_from((True, False))
    fields: dict[str, SearchStrategy[Any]] = {
        "heads": st.just(heads),
        "width": st.sampled_from((2, 4, 6)).map(lambda width: heads * width),
        "hidden": st.integers(1, 8),
        "attention": st.just(True),
        "attention_skip": either,
        "mlp": either,
        "mlp_skip": either,
        "layer_norm": st.sampled_from(("post", "pre", "none")),
        "normalisation": st.sampled_from(("layernorm", "rmsnorm")),
        "causal": st.booleans(),
        "bias": either,
        "gated": st.booleans(),
        "activation": st.sampled_from(("gelu", "gelu_tanh", "relu", "silu")),
        "initialisation": st.sampled_from(("bert", "xavier", "depth-scaled", "mup")),
        "depth": st.sampled_from((1, 4)),
        "moved": st.sampled_from((0.0, 0.3)),
    }
    chosen = {name: draw(strategy) for name, strategy in fields.items() if name not in fixed}
    chosen |= fixed
    moved = chosen.pop("moved")
    return SeededBlock(BlockConfig(**chosen), draw(_SEEDS), moved)


def token_batches(
    width: int, *, sequences: int = 1, length: int = 1, scales: tuple[float, ...] = (1.0, 0.1, 3.0)
) -> SearchStrategy[TokenBatch]:
    """Small batches: what goes wrong between positions goes wrong between a few of them.

    Args:
        width: D.
        sequences: the least B; the most is 3, or this.
        length: the least L; the most is 9, or this.
        scales: what entries are multiplied by.
    """
    return st.builds(
        TokenBatch,
        sequences=st.integers(sequences, max(3, sequences)),
        length=st.integers(length, max(9, length)),
        width=st.just(width),
        seed=_SEEDS,
        kind=st.sampled_from(KINDS),
        scale=st.sampled_from(scales),
    )


def embedding_tables(width: int) -> SearchStrategy[SeededTable]:
    """Sequences from small embedding tables, as the drift experiment draws them.

    Args:
        width: D.
    """
    table = st.builds(
        EmbeddingTable,
        std=st.sampled_from((0.02, 1.0)),
        vocabulary=st.integers(2, 12),
        length=st.integers(2, 9),
    )
    return st.builds(
        SeededTable,
        table=table,
        width=st.just(width),
        sequences=st.integers(1, 3),
        seed=_SEEDS,
    )


def attention_maps(length: int | None = None) -> SearchStrategy[AttentionMap]:
    """Attention maps of up to three heads, from uniform to one key a query.

    Args:
        length: L; by default 1 to 9.
    """
    return st.builds(
        AttentionMap,
        heads=st.integers(1, 3),
        length=st.integers(1, 9) if length is None else st.just(length),
        seed=_SEEDS,
        kind=st.sampled_from(MAP_KINDS),
    )
