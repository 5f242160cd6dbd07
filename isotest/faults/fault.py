"""Fault: something that can be planted, how strong it is, and what its strength means."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isotest.data.dataset import Dataset
    from isotest.models.loaded import LoadedModel
    from isotest.profile import Profile

Planted = AbstractContextManager[tuple["LoadedModel", "Dataset"]]
"""A loaded model and its data with a fault in them, until the context is left."""

Plant = Callable[["LoadedModel", "Dataset", float], Planted]
"""Plants a fault of a strength above 0, and up to 1, in a loaded model and its data."""

Inapplicable = Callable[["LoadedModel", "Profile"], str | None]
"""Why a fault means nothing for a model with this profile; ``None`` where it means something."""


def always(_loaded: LoadedModel, _profile: Profile) -> None:
    """Means something for every model."""
    return


@dataclass(frozen=True)
class Fault:
    """A named alteration.

    Attributes:
        name: as it stands in tables.
        meaning: what is done, in words, with ``{s}`` where the strength stands.
        plant: applied to the loaded model and its data before they are measured. Its effect grows
            with the strength, from nothing at 0 to the whole fault at 1.
        graded: whether it has a strength; one without is planted at 1.
        inapplicable: why it means nothing for a model, if it does not.
    """

    name: str
    meaning: str
    plant: Plant
    graded: bool = True
    inapplicable: Inapplicable = always

    def at(self, strength: float | None = None) -> str:
        """What is done at a strength, or at "s", in words.

        >>> mean = Fault("mean", "moved {s} of the way to the mean", lambda *_: None)
        >>> mean.at(0.125), mean.at(1.0)
        ('moved 1/8 of the way to the mean', 'moved all of the way to the mean')
        """
        if strength == 1:
            return self.meaning.replace("{s} of", "all of").format(s=1)
        return self.meaning.format(s="s" if strength is None else fraction(strength))


def fraction(strength: float) -> str:
    """A strength, which is a power of two, as a person reads it.

    >>> fraction(1.0), fraction(0.0078125)
    ('1', '1/128')
    """
    return str(Fraction(strength))
