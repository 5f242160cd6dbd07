"""Fixed bins of scores, so that histograms of any batches, layers and models can be added.

The bins' edges are ``SCALE · sinh(STEP · k)`` for whole k from −``REACH`` to ``REACH``: 0.005 wide
around zero, where an untrained model's scores are, and growing by a tenth from bin to bin beyond
0.05, up to ±199. A bin holds its lower edge; the first and the last one hold all that is beyond.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SCALE = 0.05
STEP = 0.1
REACH = 90

BINS = 2 * REACH + 2
"""Bins of a histogram: between the edges, and one beyond either end."""


@cache
def edges() -> NDArray[np.float64]:
    """(BINS − 1,) the edges between the bins, ascending.

    >>> edges()[[0, 89, 90, 91, 180]].round(4).tolist()
    [-202.5771, -0.005, 0.0, 0.005, 202.5771]
    """
    import numpy as np  # here, for profiles are read where numpy is not wanted

    values: NDArray[np.float64] = SCALE * np.sinh(STEP * np.arange(-REACH, REACH + 1))
    values.flags.writeable = False
    return values
