"""Numbers as a reader wants them: as many digits as their error bar supports."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Decimal


def decimals_for(se: float | None, *values: float) -> int:
    """Decimals that show two significant digits of ``se``, and at most six of the largest value.

    Without an error bar, or with one that is zero, four significant digits of the largest value.
    """
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    leading = math.floor(math.log10(largest)) if largest > 0 else 0
    if se is None or not math.isfinite(se) or se <= 0:
        return min(12, max(0, 3 - leading))
    return min(12, max(0, min(1 - math.floor(math.log10(se)), 5 - leading)))


def decimals_of_change(change: float, se: float, *values: float) -> int:
    """Decimals for two values whose difference is to be seen: three digits of it, or what is known.

    >>> decimals_of_change(0.1007, 0.0006, 0.2581, 0.3588)
    3
    """
    known = decimals_for(se, *values)
    if change == 0 or not math.isfinite(change):
        return known
    wanted = max(0, 2 - math.floor(math.log10(abs(change))))
    return wanted if se == 0 else min(known, wanted)


def number(value: float, decimals: int | None = None) -> str:
    """A value with ``decimals`` decimals, or four significant digits.

    >>> number(0.41239, 3), number(22815.3), number(0.41239), number(3.2e-7)
    ('0.412', '22815', '0.4124', '3.2e-07')
    """
    if decimals is not None and (value == 0 or 1e-4 <= abs(value) < 1e7):
        return f"{value:.{decimals}f}"
    if 1e3 <= abs(value) < 1e7:
        return f"{value:.0f}"
    return f"{value:.4g}"


def signed(value: float, decimals: int | None = None) -> str:
    """Like :func:`number`, always with its sign.

    >>> signed(0.1259, 3), signed(-2.0)
    ('+0.126', '-2')
    """
    text = number(value, decimals)
    return text if text.startswith("-") else f"+{text}"


def p_value(p: float) -> str:
    """``p = 0.012``, or an upper bound where more digits mean nothing.

    >>> p_value(0.01234), p_value(3.21e-9), p_value(0.0)
    ('p = 0.012', 'p = 3.2e-09', 'p < 1e-15')
    """
    return "p < 1e-15" if p < 1e-15 else f"p = {p:.2g}"


def percent(share: float) -> str:
    """A share of the whole.

    >>> percent(0.914), percent(0.002)
    ('91%', '0.2%')
    """
    return f"{100 * share:.0f}%" if share == 0 or share >= 0.01 else f"{100 * share:.1g}%"


def round_up(value: float, digits: int = 3) -> float:
    """The smallest number of ``digits`` significant digits that is not below ``value``.

    What is offered as a margin must still do when it is typed in.

    >>> round_up(0.123401), round_up(2.0), round_up(0.0)
    (0.124, 2.0, 0.0)
    """
    if value <= 0:
        return 0.0
    exact = Decimal(value)
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return float(exact.quantize(step, rounding=ROUND_CEILING))
