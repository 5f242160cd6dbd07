"""Faults to plant in a model or its data, to see whether a gate goes red.

A fault alters what is measured without touching the model's library or its weights: a forward hook
rewrites one layer's output (later layers see it too), or the data set is wrapped. Each is the
smallest honest picture of something that happens in training. What is planted is taken back when
its context is left.
"""

from __future__ import annotations

from isotest.faults.attention import no_attention, saturated_head
from isotest.faults.blocks import (
    collapsed_rank,
    common_direction,
    dropped_layer,
    duplicated_rows,
    no_positions,
    not_a_number,
    rogue_dimension,
    sequence_mean,
)
from isotest.faults.fault import Fault, fraction
from isotest.faults.permuted import permuted_data

__all__ = ["FAULTS", "Fault", "fraction"]

FAULTS: tuple[Fault, ...] = (
    Fault(
        "common direction",
        "a vector of {s} × the mean length added to every representation, after the middle block",
        common_direction,
    ),
    Fault(
        "collapsed rank",
        "every direction turned {s} of the way to one and the same, after the last block",
        collapsed_rank,
    ),
    Fault(
        "rogue dimension",
        "{s} × its own length added to one dimension of every representation, after the middle "
        "block",
        rogue_dimension,
    ),
    Fault(
        "sequence mean",
        "every position moved {s} of the way to the mean of its sequence, after the last block",
        sequence_mean,
        inapplicable=no_positions,
    ),
    Fault(
        "duplicated rows",
        "{s} of the positions of every sequence made copies of one of them, after the last block",
        duplicated_rows,
        inapplicable=no_positions,
    ),
    Fault(
        "saturated head",
        "the attention scores of one head of the middle block multiplied by 64^({s})",
        saturated_head,
        inapplicable=no_attention,
    ),
    Fault(
        "permuted data",
        "{s} of the pixels, characters, samples or vectors of every input in another order, which "
        "the data's digest shows where there is a baseline",
        permuted_data,
    ),
    Fault(
        "not a number",
        "NaN in one sequence of every batch, after the middle block",
        not_a_number,
        graded=False,
    ),
    Fault(
        "dropped layer",
        "the middle block is not observed",
        dropped_layer,
        graded=False,
    ),
)
"""What ``isotest selftest`` plants, in order."""
