"""Sharing out a change among the parts that changed, so that the shares add up exactly."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence


def shapley(players: Sequence[str], worth: Callable[[Collection[str]], float]) -> dict[str, float]:
    """What each player adds, averaged over all orders in which they can come in.

    The sum over the players is ``worth`` of all less ``worth`` of none. Players that do the same
    get the same, one that never adds anything gets nothing, and exchanging before and after changes
    the signs only.

    Args:
        players: names, a handful: 2^n worths are computed.
        worth: of those who are in.

    Source: Shapley 1953, "A value for n-person games".

    >>> shapley(["a", "b"], lambda who: 3.0 * ("a" in who) + 2.0 * (len(who) == 2))
    {'a': 4.0, 'b': 1.0}
    """
    count = len(players)
    worths = [
        worth({player for i, player in enumerate(players) if subset >> i & 1})
        for subset in range(1 << count)
    ]
    value = dict.fromkeys(players, 0.0)
    for i, player in enumerate(players):
        for subset in range(1 << count):
            if not subset >> i & 1:
                before = subset.bit_count()
                orders = math.factorial(before) * math.factorial(count - before - 1)
                gain = worths[subset | 1 << i] - worths[subset]
                value[player] += orders / math.factorial(count) * gain
    return value
