"""Masks of an attention function, told apart: what is added to scores, what a query may see."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor, nn

HIDDEN = -5_000.0
"""What is added to a score to hide a key is at most this: −10,000, or a dtype's smallest number.

No learned bias comes near it, and beside any other key the weight is zero even in float64."""


def bias_and_allowed(
    mask: Tensor | None,
    bias: Tensor | None,
    query: Tensor,
    key: Tensor,
    *,
    causal: bool,
    hidden: float = HIDDEN,
) -> tuple[Tensor | None, Tensor | None]:
    """What is added to the scores, and which keys a query may see.

    Args:
        mask: bool, true where a query may see a key; or a number added to the scores, which hides a
            key where it is ``hidden`` or less; (·, ·, Lq, ≥ Lk), or ``None``.
        bias: added to the scores, too.
        query: (B, H, Lq, dk).
        key: (B, Hk, Lk, dk).
        causal: whether query i sees no key after the i-th, as well.
        hidden: the largest number that hides.

    Returns:
        As ``bias`` and ``allowed`` of :class:`isotest.models.attention.call.AttentionCall`.

    >>> import torch
    >>> x = torch.zeros(1, 1, 2, 4)
    >>> bias_and_allowed(torch.tensor([[[[0.5, -1e4]]]]), None, x, x, causal=False)
    (tensor([[[[0.5000, 0.0000]]]]), tensor([[[[ True, False]]]]))
    """
    import torch

    allowed = None
    if mask is not None:
        mask = mask[..., : key.shape[2]]
        if mask.dtype == torch.bool:
            allowed = mask
        else:
            allowed = mask > hidden
            added = mask.masked_fill(~allowed, 0)
            if bool(allowed.all()):
                allowed = None
            if bool(added.any()):
                bias = added if bias is None else bias + added
    if causal:
        order = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool, device=query.device)
        order = order.tril()[None, None]
        allowed = order if allowed is None else allowed & order
    return bias, allowed


def hides_from(module: nn.Module) -> float:
    """The largest number that hides a key, in the masks of this module."""
    # Windows that a shift joins are kept apart by −100, which the softmax hardly tells from −∞.
    return -50.0 if type(module).__name__ == "SwinAttention" else HIDDEN
