"""How much of the length of isotropic data lies in a subspace: the mean of a root of a share.

Of a Gaussian vector of m + r independent coordinates the first m hold a share of the squared length
that has the Beta distribution with m/2 and r/2, whatever the scale. The mean of N representations
of width D is such a part (D of N·D coordinates, after a rotation), and so is what is left of a
sequence when its own mean is subtracted.
"""

from __future__ import annotations

import math
from functools import lru_cache


@lru_cache(maxsize=1024)
def mean_root_of_share(part: int, rest: int) -> float:
    """Mean of √B for B ~ Beta(part/2, rest/2): Γ(a+½)Γ(a+b) / (Γ(a)Γ(a+b+½)).

    Args:
        part: coordinates of the part, at least 1.
        rest: the others.

    >>> round(mean_root_of_share(1, 1), 6)  # |cos| of a random angle: 2/π
    0.63662
    """
    a, b = part / 2, rest / 2
    return math.exp(
        math.lgamma(a + 0.5) - math.lgamma(a) - (math.lgamma(a + b + 0.5) - math.lgamma(a + b))
    )
