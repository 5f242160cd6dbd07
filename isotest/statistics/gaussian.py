"""What isotropic data look like: a sample of N(0, I), always the same one."""

from __future__ import annotations

import numpy as np
import torch

SEED = 0


def isotropic_sample(count: int, width: int) -> torch.Tensor:
    """K points that lie to each other and to the origin as K draws from N(0, I_D) do.

    Inner products are all that geometry knows. Of K ≤ D Gaussian points their matrix has a Wishart
    distribution, so its triangular factor (Bartlett 1933) stands for them: K coordinates instead of
    D, which may be hundreds of thousands.

    Args:
        count: K.
        width: D.

    Returns:
        (K, min(K, D)) float64.

    >>> points = isotropic_sample(3, 200_000)
    >>> points.shape
    torch.Size([3, 3])
    >>> bool(((points @ points.T / 200_000 - torch.eye(3)).abs() < 0.02).all())
    True
    """
    draw = np.random.Generator(np.random.PCG64(SEED))
    if count > width:
        return torch.from_numpy(draw.standard_normal((count, width)))
    points = np.tril(draw.standard_normal((count, count)), -1)
    points[np.diag_indices(count)] = np.sqrt(draw.chisquare(width - np.arange(count)))
    return torch.from_numpy(points)
