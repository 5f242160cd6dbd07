"""Training the networks of the circle, and keeping them: all variants of a design in one file."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch
from torch import nn
from torch.func import functional_call, stack_module_state

from isotest.blocks.tasks.circle import CircleNetwork, circle_block, circle_pairs, one_step_error
from isotest.blocks.tasks.config import DESIGNS
from isotest.blocks.tasks.identity import VARIANTS
from isotest.blocks.tasks.stored import fill, load, require_said, rounded, save
from isotest.blocks.tasks.training import Settings, train
from isotest.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from torch import Tensor

    from isotest.blocks.config import Initialisation
    from isotest.blocks.tasks.config import Design
    from isotest.blocks.tasks.identity import Variant

Training = Literal["fitted", "authors"]
TRAININGS: tuple[Training, ...] = get_args(Training)

SEEDS = (0, 1, 2, 3)
"""Of the networks that come with isotest, each a training of its own."""


@dataclass(frozen=True)
class Recipe:
    """How the networks of the circle are trained.

    Attributes:
        settings: of the loop.
        initialisation: of the blocks.
    """

    settings: Settings
    initialisation: Initialisation

    def to_dict(self) -> dict[str, Any]:
        """All fields by name."""
        return {
            **self.settings.to_dict(),
            "initialisation": self.initialisation,
        }


# Neither clips: the loss is the sum over a batch, as the authors have it, and Adam's steps are as
# long whatever a loss is multiplied with.
_UNCLIPPED = 1e9

RECIPES: Mapping[Training, Recipe] = {
    "fitted": Recipe(
        Settings(learning_rate=3e-3, batch_size=30, epochs=100, clip=_UNCLIPPED),
        initialisation="xavier",
    ),
    "authors": Recipe(
        Settings(
            learning_rate=1e-5,
            batch_size=30,
            epochs=70,
            warmup=0,
            schedule="constant",
            clip=_UNCLIPPED,
        ),
        initialisation="bert",
    ),
}
"""The trainings that there are.

- "authors": Adam with a learning rate of 1e-5, batches of 30, 70 epochs, as in their code; without
  its dropout, and with the pairs shuffled, which there are in the order of the arcs. In 1,190 steps
  Adam moves hardly a weight by more than 0.012, and what comes of it, without a skip, predicts the
  next point worse than the point itself would.
- "fitted": until the prediction is good. 300 times the learning rate, brought down by half a
  cosine, larger initial weights, 1,700 steps.
