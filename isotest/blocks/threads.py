"""One thread for what is too small to share, or must come out the same each time."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute in one thread for as long as the context is open.

    Several add up in an order that changes. And a few positions are too few to share between cores:
    on a busy machine threads that wait for each other made a check of a wide block take five times
    as long as one thread does.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
