"""The circle of Dong, Cordonnier and Loukas (2021): one layer, applied again and again.

*Data.* 1,000 points on a circle of radius 0.3, counter-clockwise, 2π/1000 apart. Pair i is points
i and i + 499, one on the upper arc and one on the lower, and is followed by pair i + 1. So the two
points of each of the 499 pairs are 0.6·cos(π/1000) ≈ 0.6 apart, which is all but a diameter.

*Network.* Two coordinates → linear map to width 32 → one block with two heads, over the two points
as its two positions, without embeddings of positions → linear map back to two coordinates. Trained
to predict the next pair (:mod:`isotest.blocks.tasks.circle_training`), then fed with its own
predictions (:mod:`isotest.blocks.tasks.recurrence`).

*Variants*, and what is on and off in each:

=========  =====================================================================================
attention  Attention without its skip; no MLP. Normalisations stay, as in the authors' code.
skip       the same network f, but x(t+1) = x(t) + f(x(t)), in training, too: it learns the step.
mlp        "attention" with an MLP behind it, which has its own skip and its own normalisation.
both       the network of "mlp", with the outer skip of "skip".
=========  =====================================================================================

*Designs.* "bert": LayerNorm behind the embedding, behind the attention and behind the MLP and its
skip; GELU; hidden width 32; biases. "modern": RMSNorm in front of the attention, of the MLP and of
the last linear map, none behind the embedding; a gated SiLU MLP of hidden width 24, which has as
many weights; no bias in the block, only in the two maps of coordinates.

*What a normalisation does without a skip.* Attention yields weighted means of the two points'
values, and a normalisation then makes all outputs equally long again. So it undoes the shrinking:
a head that attends to a point only a little more than to the other is enough to predict two
opposite points. It does not undo the turning of one towards the other, which is what collapse is.
Once two points are equal they stay so, in every variant, since nothing tells positions apart; the
outer skip is the one thing that keeps a distance even if f gives both points the same.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import nn

from isotest.blocks.attention import linear
from isotest.blocks.block import TransformerBlock, normalisation_of
from isotest.blocks.initialisation import STD
from isotest.blocks.tasks.config import COORDINATES, DESIGNS, block_config
from isotest.blocks.tasks.identity import PAIRS, VARIANTS
from isotest.errors import BlockError
from isotest.source import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from isotest.blocks.config import BlockConfig, Initialisation
    from isotest.blocks.tasks.config import Design
    from isotest.blocks.tasks.identity import Variant

RADIUS = 0.3
POINTS = 1000
STEP = 2 * RADIUS * math.sin(math.pi / POINTS)
"""Distance of a point and the next one, about 0.0019: what predicting "it stays" is off by."""

WIDTH, HEADS = 32, 2


def circle_points() -> Tensor:
    """The 1,000 points, (1000, 2) float64: point i is at the angle 2π·i/1000."""
    angles = torch.arange(POINTS, dtype=torch.float64) * (2 * math.pi / POINTS)
    return RADIUS * torch.stack((angles.cos(), angles.sin()), dim=-1)


def circle_pairs() -> tuple[Tensor, Tensor]:
    """Every pair and the one that follows it.

    Returns:
        (499, 2, 2) float64 twice: pair, which of its two points, coordinate.

    >>> pairs, following = circle_pairs()
    >>> bool((pairs[1:] == following[:-1]).all())
    True
    """
    points, first = circle_points(), torch.arange(PAIRS)
    pairs = torch.stack((first, first + PAIRS), dim=1)
    return points[pairs], points[pairs + 1]


def starting_pairs(count: int) -> Tensor:
    """Pairs spread evenly over the arcs, from the first to the last of all 499.

    There is nothing random in them, so that networks differ by their training alone.

    Args:
        count: how many, 1 to 499. A single one is the first pair, from which the authors start.

    Returns:
        (count, 2, 2) float64.

    Raises:
        BlockError: there are not so many.

    >>> starting_pairs(1)[0, 0]
    tensor([0.3000, 0.0000], dtype=torch.float64)
    """
    if not 1 <= count <= PAIRS:
        raise BlockError(
            f"circle: expected 1 to {PAIRS} starting pairs (samples), found {count}; the circle "
            "has no more"
        )
    chosen = torch.linspace(0, PAIRS - 1, count, dtype=torch.float64).round().long()
    return circle_pairs()[0][chosen]


def circle_block(
    design: Design,
    variant: Variant,
    *,
    initialisation: Initialisation = "xavier",
    attention_skip: bool = False,
) -> BlockConfig:
    """The block of a design and variant; arguments as of :class:`CircleNetwork`.

    >>> circle_block("bert", "attention").mlp, circle_block("modern", "both").gated
    (False, True)
    """
    return replace(
        block_config(design, width=WIDTH, heads=HEADS, depth=1),
        attention_skip=attention_skip,
        mlp=variant in ("mlp", "both"),
        initialisation=initialisation,
    )


class CircleNetwork(nn.Module):
    """Predicts the next pair of a pair. The module's docstring says what it is made of.

    Args:
        design: how the block is built.
        variant: what there is beside attention.
        seed: of all weights, which depend on nothing else. Those of the two maps of coordinates
            are N(0, 0.02²), their biases 0.
        initialisation: of the weights, as of :class:`isotest.blocks.BlockConfig`.
        attention_skip: whether the *attention* has its skip, as it has in every variant of the
            authors' code as published. The paper speaks of networks without one.

    Raises:
        BlockError: an unknown design or variant.

    >>> network = CircleNetwork("bert", "attention", seed=0)
    >>> network(torch.zeros(3, 2, 2)).shape
    torch.Size([3, 2, 2])
    """

    def __init__(
        self,
        design: Design,
        variant: Variant,
        *,
        seed: int = 0,
        initialisation: Initialisation = "xavier",
        attention_skip: bool = False,
    ) -> None:
        super().__init__()
        _require("design", design, DESIGNS)
        _require("variant", variant, VARIANTS)
        config = circle_block(
            design, variant, initialisation=initialisation, attention_skip=attention_skip
        )
        self.outer_skip = variant in ("skip", "both")
        self.embedding = linear(COORDINATES, WIDTH, bias=True)
        self.embedding_norm, self.final_norm = _outer_norms(config)
        self.block = TransformerBlock(config, seed=seed)
        self.head = linear(WIDTH, COORDINATES, bias=True)
        for name, part in (("embedding", self.embedding), ("head", self.head)):
            _draw(part, seed=seed, name=name)

    def forward(self, pairs: Tensor) -> Tensor:
        """The pairs that follow.

        Args:
            pairs: (B, 2, 2): pair, which of its points, coordinate.

        Returns:
            The same shape.

        Raises:
            BlockError: another shape.
        """
        if pairs.dim() != 3 or pairs.shape[1:] != (2, 2):
            raise BlockError(
                f"circle: expected pairs of points, (pairs, 2, 2), found {tuple(pairs.shape)}"
            )
        hidden = self.block(self.embedding_norm(self.embedding(pairs)))
        output: Tensor = self.head(self.final_norm(hidden))
        return pairs + output if self.outer_skip else output


def self_attention_shares(network: CircleNetwork) -> list[float]:
    """How much each head attends to the point itself, mean over all points of all pairs.

    1 and 0 are heads that pick one point and average nothing, 0.5 is a head that yields the mean of
    both. Two heads at 0 or 1 cannot bring the points of a pair together.

    Returns:
        One share a head.
    """
    parameter = network.head.weight
    pairs = circle_pairs()[0].to(parameter)
    with torch.no_grad():
        weights = network.block.trace(network.embedding_norm(network.embedding(pairs))).weights
    shares: list[float] = weights.double().diagonal(dim1=-2, dim2=-1).mean((0, 2)).tolist()
    return shares


def one_step_error(network: CircleNetwork) -> tuple[float, float]:
    """How well the network predicts the next pair, over all 499 pairs.

    Returns:
        The mean squared error of a coordinate, and the mean distance of a predicted point to the
        right one (unit: coordinates; :data:`STEP` is what the prediction "it stays" is off by).
    """
    pairs, following = circle_pairs()
    with torch.no_grad():
        off = network(pairs.to(network.head.weight)).double() - following
    return off.square().mean().item(), off.norm(dim=-1).mean().item()


def _outer_norms(config: BlockConfig) -> tuple[nn.Module, nn.Module]:
    """Those behind the embedding and in front of the head; identities where there are none."""
    if config.layer_norm == "post":
        return normalisation_of(config), nn.Identity()
    return nn.Identity(), normalisation_of(config)


def _draw(part: nn.Linear, *, seed: int, name: str) -> None:
    digest = hashlib.blake2b(f"{seed} circle {name}".encode(), digest_size=8).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest, "big"))
    with torch.no_grad():
        part.weight.normal_(0.0, STD, generator=generator)
        part.bias.zero_()


def _require(what: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise BlockError(f"circle: unknown {what} {value!r}{did_you_mean(value, known)}")
