"""What a network of a task is made of: one size a field."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from isotest.blocks.config import BlockConfig
from isotest.errors import BlockError

if TYPE_CHECKING:
    from collections.abc import Mapping

Design = Literal["bert", "modern"]
DESIGNS: tuple[Design, ...] = get_args(Design)
"""How the blocks of a network are built."""

COORDINATES = 2
"""Of a point in the plane."""


@dataclass(frozen=True)
class NetworkConfig:
    """A network that labels every position of a sequence.

    Attributes:
        block: of each layer; its depth is the number of layers.
        classes: how many labels there are.
        vocabulary: how many tokens there are; ``None``: inputs are points of the plane.
        positions: of so many positions, each has an embedding of its own; ``None``: the network
            cannot tell positions apart.

    Raises:
        BlockError: a size below 1, or positions for points, which have no order.
    """

    block: BlockConfig
    classes: int
    vocabulary: int | None = None
    positions: int | None = None

    def __post_init__(self) -> None:
        for name in ("classes", "vocabulary", "positions"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise BlockError(
                    f"NetworkConfig: expected {name} to be a whole number of at least 1, found "
                    f"{value!r}"
                )
        if self.vocabulary is None and self.positions is not None:
            raise BlockError("NetworkConfig: positions go with a vocabulary; leave one of them out")

    def to_dict(self) -> dict[str, Any]:
        """All fields by name, those of the block in a table of their own."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> NetworkConfig:
        """What :meth:`to_dict` gave.

        Raises:
            BlockError: a field that there is none of, or a value that cannot be.

        >>> config = NetworkConfig(BlockConfig(width=8, heads=2, hidden=8), classes=3)
        >>> NetworkConfig.from_dict(config.to_dict()) == config
        True
        """
        try:
            own = dict(fields)
            return cls(block=BlockConfig(**own.pop("block")), **own)
        except (KeyError, TypeError, ValueError) as error:
            raise BlockError(f"NetworkConfig: {error}") from None


def block_config(design: Design, *, width: int, heads: int, depth: int) -> BlockConfig:
    """The block of a design, with one hidden unit of the MLP for each of the width.

    The authors' networks have an MLP no wider than the representations. A gated MLP has three maps
    in place of two; two thirds as wide, rounded up to a multiple of 4, it has about as many weights
    (Shazeer 2020).

    >>> block_config("modern", width=48, heads=2, depth=6).hidden
    32
    """
    if design == "bert":
        preset, hidden = BlockConfig.bert(), width
    else:
        preset, hidden = BlockConfig.modern(), 4 * math.ceil(width / 6)
    return replace(preset, width=width, heads=heads, hidden=hidden, depth=depth)