"""


@dataclass(frozen=True)
class CircleFit:
    """The networks of one design and training, rounded to float16, in eval mode.

    Attributes:
        design: of their blocks.
        training: how they were trained.
        networks: variant to training seed to network.
        errors: variant to the mean distance of a predicted point to the right one, a value a seed.
    """

    design: Design
    training: Training
    networks: Mapping[Variant, Mapping[int, CircleNetwork]]
    errors: Mapping[Variant, Sequence[float]]

    def save(self, file: Path) -> None:
        """Write all weights.

        Raises:
            SourceError: the file cannot be written.
        """
        tensors = {
            f"{variant}.{seed}.{name}": parameter
            for variant, networks in self.networks.items()
            for seed, network in networks.items()
            for name, parameter in network.state_dict().items()
        }
        metadata = {
            **_said(self.design),
            "seeds": list(self.networks[VARIANTS[0]]),
            "training": self.training,
            "recipe": RECIPES[self.training].to_dict(),
            "one_step_error": dict(self.errors),
            "versions": {"isotest": version("isotest"), "torch": torch.__version__},
        }
        save(file, tensors, metadata)


def train_circle(
    design: Design,
    training: Training = "fitted",
    *,
    seeds: Sequence[int] = SEEDS,
    progress: Callable[[int, float], object] | None = None,
) -> CircleFit:
    """Train all variants of a design, each once for every seed.

    Args:
        design: of the blocks.
        training: how.
        seeds: each from 0; of the initial weights and of the order of the pairs.
        progress: called after each epoch of each variant, as of
            :func:`isotest.blocks.tasks.training.train`; the loss is that of all seeds together.

    Raises:
        MeasurementError: a loss is not finite.
    """
    recipe = RECIPES[training]
    networks: dict[Variant, dict[int, CircleNetwork]] = {}
    for variant in VARIANTS:
        trained = [
            CircleNetwork(design, variant, seed=seed, initialisation=recipe.initialisation)
            for seed in seeds
        ]
        train_together(trained, recipe, seeds=seeds, progress=progress)
        networks[variant] = dict(zip(seeds, trained, strict=True))
    errors = {
        variant: [one_step_error(network)[1] for network in of_seeds.values()]
        for variant, of_seeds in networks.items()
    }
    return CircleFit(design, training, networks, errors)


def train_together(
    networks: Sequence[CircleNetwork],
    recipe: Recipe,
    *,
    seeds: Sequence[int],
    progress: Callable[[int, float], object] | None = None,
) -> None:
    """Train networks of equal parts side by side, in place; then round them to float16.

    Each learns as if alone, since the sum of their losses has no term of two of them and Adam works
    on each weight by itself. One pass through four tiny networks takes as long as through one.

    Args:
        networks: of one design and variant.
        recipe: how.
        seeds: one a network, of the order in which it sees the pairs.
        progress: as of :func:`isotest.blocks.tasks.training.train`.

    Raises:
        MeasurementError: the loss is not finite.
    """
    pairs, following = (part.float() for part in circle_pairs())
    # Each network has an order of its own, on top of the one that the loop draws for all.
    orders = [
        torch.randperm(len(pairs), generator=torch.Generator().manual_seed(seed)) for seed in seeds
    ]
    examples = [torch.stack([part[order] for order in orders], 1) for part in (pairs, following)]
    together = _Together(networks)

    def loss(given: Tensor, wanted: Tensor) -> Tensor:
        off: Tensor = together(given) - wanted
        return off.square().sum()

    train(
        together,
        examples,
        loss,
        recipe.settings,
        seed=seeds[0],
        progress=progress,
    )
    together.hand_back()
    for network in networks:
        rounded(network.eval())


def load_circle(file: Path, *, design: Design, variant: Variant) -> dict[int, CircleNetwork]:
    """The trained networks of one variant.

    Args:
        file: as :meth:`CircleFit.save` writes it.
        design: which the file must be of.
        variant: which of the file's.

    Returns:
        Training seed to network, in eval mode.

    Raises:
        MissingError: there is no file.
        SourceError: it cannot be read, or is of something else.
    """
    stored = load(file)
    require_said(stored, _said(design), file)
    seeds: Any = stored.metadata.get("seeds")
    if not (isinstance(seeds, list) and seeds and all(type(seed) is int for seed in seeds)):
        raise SourceError(
            f"weights {file}: expected the seeds of the trainings, such as [0, 1], found {seeds!r};"
            " train it anew with 'python -m isotest.blocks.tasks circle'"
        )
    networks = {}
    for seed in seeds:
        prefix = f"{variant}.{seed}."
        networks[seed] = CircleNetwork(design, variant)
        fill(
            networks[seed],
            {
                name.removeprefix(prefix): tensor
                for name, tensor in stored.tensors.items()
                if name.startswith(prefix)
            },
            file,
        )
        networks[seed].eval()
    return networks


def said_of(file: Path) -> tuple[Design, Training]:
    """The design and the training that a file of weights says it is of.

    Raises:
        MissingError: there is no file.
        SourceError: it cannot be read, or names none that there is.
    """
    said = load(file).metadata
    for design in DESIGNS:
        for training in TRAININGS:
            if (said.get("design"), said.get("training")) == (design, training):
                return design, training
    raise SourceError(
        f"weights {file}: expected networks of the circle, of a design and a training that there "
        f"is ({', '.join(DESIGNS)}; {', '.join(TRAININGS)}), found design "
        f"{said.get('design')!r} and training {said.get('training')!r}"
    )


class _Together(nn.Module):
    """Networks of equal parts as one, whose weights have one more dimension in front."""

    def __init__(self, networks: Sequence[CircleNetwork]) -> None:
        super().__init__()
        # In a tuple, so that they are no submodules: their own weights are not what is trained.
        self._networks = tuple(networks)
        stacked, _ = stack_module_state(list(networks))
        self._names = tuple(stacked)
        self._weights = nn.ParameterList(nn.Parameter(x.detach()) for x in stacked.values())

    def forward(self, pairs: Tensor) -> Tensor:
        """Of (B, networks, 2, 2), the same shape."""

        def one(weights: dict[str, Tensor], given: Tensor) -> Tensor:
            output: Tensor = functional_call(self._networks[0], weights, (given,))
            return output

        weights = dict(zip(self._names, self._weights, strict=True))
        following: Tensor = torch.vmap(one, in_dims=(0, 1), out_dims=1)(weights, pairs)
        return following

    def hand_back(self) -> None:
        """Put what was learnt into the networks."""
        for number, network in enumerate(self._networks):
            network.load_state_dict(
                {
                    name: stacked[number].detach()
                    for name, stacked in zip(self._names, self._weights, strict=True)
                }
            )


def _said(design: Design) -> dict[str, Any]:
    """What a file of weights says of itself, whatever the training."""
    blocks = {variant: circle_block(design, variant).to_dict() for variant in VARIANTS}
    for block in blocks.values():
        # Of the training, not of what is evaluated.
        del block["initialisation"]
    return {"task": "circle", "design": design, "blocks": blocks}
