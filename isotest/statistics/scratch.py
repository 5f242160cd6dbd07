"""Memory for intermediate results that is used again, batch after batch and layer after layer.

Fresh memory of some megabytes costs many times what is done with it, since the operating system
hands it out page by page. What is larger than a batch ever is (``MOST``) is not held on to.
"""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

MOST = 1 << 25
"""Bytes of one piece of memory that is kept for the next batch."""


class _Pieces(threading.local):
    def __init__(self) -> None:
        self.held: dict[tuple[str, torch.dtype, torch.device], Tensor] = {}


_PIECES = _Pieces()


def scratch(name: str, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
    """A tensor of this shape, contiguous, with anything in it.

    It is good until the next one of the same ``name`` is asked for by the same thread.

    >>> scratch("rows", (2, 3), torch.float64, torch.device("cpu")).shape
    torch.Size([2, 3])
    """
    entries = math.prod(shape)
    key = (name, dtype, device)
    held = _PIECES.held.get(key)
    if held is None or held.numel() < entries:
        with torch.inference_mode(False):  # so that it can be written in any mode
            held = torch.empty(entries, dtype=dtype, device=device)
        if held.nbytes <= MOST:
            _PIECES.held[key] = held
    return held[:entries].view(*shape)
