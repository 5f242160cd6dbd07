"""The properties of attention, in the order of reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.testing.properties.masking import MASKED_KEYS
from isotest.testing.properties.projections import EXPECTATION
from isotest.testing.properties.scores import ATTENTION_SCALE, KEY_SHIFT, ROTATION_EQUIVARIANCE
from isotest.testing.properties.weights import CONVEX_HULL, SOFTMAX_ROWS

if TYPE_CHECKING:
    from isotest.testing.property import Property

ATTENTION_PROPERTIES: tuple[Property, ...] = (
    SOFTMAX_ROWS,
    ATTENTION_SCALE,
    CONVEX_HULL,
    KEY_SHIFT,
    EXPECTATION,
    ROTATION_EQUIVARIANCE,
    MASKED_KEYS,
)
