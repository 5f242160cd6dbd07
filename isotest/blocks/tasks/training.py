"""One seeded loop that trains a small network.

With the same seed on the same machine, the same weights: batches are shuffled by a generator of
their own, dropout draws from a copy of torch's generator that is put back afterwards, and there is
one thread, since several add up in an order that changes.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch.nn import functional

from isotest.blocks.attention import SelfAttention
from isotest.blocks.block import MLP
from isotest.blocks.threads import one_thread
from isotest.errors import MeasurementError
from isotest.models.seeding import seeded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor, nn

Schedule = Literal["constant", "cosine"]


@dataclass(frozen=True)
class Settings:
    """How a network is trained, by Adam (Kingma & Ba 2015).

    Attributes:
        learning_rate: the highest.
        batch_size: examples a step.
        epochs: how often every example is seen.
        weight_decay: λ of L2 regularisation, added to the gradient as λ·w.
        warmup: steps over which the learning rate rises from 0, linearly.
        schedule: "constant", or "cosine": half a cosine from the highest down to 0.
        dropout: share of the entries of what each attention and each MLP adds that is zeroed, the
            others being scaled to keep the mean (Srivastava et al. 2014).
        clip: the longest gradient; a longer one is scaled down to it.
    """

    learning_rate: float
    batch_size: int
    epochs: int
    weight_decay: float = 0.0
    warmup: int = 100
    schedule: Schedule = "cosine"
    dropout: float = 0.0
    clip: float = 1.0

    def to_dict(self) -> dict[str, Any]:
        """All fields by name."""
        return asdict(self)

    def rate(self, step: int, steps: int) -> float:
        """The learning rate of a step, from 0, of so many.

        >>> settings = Settings(learning_rate=1.0, batch_size=1, epochs=1, warmup=2)
        >>> [round(settings.rate(step, 6), 2) for step in range(6)]
        [0.5, 1.0, 1.0, 0.85, 0.5, 0.15]
        """
        if step < self.warmup:
            return self.learning_rate * (step + 1) / self.warmup
        if self.schedule == "constant":
            return self.learning_rate
        done = (step - self.warmup) / max(1, steps - self.warmup)
        return self.learning_rate * (1 + math.cos(math.pi * done)) / 2


def train(
    module: nn.Module,
    examples: Sequence[Tensor],
    loss: Callable[..., Tensor],
    settings: Settings,
    *,
    seed: int,
    progress: Callable[[int, float], object] | None = None,
) -> float:
    """Train ``module`` in place; it is left in eval mode.

    Args:
        module: on the CPU.
        examples: tensors whose first dimension counts examples; an epoch takes all, in a new order.
        loss: of a batch: called with some rows of each of ``examples``; a scalar to be lowered.
        settings: how.
        seed: of the order and of dropout; any whole number from 0.
        progress: called after each epoch, with its number from 1 and its mean loss.

    Returns:
        The mean loss of the last epoch.

    Raises:
        MeasurementError: the loss is NaN or infinite; names epoch and step.
    """
    count = len(examples[0])
    order = torch.Generator().manual_seed(seed)
    # Fused: the same steps in one loop, since a loop over small tensors would cost as much as they.
    optimizer = torch.optim.Adam(
        module.parameters(),
        lr=settings.learning_rate,
        weight_decay=settings.weight_decay,
        fused=True,
    )
    a_epoch = math.ceil(count / settings.batch_size)
    steps = settings.epochs * a_epoch
    step, mean = 0, math.nan
    module.train()
    with one_thread(), seeded(seed), dropping_out(module, settings.dropout):
        for epoch in range(1, settings.epochs + 1):
            total = 0.0
            for chosen in torch.randperm(count, generator=order).split(settings.batch_size):
                for group in optimizer.param_groups:
                    group["lr"] = settings.rate(step, steps)
                optimizer.zero_grad(set_to_none=True)
                value = loss(*(each[chosen] for each in examples))
                number = value.item()
                if not math.isfinite(number):
                    raise MeasurementError(
                        f"training: the loss is {number} in step {step + 1} of {steps}, epoch "
                        f"{epoch}; lower the learning rate, {settings.learning_rate:g}"
                    )
                value.backward()
                torch.nn.utils.clip_grad_norm_(module.parameters(), settings.clip)
                optimizer.step()
                total += number * len(chosen)
                step += 1
            mean = total / count
            if progress is not None:
                progress(epoch, mean)
    module.eval()
    return mean


@contextlib.contextmanager
def dropping_out(module: nn.Module, share: float) -> Iterator[None]:
    """Dropout on what every attention and every MLP of our blocks adds, while the context is open.

    The blocks have none of their own: they are what others are in eval mode.

    Args:
        module: its :class:`SelfAttention` and :class:`MLP` modules are hooked.
        share: of the entries, zeroed; 0: nothing is done.
    """
    if not share:
        yield
        return

    def drop(_: nn.Module, __: tuple[Any, ...], output: Tensor) -> Tensor:
        return functional.dropout(output, share)

    hooks = [
        part.register_forward_hook(drop)
        for part in module.modules()
        if isinstance(part, SelfAttention | MLP)
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
