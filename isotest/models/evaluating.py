"""A module in eval mode for a while."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import nn


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """While the context is open, ``module`` is in eval mode; then every part of it as it was."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training
