"""Properties of a block as a whole, seen from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.testing.properties.conduct import DETERMINISTIC, FINITE, INPUT_UNCHANGED, SHAPE
from isotest.testing.properties.mixing import (
    BATCH_INDEPENDENCE,
    CAUSAL,
    CONSTANT_ROWS,
    PERMUTATION_EQUIVARIANCE,
)
from isotest.testing.properties.precision import DTYPE_AGREEMENT
from isotest.testing.properties.residual import OUTPUT_NORM, SKIP_IDENTITY

if TYPE_CHECKING:
    from isotest.testing.property import Property

MODULE_PROPERTIES: tuple[Property, ...] = (
    SHAPE,
    FINITE,
    DETERMINISTIC,
    INPUT_UNCHANGED,
    CAUSAL,
    PERMUTATION_EQUIVARIANCE,
    CONSTANT_ROWS,
    BATCH_INDEPENDENCE,
    DTYPE_AGREEMENT,
    OUTPUT_NORM,
    SKIP_IDENTITY,
)
"""In the order in which they are tried: what the first ones demand, the others build on."""
