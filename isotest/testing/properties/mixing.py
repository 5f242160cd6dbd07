"""What a position's output may depend on: its order, later positions, other sequences."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from isotest.testing.properties.comparison import require_equal
from isotest.testing.properties.conduct import always
from isotest.testing.property import Property

if TYPE_CHECKING:
    from isotest.testing.subject import Subject
    from isotest.testing.token_batch import TokenBatch


def _causal(subject: Subject, batch: TokenBatch) -> None:
    x = batch.tensor()
    other = replace(batch, kind="normal", seed=batch.seed + 1).tensor()
    before = subject.run(x.clone())
    for cut in range(1, batch.length):
        changed = torch.cat([x[:, :cut], other[:, cut:]], dim=1)
        after = subject.run(changed)
        require_equal(
            after[:, :cut],
            before[:, :cut],
            f"other tokens from position {cut} on changed what comes before",
        )


def _not_causal(subject: Subject) -> str | None:
    return None if subject.claims.causal else "the block is not causal"


def _permutation(subject: Subject, batch: TokenBatch) -> None:
    x = batch.tensor()
    generator = torch.Generator().manual_seed(batch.seed)
    order = torch.randperm(batch.length, generator=generator)
    if torch.equal(order, torch.arange(batch.length)):
        order = order.flip(0)
    require_equal(
        subject.run(x[:, order]),
        subject.run(x.clone())[:, order],
        f"positions in the order {order.tolist()} gave more than the outputs in that order"
        " (a block that knows positions claims positions=True)",
    )


def _ordered(subject: Subject) -> str | None:
    if subject.claims.causal:
        return "a causal mask makes order matter"
    return _positioned(subject)


def _positioned(subject: Subject) -> str | None:
    return "the block treats positions differently" if subject.claims.positions else None


def _constant_rows(subject: Subject, batch: TokenBatch) -> None:
    output = subject.run(replace(batch, kind="constant").tensor())
    require_equal(
        output,
        output[:, :1].expand_as(output),
        "all positions hold one vector, and their outputs differ",
    )


def _batch_independence(subject: Subject, batch: TokenBatch) -> None:
    x = replace(batch, sequences=max(2, batch.sequences)).tensor()
    together = subject.run(x.clone())
    for number in range(len(x)):
        alone = subject.run(x[number : number + 1].clone())
        require_equal(
            together[number : number + 1],
            alone,
            f"sequence {number} of a batch of {len(x)} gave something else than alone",
        )


CAUSAL = Property(
    name="causal",
    statement="The output up to a position does not change when later tokens do.",
    source="autoregressive factorisation: Vaswani et al. 2017, section 3.2.3",
    conditions="blocks that are causal",
    excludes=_not_causal,
    check=_causal,
)

PERMUTATION_EQUIVARIANCE = Property(
    name="permutation_equivariance",
    statement="Tokens in another order give the same outputs in that order.",
    source="attention is a function of a set: Lee et al. 2019 (Set Transformer), property 1",
    conditions="no causal mask, and positions are not told apart",
    excludes=_ordered,
    check=_permutation,
)

CONSTANT_ROWS = Property(
    name="constant_rows",
    statement="Where all positions of a sequence hold one vector, they still do so afterwards.",
    source="any average of equal values is that value: Dong et al. 2021, the fixed points of SAN",
    conditions="positions are not told apart; a causal mask does no harm",
    excludes=_positioned,
    check=_constant_rows,
)

BATCH_INDEPENDENCE = Property(
    name="batch_independence",
    statement="A sequence gives the same output alone and in a batch.",
    source="sequences are independent samples",
    conditions="every block",
    excludes=always,
    check=_batch_independence,
)
