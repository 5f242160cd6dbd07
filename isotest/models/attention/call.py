"""One computation of attention, as an observer hands it on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from torch import Tensor, nn

    from isotest.models.loaded import LoadedModel


@dataclass(frozen=True)
class AttentionCall:
    """What one call of an attention module computed its softmax from.

    The scores of head h are ``scale · q·kᵀ + bias``, and with ``softcap`` c they are c·tanh(s / c)
    of that; its softmax runs over the keys that ``allowed`` lets a query see.

    Attributes:
        query: (B, H, Lq, dk). B is the batch, or a multiple of it: where an input is cut into w
            windows or chunks, rows w·i … w·i + w − 1 are of input i.
        key: (B, Hk, Lk, dk), where Hk divides H: query head h reads key head h // (H / Hk).
        scale: what q·kᵀ is multiplied by; 1 where the queries are scaled already.
        bias: added to the scores, broadcastable to (B, H, Lq, Lk): relative positions, and
            everything else that is learned or fixed and no mask.
        allowed: bool, broadcastable to (B, 1, Lq, Lk), true where a query may see a key: what
            padding, causality and windows leave. ``None``: every query sees every key.
        cross: whether the keys are of another sequence than the queries.
        queries: (B, Lq) bool, true where a query is no padding. ``None``: the positions of the
            layer that the module is in say so.
        softcap: c, where the scores are capped.
    """

    query: Tensor
    key: Tensor
    scale: float
    bias: Tensor | None
    allowed: Tensor | None
    cross: bool
    queries: Tensor | None = None
    softcap: float | None = None


@dataclass(frozen=True)
class NotObservable:
    """Why nothing is seen of a model's, or a module's, attention.

    Attributes:
        reason: in words, to follow "not observable: ".
        absent: there is no attention to observe; nothing is wrong.
    """

    reason: str
    absent: bool = False


class Receive(Protocol):
    """Takes what an observer sees, while the model runs."""

    def __call__(self, path: str, seen: AttentionCall | NotObservable, /) -> None:
        """Take in one call of the attention module at dotted ``path`` below the model.

        Which observed layer it belongs to follows from what runs around it. Tensors are not kept.
        """


class HoldsModule(Protocol):
    """A loaded model, or anything else with a module to look into."""

    @property
    def module(self) -> nn.Module:
        """What is run."""
        ...


class AttentionObserver(Protocol):
    """Sees the attention of models of some kind."""

    def observed(
        self, loaded: LoadedModel, receive: Receive, /
    ) -> AbstractContextManager[None, bool | None]:
        """While the context is open, every attention of a forward pass goes to ``receive``.

        The model computes what it computes without, bit for bit, and is as it was when the context
        is left, also by an exception.
        """
        ...
