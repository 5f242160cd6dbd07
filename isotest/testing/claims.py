"""What a block claims to be; what it leaves open is found by trying it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from isotest.testing.properties.mixing import CAUSAL
from isotest.testing.properties.residual import OUTPUT_NORM, SKIP_IDENTITY
from isotest.testing.property import Property, ViolationError
from isotest.testing.subject import Claims
from isotest.testing.token_batch import TokenBatch

if TYPE_CHECKING:
    from isotest.testing.subject import Subject


@dataclass(frozen=True)
class Stated:
    """What somebody claims of a block, as in ``Claims``; ``None`` is to be found out."""

    causal: bool | None = None
    normalised: bool | None = None
    skip: bool | None = None
    positions: bool = False
    masked: bool = False
    scaled: bool = True

    def cautious(self) -> Claims:
        """The least that can be claimed: what is open is not."""
        return Claims(**{field.name: bool(getattr(self, field.name)) for field in fields(self)})

    def open(self) -> tuple[str, ...]:
        """Which claims are to be found out."""
        return tuple(field.name for field in fields(self) if getattr(self, field.name) is None)


_FOUND_BY = {"causal": CAUSAL, "normalised": OUTPUT_NORM, "skip": SKIP_IDENTITY}


def found_claims(subject: Subject, stated: Stated) -> Claims:
    """The claims with what was left open found out by a few batches.

    A block is causal, normalised or has a skip if the property that would hold of it does. So a
    fault in one that means to be causal makes it "not causal": to be told, claim it.

    Args:
        subject: a block that returns finite tensors of the right shape, always the same.
        stated: what is claimed.
    """
    claims = stated.cautious()
    # Whether the output is normalised decides what the skip must preserve.
    for name in ("causal", "normalised", "skip"):
        if getattr(stated, name) is None:
            claimed = replace(claims, **{name: True})
            if _holds(_FOUND_BY[name], replace(subject, claims=claimed)):
                claims = claimed
    return claims


def _holds(property_: Property, subject: Subject) -> bool:
    if property_.excludes(subject) is not None:
        return False
    try:
        for seed in range(3):
            property_.check(subject, TokenBatch(2, 6, subject.width, seed=seed))
    except ViolationError:
        return False
    return True
