"""Which parts of every block of a model are on: four switches, and the names they go by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from types import MappingProxyType
from typing import Any, Self

from isotest.errors import SourceError
from isotest.source import did_you_mean


@dataclass(frozen=True)
class Ablation:
    """What is left of every block of a model; by default, all of it.

    An MLP that is switched off is gone with its skip and its LayerNorm, as in
    :class:`isotest.blocks.BlockConfig` and in the code of Dong et al. (2021).

    Attributes:
        attention_skip: whether the attention's input is added to its output.
        mlp_skip: whether the MLP's input is added to its output; without an MLP of no meaning.
        mlp: whether there is an MLP.
        layer_norm: whether the normalisations inside the blocks act. Those outside of the blocks
            (behind the embeddings, at the end) always do.

    >>> Ablation(attention_skip=False, mlp=False) == NAMED["san"]
    True
    >>> NAMED["san"].switched_off
    ('attention_skip', 'mlp')
    """

    attention_skip: bool = True
    mlp_skip: bool = True
    mlp: bool = True
    layer_norm: bool = True

    @property
    def switched_off(self) -> tuple[str, ...]:
        """The parts that are missing, each named once: a missing MLP's skip goes without saying."""
        return tuple(
            name for name, on in asdict(self).items() if not on and (name != "mlp_skip" or self.mlp)
        )

    def describe(self) -> Mapping[str, str]:
        """As it stands in a protocol: nothing where nothing is off, for then nothing differs."""
        return {"ablated": ", ".join(self.switched_off)} if self.switched_off else {}

    @classmethod
    def of(cls, given: str | Mapping[str, Any] | Self) -> Self:
        """From a name in :data:`NAMED`, or from switches by name.

        Raises:
            SourceError: an unknown name or switch, or a switch that is neither true nor false.

        >>> Ablation.of({"layer_norm": False}).switched_off
        ('layer_norm',)
        >>> Ablation.of("sam")
        Traceback (most recent call last):
        isotest.errors.SourceError: ablate: unknown variant 'sam'; did you mean 'san'?
        """
        if isinstance(given, cls):
            return given
        if isinstance(given, str):
            if given not in NAMED:
                raise SourceError(f"ablate: unknown variant {given!r}{did_you_mean(given, NAMED)}")
            return cls(**asdict(NAMED[given]))
        switches: dict[str, Any] = dict(given) if isinstance(given, Mapping) else {}
        known = [field.name for field in fields(cls)]
        for name, value in switches.items():
            if name not in known:
                raise SourceError(f"ablate: unknown switch {name!r}{did_you_mean(name, known)}")
            if type(value) is not bool:
                raise SourceError(f"ablate: expected {name} to be true or false, found {value!r}")
        if not switches:
            raise SourceError(
                f"ablate: expected one of {', '.join(NAMED)}, or a table of {', '.join(known)}, "
                f"found {given!r}"
            )
        return cls(**switches)


NAMED: Mapping[str, Ablation] = MappingProxyType(
    {
        "full": Ablation(),
        "san": Ablation(attention_skip=False, mlp=False),
        "san+mlp": Ablation(attention_skip=False, mlp_skip=False),
        "san+skip": Ablation(mlp=False),
        "authors-san+mlp": Ablation(attention_skip=False),
    }
)
"""The variants of Dong et al. (2021), and the reading of them in their published code.

"san" is the self-attention network: attention and LayerNorm. "san+mlp" has an MLP without a skip,
as in the paper's text; in its code ("authors-san+mlp") the MLP keeps the skip around it.
"""
