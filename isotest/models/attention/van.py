"""VAN, whose "attention" is a convolution with a large kernel (Guo et al. 2022, equations 2, 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.models.attention.call import NotObservable
from isotest.models.attention.modules import is_a

if TYPE_CHECKING:
    from isotest.models.loaded import LoadedModel


def observer(loaded: LoadedModel) -> NotObservable | None:
    """That a VAN has no attention: it multiplies a map by a convolution of itself."""
    if not is_a(loaded.module, "isotest.VanModel"):
        return None
    return NotObservable("VAN has no queries and keys, its attention is a convolution", absent=True)
