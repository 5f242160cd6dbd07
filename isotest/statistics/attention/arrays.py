"""Tensors of attention as float64 arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    Array = NDArray[np.float64]


def upcast(x: Tensor) -> Tensor:
    """At least float32."""
    return x if x.dtype == torch.float64 else x.float()


def quotient(part: Array, of: Array) -> Array:
    """Quotient, 0 where there is nothing to divide by."""
    result = np.zeros(np.broadcast_shapes(part.shape, of.shape))
    np.divide(part, of, out=result, where=of > 0)
    return result


def mask_like(mask: NDArray[np.bool_], x: Tensor) -> Tensor:
    """A mask on the device of ``x``."""
    return torch.from_numpy(mask).to(x.device)


def array(x: Tensor) -> Any:
    """As an array of the same type."""
    return x.cpu().numpy()


def double(x: Tensor) -> Array:
    """As a float64 array."""
    result: Array = x.double().cpu().numpy()
    return result
