"""A copy of the block under test with other weights or another dtype."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch

from isotest.errors import one_line
from isotest.models.normalisation import is_normalisation

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

    from isotest.testing.subject import Subject

NO_EPSILON = 1e-12
"""Small enough for variances down to 1e-8 to be divided out, and no division by zero."""


_COPIES: WeakKeyDictionary[nn.Module, dict[Callable[[nn.Module], object], nn.Module]] = (
    WeakKeyDictionary()
)
"""One copy of each alteration, as long as the block lives: copying a wide one takes longer than
running it."""


def altered(subject: Subject, alter: Callable[[nn.Module], object]) -> Subject:
    """The subject with a copy of its module that ``alter`` has changed in place.

    Args:
        subject: the block, left as it is.
        alter: a function of this package, not one made on the spot: what it makes is kept.
    """
    copies = _COPIES.setdefault(subject.module, {})
    if alter not in copies:
        module = deepcopy(subject.module)
        with torch.no_grad():
            alter(module)
        copies[alter] = module
    return replace(subject, module=copies[alter])


def forget_copies(module: nn.Module) -> None:
    """Make copies anew from here on: the module may have other weights than before."""
    _COPIES.pop(module, None)


def cannot_alter(subject: Subject, alter: Callable[[nn.Module], object], what: str) -> str | None:
    """Why the block cannot be copied, altered and run; ``None`` if it can.

    Args:
        subject: the block.
        alter: as of :func:`altered`.
        what: what the copy would be, such as "in float64".
    """
    try:
        copy = altered(subject, alter)
        dtype = next((p.dtype for p in copy.module.parameters()), torch.float32)
        copy.run(torch.ones(1, 2, subject.width, dtype=dtype))
    except Exception as error:
        return f"a copy {what} does not run ({one_line(error)})"
    return None


def plain_normalisations(module: nn.Module) -> None:
    """Let every normalisation do no more than normalise: no gain, no shift, hardly an epsilon."""
    for part in module.modules():
        if not is_normalisation(part):
            continue
        for name, parameter in part.named_parameters(recurse=False):
            parameter.fill_(0.0 if "bias" in name or "beta" in name else 1.0)
        for name in ("eps", "epsilon", "variance_epsilon"):
            if isinstance(getattr(part, name, None), float):
                setattr(part, name, NO_EPSILON)


def without_sublayers(module: nn.Module) -> None:
    """All weights zero but those of the normalisations, which do no more than normalise."""
    for part in module.modules():
        if not is_normalisation(part):
            for parameter in part.parameters(recurse=False):
                parameter.zero_()
    plain_normalisations(module)
