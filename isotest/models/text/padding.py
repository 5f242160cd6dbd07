"""Whether padding changes a model's numbers: tried once, before anything is measured.

A mask is only as good as the model that is given it. Some take none (FNet), some mix positions
before it applies (the convolutions of ConvBERT), some count positions from the padding on. Their
numbers would depend on whom a text shares a batch with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.errors import SourceError
from isotest.models.feed import placed
from isotest.models.select import first

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor, nn

    from isotest.models.loaded import Inputs
    from isotest.models.text.encoder import Ids

# Of a position's length. Rounding moves it by far less, what is read of padding by far more.
_TOLERANCE = 0.02
_TOLERANCE_HALF = 0.2


def require_padding_ignored(
    module: nn.Module,
    inputs_of: Callable[[Sequence[Ids]], Inputs],
    sequence: Ids,
    longer: Ids,
    what: str,
) -> None:
    """Compare a model's output for a sequence alone and beside a longer one.

    Args:
        module: in eval mode.
        inputs_of: sequences of ids to inputs of one forward pass.
        sequence: what is compared.
        longer: what it is padded to.
        what: the source as text, for messages.

    Raises:
        SourceError: they are not the same.
    """
    alone = _valid_rows(module, inputs_of([sequence]))
    padded = _valid_rows(module, inputs_of([sequence, longer]))
    if alone is None or padded is None or alone.shape != padded.shape:
        return  # what it yields is no sequence of that length: its layers are looked at next
    lengths = alone.double().norm(dim=-1)
    apart = (alone.double() - padded.double()).norm(dim=-1) / lengths.clamp(min=1e-12)
    worst = float(apart.max())
    if worst > (_TOLERANCE_HALF if alone.element_size() < 4 else _TOLERANCE):
        raise SourceError(
            f"source {what!r}: {type(module).__name__} reads padding: what it makes of a text "
            f"alone and of the same text padded in a batch are {worst:.0%} apart, so its numbers "
            "would depend on the batch; use packing = 'windows' in [measure], where nothing is "
            "padded"
        )


def _valid_rows(module: nn.Module, inputs: Inputs) -> Tensor | None:
    """The output at the valid positions of the first sequence, (positions, width)."""
    import torch

    inputs = placed(inputs, module)
    try:
        with torch.inference_mode():
            output = first(module(**inputs.arguments))
    except Exception:
        # The look at its layers, which follows, fails on the same and says how.
        return None
    valid = list(inputs.positions.values())[-1].valid
    if not isinstance(output, torch.Tensor) or output.shape[:-1] != valid.shape:
        return None
    return output[0, valid[0]]
