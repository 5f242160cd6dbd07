"""A change, or a level, shared out among causes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Attribution:
    """What is explained, and what each cause adds to it.

    Attributes:
        metric: the metric whose value is explained.
        before: its level in the baseline; of a level that is explained, where it starts from.
        after: its level now.
        amounts: by cause, in the unit of the level. What they do not add up to is not explained.
        unmeasured: by cause that could not be looked for, the metric that would show it.
        rogue: how many dimensions are rogue.
        level: the quantity, where it is not the metric itself.
    """

    metric: str
    before: float
    after: float
    amounts: Mapping[str, float]
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    rogue: int = 0
    level: str = ""

    @property
    def change(self) -> float:
        """What is shared out."""
        return self.after - self.before

    @property
    def remainder(self) -> float:
        """What is left of the change when all causes have had theirs."""
        return self.change - sum(self.amounts.values())
